package poolbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// crowd keeps sessions busy and tells how they fare.
type crowd struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	lost   atomic.Int64

	mu    sync.Mutex
	trips []time.Duration // since the last call of take
}

// gather starts n sessions that go back and forth, and two that send as much as they can.
func gather(ctx context.Context, t transport, n int) (*crowd, error) {
	ctx, cancel := context.WithCancel(ctx)
	c := &crowd{cancel: cancel}
	echoes, err := openMany(ctx, t, spec{modeEcho, smallMessage}, n)
	if err != nil {
		closeAll(echoes)
		cancel()
		return nil, err
	}
	loads, err := openMany(ctx, t, spec{modeSink, largeMessage}, 2)
	if err != nil {
		closeAll(append(echoes, loads...))
		cancel()
		return nil, err
	}
	for _, ch := range echoes {
		c.wg.Go(func() { defer ch.close(); c.chat(ctx, ch) })
	}
	for _, ch := range loads {
		c.wg.Go(func() { defer ch.close(); c.load(ctx, ch) })
	}
	return c, nil
}

func (c *crowd) chat(ctx context.Context, ch channel) {
	p := make([]byte, smallMessage)
	for ctx.Err() == nil {
		d, err := ping(ch, p)
		if err != nil {
			c.lost.Add(1)
			return
		}
		c.mu.Lock()
		c.trips = append(c.trips, d)
		c.mu.Unlock()
		wait(ctx, neighbourPause)
	}
}

func (c *crowd) load(ctx context.Context, ch channel) {
	p := make([]byte, largeMessage)
	for ctx.Err() == nil {
		if err := ch.send(p); err != nil {
			c.lost.Add(1)
			return
		}
	}
	if _, err := finish(ch, p); err != nil {
		c.lost.Add(1)
	}
}

// take returns the p99 of the round trips since the last call.
func (c *crowd) take() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	p99 := percentile(c.trips, 0.99)
	c.trips = nil
	return p99
}

// disperse ends the sessions in peace and returns how many had ended before.
func (c *crowd) disperse() int {
	c.cancel()
	c.wg.Wait()
	return int(c.lost.Load())
}

// measureSwap moves the node to another endpoint under full load. Sessions stay on
// their old connections, which drain; none may be lost.
func measureSwap(ctx context.Context, id identities, o Options, r *Result) (err error) {
	h, err := defaultPool(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	next, err := h.addNode()
	if err != nil {
		return err
	}
	c, err := gather(ctx, h, o.Sessions)
	if err != nil {
		return err
	}
	span := max(2*o.Part, time.Second)
	wait(ctx, span/4)
	c.take()
	wait(ctx, span)
	out := &Swap{Sessions: o.Sessions + 2, P99Before: c.take()}
	start := time.Now()
	err = h.apply(next)
	if err == nil {
		err = h.awaitGeneration(ctx)
	}
	out.Took = time.Since(start)
	wait(ctx, span-out.Took)
	out.P99During = c.take()
	out.Lost = c.disperse()
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	r.Swap = out
	return nil
}
