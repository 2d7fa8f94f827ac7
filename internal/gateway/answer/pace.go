package answer

import (
	"context"
	"sync/atomic"
	"time"

	"hecate/swarm"
)

const (
	pacedTokens = 8    // tokens without a shadow that tell an answer's own pace
	shadowPrice = 0.02 // by how much shadows may slow an answer
	leastRest   = 0.5  // times as long as a step took
	mostRest    = 50
)

// pace compares how long an answer's tokens take while its shadows compute and
// while they rest. On machines of their own shadows slow nothing and rest little;
// where they compete for a processor they rest so long that the answer hardly
// notices, and lag.
type pace struct {
	tokens  int           // observed; the answer's own
	alone   swarm.Reading // ms per token while no shadow computes
	fed     swarm.Reading // ms per token while one does
	feeding atomic.Int32  // shadows that compute now
	rests   atomic.Int64  // times as long as a step took, in thousandths; 0: not known

	steps  atomic.Int64 // of shadows, begun
	gate   gate         // shadows go through it before each step
	prompt turns
}

// enter waits until a shadow may compute, and counts its step; leave is to follow.
func (p *pace) enter(ctx context.Context) error {
	if err := p.gate.pass(ctx); err != nil {
		return err
	}
	p.steps.Add(1)
	p.feeding.Add(1)
	return nil
}

func (p *pace) leave() { p.feeding.Add(-1) }

// chunk takes a piece of the prompt that all stages have computed since the last one.
func (p *pace) chunk(rows int, took time.Duration) {
	steps, busy := p.steps.Load(), p.feeding.Load() > 0
	p.prompt.take(float64(took)/float64(rows), steps, busy, &p.gate)
}

// observe takes one token. before says whether a shadow computed when it was asked for.
func (p *pace) observe(took time.Duration, before bool) {
	p.tokens++
	ms := float64(took) / float64(time.Millisecond)
	if before || p.feeding.Load() > 0 {
		p.fed = p.fed.Observe(ms)
	} else {
		p.alone = p.alone.Observe(ms)
	}
	if !p.fed.Known || !p.alone.Known || p.alone.Value == 0 {
		return
	}
	// Working a share s of the time slows by s * (fed/alone - 1).
	rest := (p.fed.Value/p.alone.Value-1)/shadowPrice - 1
	p.rests.Store(int64(1000 * min(max(rest, leastRest), mostRest)))
}

// rest is how long a shadow stays idle after a step.
func (p *pace) rest(took time.Duration) time.Duration {
	if p.prompt.on.Load() {
		return 0
	}
	times := p.rests.Load()
	if times == 0 {
		return took
	}
	return time.Duration(float64(took) * float64(times) / 1000)
}
