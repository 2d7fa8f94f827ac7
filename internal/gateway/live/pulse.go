package live

import (
	"slices"
	"sync"
	"time"

	"hecate/internal/report"
)

// historyLength is how many seconds a new watcher is shown.
const historyLength = 300

// maxSamples bounds the first-token times kept of one second.
const maxSamples = 1024

// A Pulse is what is measured second by second. Its methods are quick and safe
// for concurrent use.
type Pulse struct {
	mu     sync.Mutex
	tokens int64
	firsts []time.Duration // of answers that finished in this second
	gap    time.Duration   // the longest pause that was survived
	past   []report.Pulse  // oldest first, at most historyLength
}

// Token counts a token that a client will see.
func (p *Pulse) Token() {
	p.mu.Lock()
	p.tokens++
	p.mu.Unlock()
}

// First notes how long an answer waited for its first token.
func (p *Pulse) First(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.firsts) < maxSamples {
		p.firsts = append(p.firsts, d)
	}
}

// Gap notes a pause that an answer survived.
func (p *Pulse) Gap(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gap = max(p.gap, d)
}

// Beat closes one second that took so long, and gives its numbers.
func (p *Pulse) Beat(took time.Duration, running, queued int) report.Pulse {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := report.Pulse{Running: running, Queued: queued}
	if took > 0 {
		out.TokensPerSecond = round1(float64(p.tokens) / took.Seconds())
	}
	if n := len(p.firsts); n > 0 {
		slices.Sort(p.firsts)
		out.FirstTokenMS = ms(p.firsts[n/2])
	}
	if p.gap > 0 {
		out.GapMS = ms(p.gap)
	}
	p.tokens, p.firsts, p.gap = 0, p.firsts[:0], 0
	if p.past = append(p.past, out); len(p.past) > historyLength {
		p.past = slices.Delete(p.past, 0, len(p.past)-historyLength)
	}
	return out
}

// History gives the seconds so far, oldest first.
func (p *Pulse) History() []report.Pulse {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.past)
}

func ms(d time.Duration) *float64 {
	v := round1(float64(d.Microseconds()) / 1000)
	return &v
}

func round1(v float64) float64 { return float64(int64(v*10+0.5)) / 10 }
