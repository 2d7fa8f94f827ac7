package answer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// front is how far each stage of a prompt that is being computed has come. What all
// of them have computed is proven as much as what came before a token, so that
// shadows may follow before there is one.
type front struct {
	mu    sync.Mutex
	held  []int // by stage
	moved chan struct{}
	more  chan struct{} // closed with every move
}

func (a *Answer) newFront() *front {
	f := &front{moved: make(chan struct{}, 1), more: make(chan struct{})}
	for _, l := range a.links {
		f.held = append(f.held, l.held)
	}
	return f
}

// reached notes how many positions a stage holds. It never waits.
func (f *front) reached(stage, held int) {
	f.mu.Lock()
	f.held[stage] = held
	close(f.more)
	f.more = make(chan struct{})
	f.mu.Unlock()
	select {
	case f.moved <- struct{}{}:
	default:
	}
}

// await waits until a stage holds so many positions.
func (f *front) await(ctx context.Context, stage, held int) error {
	for {
		f.mu.Lock()
		there, more := f.held[stage] >= held, f.more
		f.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// least is how many positions all stages hold.
func (f *front) least() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Min(f.held)
}

// attend waits for a prompt's stages and lets shadows follow them meanwhile. It
// belongs to the answer's own goroutine. Nobody follows a replay after the first token:
// what it computes is wanted at once, and what shadows there are have their lead.
func (a *Answer) attend(f *front, wait func() error) error {
	if a.run.Standbys == nil || a.limits.ShadeFrom < 0 || a.Generated() > 0 || a.job.States != nil {
		return wait()
	}
	done := make(chan error, 1)
	go func() { done <- wait() }()
	p := &a.shades.pace
	p.prompt.begin(a.run.rivalry.of(a.grant.Route), &p.gate)
	defer func() {
		p.prompt.end(&p.gate)
		a.run.rivalry.note(a.grant.Route, p.prompt.slowdown)
		if len(a.shades.all) == 0 {
			a.shades.again = time.Time{} // what was in the way may have been the prompt
		}
	}()
	for at, since := f.least(), time.Now(); ; {
		select {
		case err := <-done:
			return err
		case <-f.moved:
			now, all := time.Now(), f.least()
			if all == at {
				continue
			}
			p.chunk(all-at, now.Sub(since))
			at, since = all, now
			if all >= a.limits.ShadeFrom && p.prompt.chunks > firstChunks {
				a.tend(all)
			}
		}
	}
}
