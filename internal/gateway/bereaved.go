package gateway

import (
	"strings"
	"sync"

	"hecate/pool"
)

// bereaved listens to the pool and tells when a node has lost its last
// connection, though nobody was talking to it: a process that ends takes all of
// them along at once. Whoever is told finds out whether the node lives.
type bereaved struct {
	tell    func(node string)
	mu      sync.Mutex
	writers map[string]map[uint64]bool // by node: connections that stand
	early   map[uint64]bool            // ended before we heard that they stand
}

// Bereaved returns a listener for pool.Config.Observe. tell must not block.
func Bereaved(tell func(node string)) func(pool.Event) {
	b := &bereaved{tell: tell, writers: map[string]map[uint64]bool{}, early: map[uint64]bool{}}
	return b.hear
}

func (b *bereaved) hear(e pool.Event) {
	switch e.Kind {
	case pool.EventWriterUp:
		b.up(e)
	case pool.EventWriterLost, pool.EventWriterRemoved:
		// One that drains is ended by the node's death like any other.
		if b.down(e) && unasked(e.Reason) {
			b.tell(e.Group)
		}
	}
}

func (b *bereaved) up(e pool.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.early[e.Writer] {
		delete(b.early, e.Writer)
		return
	}
	if b.writers[e.Group] == nil {
		b.writers[e.Group] = map[uint64]bool{}
	}
	b.writers[e.Group][e.Writer] = true
}

// down says whether it was the last one.
func (b *bereaved) down(e pool.Event) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	standing := b.writers[e.Group]
	if !standing[e.Writer] {
		b.early[e.Writer] = true
		return false
	}
	delete(standing, e.Writer)
	if len(standing) > 0 {
		return false
	}
	delete(b.writers, e.Group)
	return true
}

// unasked says that the pool itself had no reason to end a connection.
func unasked(reason string) bool {
	for _, ours := range []string{"retired", "forced", "shutdown", "discarded"} {
		if strings.HasPrefix(reason, ours+":") {
			return false
		}
	}
	return true
}
