package answer

import (
	"context"
	"sync"
)

// turn lets one in at a time. Its zero value is free.
type turn struct {
	once sync.Once
	in   chan struct{}
}

func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() { t.in = make(chan struct{}, 1) })
	select {
	case t.in <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) give() { <-t.in }
