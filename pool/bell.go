package pool

import "sync"

// bell wakes everybody who waits for a change. To miss nothing, take the
// channel first, then check the condition, then wait.
type bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// heard returns a channel that is closed by the next ring.
func (b *bell) heard() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// kick puts a token into a channel of capacity 1, or leaves the one there.
func kick(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
