package poolbench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// flow is what a number of channels have carried.
type flow struct {
	messages uint64
	wall     time.Duration
	cpu      time.Duration
	allocs   uint64
}

func (f flow) rate() float64 { return float64(f.messages) / f.wall.Seconds() }

// pump sends messages on n channels of t for about d and returns what the far end
// has counted by then: the time runs until the last count is back.
func pump(ctx context.Context, t transport, n, size int, d time.Duration) (flow, error) {
	channels, err := openMany(ctx, t, spec{modeSink, size}, n)
	defer closeAll(channels)
	if err != nil {
		return flow{}, err
	}
	// A first, shorter run fills buffers and windows and lets TLS settle on its record size.
	if _, err := pumpFor(channels, size, d/4); err != nil {
		return flow{}, err
	}
	before := readUsage()
	sent, err := pumpFor(channels, size, d)
	if err != nil {
		return flow{}, err
	}
	wall, cpu, allocs := readUsage().since(before)
	return flow{sent, wall, cpu, allocs}, nil
}

func pumpFor(channels []channel, size int, d time.Duration) (uint64, error) {
	var mu sync.Mutex
	var total uint64
	var faults []error
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for _, ch := range channels {
		wg.Go(func() {
			n, err := pumpOne(ch, size, end)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				faults = append(faults, err)
			}
		})
	}
	wg.Wait()
	return total, errors.Join(faults...)
}

// lookEvery is how many messages pass between two looks at the clock.
const lookEvery = 16

func pumpOne(ch channel, size int, end time.Time) (uint64, error) {
	p := make([]byte, size)
	var n uint64
	for time.Now().Before(end) {
		for range lookEvery {
			if err := ch.send(p); err != nil {
				return 0, fmt.Errorf("message %d: %w", n, err)
			}
			n++
		}
	}
	if _, err := finish(ch, p); err != nil {
		return 0, err
	}
	return n + 1, nil
}

func openMany(ctx context.Context, t transport, sp spec, n int) ([]channel, error) {
	var out []channel
	for range n {
		ch, err := t.open(ctx, sp)
		if err != nil {
			return out, err
		}
		out = append(out, ch)
	}
	return out, nil
}

func closeAll(channels []channel) {
	for _, ch := range channels {
		ch.close()
	}
}

// ping sends one message to an echo and awaits it.
func ping(ch channel, p []byte) (time.Duration, error) {
	start := time.Now()
	if err := ch.send(p); err != nil {
		return 0, err
	}
	_, err := ch.recv()
	return time.Since(start), err
}

// pings measures round trips until the end; pause lies between two of them.
func pings(ctx context.Context, ch channel, size int, pause time.Duration) ([]time.Duration, error) {
	p := make([]byte, size)
	var out []time.Duration
	for ctx.Err() == nil {
		d, err := ping(ch, p)
		if err != nil {
			return out, fmt.Errorf("round trip %d: %w", len(out), err)
		}
		out = append(out, d)
		if pause > 0 {
			wait(ctx, pause)
		}
	}
	return out, nil
}

// wait sleeps, or returns when ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
