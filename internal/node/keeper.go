package node

import (
	"sync"
	"time"

	"hecate/internal/stage"
)

// stageKey names a stage across connections.
type stageKey struct {
	gateway, session, model string
	first, last             int
}

func keyOf(gateway string, o stage.Open) stageKey {
	return stageKey{gateway, o.Session, o.Model, o.First, o.Last}
}

// keeper owns the stages that no handler serves: those whose connection was
// lost less than keepTime ago. It also knows which handler serves which stage,
// so that a reconnect that is faster than the news of the loss can take over.
//
// A stage is in served or in kept, never in both.
type keeper struct {
	mu struct {
		sync.Mutex
		kept   map[stageKey]*keptStage
		served map[stageKey]*running
		closed bool
	}
}

type keptStage struct {
	r     *running
	timer *time.Timer
}

func newKeeper() *keeper {
	k := &keeper{}
	k.mu.kept, k.mu.served = map[stageKey]*keptStage{}, map[stageKey]*running{}
	return k
}

// take removes and gives the kept stage, or nil. A stage that another handler
// still serves is closed under it: that handler's connection is dead, or its
// gateway would not ask again.
func (k *keeper) take(key stageKey) *running {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r := k.mu.served[key]; r != nil {
		delete(k.mu.served, key)
		r.close()
	}
	s := k.mu.kept[key]
	if s == nil || !s.timer.Stop() {
		return nil
	}
	delete(k.mu.kept, key)
	return s.r
}

// own notes that a handler serves the stage.
func (k *keeper) own(key stageKey, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.served[key] = r
}

// keep holds a stage whose connection was lost. One that was taken over in the
// meantime is closed already.
func (k *keeper) keep(key stageKey, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.served[key] != r {
		return
	}
	delete(k.mu.served, key)
	if k.mu.closed {
		r.close()
		return
	}
	k.mu.kept[key] = &keptStage{r, time.AfterFunc(keepTime, func() { k.expire(key, r) })}
}

func (k *keeper) expire(key stageKey, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.mu.kept[key]; s != nil && s.r == r {
		delete(k.mu.kept, key)
	}
	r.close()
}

// drop closes a stage that a handler is done with.
func (k *keeper) drop(key stageKey, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.served[key] == r {
		delete(k.mu.served, key)
	}
	r.close()
}

// close frees all kept stages; later ones are freed at once.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.closed = true
	for key, s := range k.mu.kept {
		s.timer.Stop()
		s.r.close()
		delete(k.mu.kept, key)
	}
}
