package engine

import (
	"cmp"
	"fmt"
	"os"
	"sync"
	"time"
)

// core is the engine without the kernels: sessions, cells, queues, memory. It
// runs one goroutine (see loop.go) which alone calls the kernels.
type core struct {
	opts Options
	k    kernels

	wake    chan struct{} // capacity 1: there may be something to do
	loading chan struct{} // capacity 1: held by the one load that runs
	stopped chan struct{} // closed when the goroutine has ended

	mu       sync.Mutex // guards all below and the fields of models, sessions, steps
	models   map[string]*model
	sessions map[*session]struct{}
	groups   groups
	jobs     []*job
	mem      Memory
	stats    Stats
	closing  bool
}

// defaults fills in the zero values of o.
func (o Options) defaults() Options {
	o.Threads = max(1, o.Threads)
	o.MaxBatch = cmp.Or(max(0, o.MaxBatch), 256)
	o.MixTarget = cmp.Or(max(0, o.MixTarget), 60*time.Millisecond)
	o.ScratchDir = cmp.Or(o.ScratchDir, os.TempDir())
	if o.RescueShare == 0 {
		o.RescueShare = 8
	}
	return o
}

// cellsFor is the number of cells that each layer of a model gets.
func (o Options) cellsFor(context int) int {
	if o.Cells > 0 {
		return o.Cells
	}
	context = o.contextOf(context)
	return max(context, min(4*context, 8192))
}

// contextOf is the longest sequence of a session, given the model's own limit.
func (o Options) contextOf(context int) int {
	const unstated = 4096
	return cmp.Or(o.ContextTokens, context, unstated)
}

// newCore starts the goroutine.
func newCore(opts Options, k kernels) *core {
	opts = opts.defaults()
	c := &core{
		opts:     opts,
		k:        k,
		wake:     make(chan struct{}, 1),
		loading:  make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		models:   map[string]*model{},
		sessions: map[*session]struct{}{},
		mem:      Memory{Budget: opts.MemoryBudget},
	}
	go c.loop()
	return c
}

// Close implements Engine.
func (c *core) Close() error {
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.poke()
	<-c.stopped
	return nil
}

// Memory implements Engine.
func (c *core) Memory() Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mem
}

// poke wakes the goroutine.
func (c *core) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// reserveLocked accounts for memory before it is allocated.
func (c *core) reserveLocked(what string, weights, cache, work int64) error {
	need := weights + cache + work
	if c.mem.Budget > 0 && c.mem.Used()+need > c.mem.Budget {
		return &BudgetError{What: what, Need: need, Used: c.mem.Used(), Budget: c.mem.Budget}
	}
	c.mem.Weights += weights
	c.mem.Cache += cache
	c.mem.Work += work
	return nil
}

// guard turns a panic of the kernels' Go code into an error.
func guard(what string, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %s: %v", ErrKernel, what, r)
		}
	}()
	return f()
}
