package poolbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// entry is a contestant in the running.
type entry struct {
	name string
	t    transport
	into *Contestant
}

// measureLarge is one round of 32 KiB messages on one channel.
func measureLarge(ctx context.Context, e entry, o Options) error {
	f, err := pump(ctx, e.t, 1, largeMessage, o.Part)
	if err != nil {
		return err
	}
	e.into.note("throughput", f.rate()*largeMessage)
	e.into.note("cpu large", float64(f.cpu)/float64(f.messages))
	e.into.note("allocs large", float64(f.allocs)/float64(f.messages))
	return nil
}

// measureSmall is one round of 64 B messages on many channels.
func measureSmall(ctx context.Context, e entry, o Options) error {
	f, err := pump(ctx, e.t, o.Sessions, smallMessage, o.Part)
	if err != nil {
		return err
	}
	e.into.note("small", f.rate())
	e.into.note("cpu small", float64(f.cpu)/float64(f.messages))
	e.into.note("allocs small", float64(f.allocs)/float64(f.messages))
	return nil
}

// measureRoundTrip is one round of round trips on one channel.
func measureRoundTrip(ctx context.Context, e entry, o Options) error {
	ch, err := e.t.open(ctx, spec{modeEcho, smallMessage})
	if err != nil {
		return err
	}
	defer ch.close()
	ctx, cancel := context.WithTimeout(ctx, o.Part)
	defer cancel()
	trips, err := pings(ctx, ch, smallMessage, 0)
	if err != nil {
		return err
	}
	e.into.note("p50", float64(percentile(trips, 0.50)))
	e.into.note("p99", float64(percentile(trips, 0.99)))
	return nil
}

// neighbourPause is the time between a neighbour's round trips: they shall feel a
// stalled session, not each other.
const neighbourPause = 2 * time.Millisecond

// stuckAfter is how long a sender makes no progress before it counts as stuck.
const stuckAfter = 50 * time.Millisecond

// stallTurns is how often one round changes between a stalled neighbour and none:
// what disturbs the machine for a while then disturbs both.
const stallTurns = 4

// measureStall is one round: the neighbours' round trips without and with a channel that
// never reads while its peer sends as much as it can.
func measureStall(ctx context.Context, e entry, o Options) error {
	neighbours, err := openMany(ctx, e.t, spec{modeEcho, smallMessage}, o.Sessions-1)
	defer closeAll(neighbours)
	if err != nil {
		return err
	}
	var quiet, stalled []time.Duration
	for range stallTurns {
		trips, err := neighbourTrips(ctx, neighbours, o.Part/stallTurns)
		if err != nil {
			return err
		}
		quiet = append(quiet, trips...)
		if trips, err = tripsBesideStall(ctx, e.t, neighbours, o.Part/stallTurns); err != nil {
			return fmt.Errorf("neighbours of a stalled session: %w", err)
		}
		stalled = append(stalled, trips...)
	}
	before, after := percentile(quiet, 0.99), percentile(stalled, 0.99)
	e.into.note("stall before", float64(before))
	e.into.note("stall after", float64(after))
	e.into.note("stall effect", float64(after)/float64(before))
	return nil
}

// tripsBesideStall opens a channel that never reads, fills it, and then measures.
func tripsBesideStall(ctx context.Context, t transport, neighbours []channel, d time.Duration) ([]time.Duration, error) {
	stalled, err := t.open(ctx, spec{modeStall, largeMessage})
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	var sent atomic.Uint64
	wg.Go(func() {
		// Ends by the close below: blocked by flow control until then.
		for p := make([]byte, largeMessage); stalled.send(p) == nil; sent.Add(1) {
		}
	})
	// Filling the window is a burst like any other; what counts is the time after.
	for before := uint64(1); before != sent.Load() && ctx.Err() == nil; {
		before = sent.Load()
		wait(ctx, stuckAfter)
	}
	trips, err := neighbourTrips(ctx, neighbours, d)
	stalled.close()
	wg.Wait()
	return trips, err
}

// neighbourTrips returns the round trips of all channels.
func neighbourTrips(ctx context.Context, channels []channel, d time.Duration) ([]time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var faults []error
	var wg sync.WaitGroup
	for _, ch := range channels {
		wg.Go(func() {
			trips, err := pings(ctx, ch, smallMessage, neighbourPause)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, trips...)
			faults = append(faults, err)
		})
	}
	wg.Wait()
	return all, errors.Join(faults...)
}

// measureIdle counts the bytes that an open and silent channel holds at both ends.
func measureIdle(ctx context.Context, e entry, o Options) error {
	if e.name == nameTLS {
		return nil // a connection per session: it would measure descriptors
	}
	before := heldMemory()
	channels, err := openMany(ctx, e.t, spec{modeEcho, smallMessage}, o.IdleSessions)
	defer closeAll(channels)
	if err != nil {
		return err
	}
	p := make([]byte, smallMessage)
	for i, ch := range channels { // one round trip each: the far end is really there
		if _, err := ping(ch, p); err != nil {
			return fmt.Errorf("idle session %d: %w", i, err)
		}
	}
	e.into.note("idle", (float64(heldMemory())-float64(before))/float64(o.IdleSessions))
	return nil
}
