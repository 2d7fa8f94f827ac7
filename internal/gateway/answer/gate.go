package answer

import (
	"context"
	"sync"
)

// gate lets shadows compute or makes them wait. Its zero value is open.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: it is open
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// pass waits until the gate is open.
func (g *gate) pass(ctx context.Context) error {
	for {
		g.mu.Lock()
		opened := g.opened
		g.mu.Unlock()
		if opened == nil {
			return ctx.Err()
		}
		select {
		case <-opened:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
