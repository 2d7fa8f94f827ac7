package node

import (
	"context"
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

// keeper knows which handler serves which stage, and owns the stages that no
// handler serves: those whose connection was lost less than keepTime ago.
//
// A gateway that lost a connection may be back before this node knows of the
// loss. The newcomer then makes the handler that still sits there get up, waits
// until it has, and finds the stage kept like any other.
//
// A stage is under a seat or in kept, never in both.
type keeper struct {
	mu struct {
		sync.Mutex
		kept   map[stageKey]*keptStage
		seats  map[stageKey]*seat
		closed bool
	}
}

type keptStage struct {
	r     *running
	timer *time.Timer
}

// seat is a handler's right to serve a stage.
type seat struct {
	key    stageKey
	getUp  context.CancelFunc // ends the handler's context
	vacant chan struct{}      // closed when the handler has left
}

func newKeeper() *keeper {
	k := &keeper{}
	k.mu.kept, k.mu.seats = map[stageKey]*keptStage{}, map[stageKey]*seat{}
	return k
}

// sit makes the caller the one who serves a stage, and gives the stage's state
// if it was kept, else nil. Whoever served it before has stopped when sit
// returns; getUp is called when somebody else wants to. It fails only with ctx.
func (k *keeper) sit(ctx context.Context, key stageKey, getUp context.CancelFunc) (*seat, *running, error) {
	for {
		k.mu.Lock()
		old := k.mu.seats[key]
		if old == nil {
			defer k.mu.Unlock()
			mine := &seat{key, getUp, make(chan struct{})}
			k.mu.seats[key] = mine
			return mine, k.takeLocked(key), nil
		}
		k.mu.Unlock()
		old.getUp()
		select {
		case <-old.vacant:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

func (k *keeper) takeLocked(key stageKey) *running {
	s := k.mu.kept[key]
	if s == nil || !s.timer.Stop() {
		return nil
	}
	delete(k.mu.kept, key)
	return s.r
}

// keep gives up a seat and holds the stage, whose connection was lost, for a
// reconnect.
func (k *keeper) keep(s *seat, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaveLocked(s)
	if k.mu.closed {
		r.close()
		return
	}
	k.mu.kept[s.key] = &keptStage{r, time.AfterFunc(keepTime, func() { k.expire(s.key, r) })}
}

// drop gives up a seat and closes the stage; a nil stage never began.
func (k *keeper) drop(s *seat, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.leaveLocked(s)
	if r != nil {
		r.close()
	}
}

func (k *keeper) leaveLocked(s *seat) {
	delete(k.mu.seats, s.key)
	close(s.vacant)
}

func (k *keeper) expire(key stageKey, r *running) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s := k.mu.kept[key]; s != nil && s.r == r {
		delete(k.mu.kept, key)
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
