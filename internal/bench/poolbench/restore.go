package poolbench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/pool"
	"hecate/pool/faultproxy"
)

// defaultPool starts the pool as it ships, not cut down to one connection.
func defaultPool(id identities) (*hecate, error) { return startHecate(id, pool.DefaultSettings()) }

// measureRestore resets connections and takes the time until the floor is whole
// again: one connection, then all at once.
func measureRestore(ctx context.Context, id identities, o Options, r *Result) (err error) {
	settings := pool.DefaultSettings()
	settings.Quarantine = 0 // all connections here are young, and would count as flapping
	h, err := startHecate(id, settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	floor := h.floor()
	out := &Restore{Losses: o.Losses, Floor: floor}
	var one, all []time.Duration
	for range o.Losses {
		for _, c := range []struct {
			k    int
			into *[]time.Duration
		}{{1, &one}, {floor, &all}} {
			took, untold, err := h.loseAndRestore(ctx, c.k)
			if err != nil {
				return fmt.Errorf("%d connections lost: %w", c.k, err)
			}
			*c.into = append(*c.into, took)
			out.Untold += untold
		}
	}
	out.OneP50, out.OneWorst = percentile(one, 0.5), slices.Max(one)
	out.AllP50, out.AllWorst = percentile(all, 0.5), slices.Max(all)
	r.Restore = out
	return nil
}

func (h *hecate) floor() int {
	n := 0
	for _, f := range h.pool.Ready(serverName).Families {
		n += f.Floor
	}
	return n
}

// loseAndRestore resets k connections from the node's side.
func (h *hecate) loseAndRestore(ctx context.Context, k int) (took time.Duration, untold int, err error) {
	sessions, err := openMany(ctx, h, spec{modeEcho, smallMessage}, 8)
	defer closeAll(sessions)
	if err != nil {
		return 0, 0, err
	}
	h.drainEvents()
	start := time.Now()
	if n := h.nodes[0].abort(k); n != k {
		return 0, 0, fmt.Errorf("only %d connections are there", n)
	}
	for lost := 0; lost < k; lost++ {
		if _, err := h.awaitEvent(ctx, pool.EventWriterLost); err != nil {
			return 0, 0, err
		}
	}
	if err := h.awaitFloor(ctx); err != nil {
		return 0, 0, err
	}
	took = time.Since(start)
	if k < h.floor() {
		return took, 0, nil
	}
	// All connections were lost, so every session must know by now.
	for _, s := range sessions {
		select {
		case <-s.(*hecateChannel).s.Done():
		default:
			untold++
		}
	}
	return took, untold, nil
}

func (h *hecate) drainEvents() {
	for {
		select {
		case <-h.events:
		default:
			return
		}
	}
}

// awaitEvent returns the next event of a kind.
func (h *hecate) awaitEvent(ctx context.Context, kind pool.EventKind) (pool.Event, error) {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	for {
		select {
		case e := <-h.events:
			if e.Kind == kind {
				return e, nil
			}
		case <-ctx.Done():
			return pool.Event{}, fmt.Errorf("no event %q: %w", kind, ctx.Err())
		}
	}
}

// measureSilence makes a node behind a proxy fall silent and takes the time until
// each of its connections is given up.
func measureSilence(ctx context.Context, id identities, _ Options, r *Result) (err error) {
	h, err := defaultPool(id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close()) }()
	p, err := faultproxy.Listen("127.0.0.1:0", h.nodes[0].Addr().String(), faultproxy.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	h.drainEvents()
	if err := h.apply(p.Addr()); err != nil {
		return err
	}
	if err := h.awaitGeneration(ctx); err != nil {
		return err
	}
	if err := h.awaitFloor(ctx); err != nil {
		return err
	}
	writers := p.Stats().Open
	h.drainEvents()
	silent := faultproxy.Direction{Silent: true}
	start := time.Now()
	if err := p.Set(faultproxy.Fault{Up: silent, Down: silent}); err != nil {
		return err
	}
	out := &Silence{Writers: writers}
	for n := range writers {
		e, err := h.awaitLost(ctx, p.Addr())
		if err != nil {
			return fmt.Errorf("%d of %d connections were given up: %w", n, writers, err)
		}
		out.Last = e.Sub(start)
		if n == 0 {
			out.First = out.Last
		}
	}
	r.Silence = out
	return nil
}

// awaitLost waits for the loss of a writer to addr.
func (h *hecate) awaitLost(ctx context.Context, addr string) (time.Time, error) {
	for {
		e, err := h.awaitEvent(ctx, pool.EventWriterLost)
		if err != nil || e.Endpoint == addr {
			return time.Now(), err
		}
	}
}

// awaitGeneration waits until the active generation is of the desired map.
func (h *hecate) awaitGeneration(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !h.pool.Snapshot().Generation.MapCurrent {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("the new map never becomes the active generation")
		}
	}
	return nil
}
