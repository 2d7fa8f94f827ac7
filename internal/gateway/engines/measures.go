package engines

import (
	"time"

	"hecate/swarm"
)

// Patience with an engine's first content: so many times what is usual, within
// bounds; before anything was measured by assumption.
const (
	patienceFactor = 12
	leastPatience  = 10 * time.Second
	mostPatience   = 10 * time.Minute
	lastPatience   = 3 * time.Minute       // with the last engine that there is: better late than never
	firstPatience  = 30 * time.Second      // it may have to load the model
	promptPatience = 20 * time.Millisecond // per token of the prompt
	tokenPatience  = 250 * time.Millisecond
	// assumedTokens is how long an answer may be that names no limit.
	assumedTokens = 1024
	// mostPatientTokens is for how many at most: what clients name has no bound.
	mostPatientTokens = 1 << 20
	// silence is how long a stream may pause, unless the engine's record says
	// otherwise: engines that preempt answers under load do so for seconds.
	silence = time.Minute
)

// measures are moving averages of what an engine took.
type measures struct {
	token   swarm.Reading // ms per token of an answer
	prefill swarm.Reading // ms to the first content per 1024 tokens of prompt, waiting included
	first   swarm.Reading // ms to the first content of a stream
	stay    swarm.Reading // ms of a whole request
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// answered takes a whole answer: when its first content came (of a stream; 0 of
// others), how long all of it took, and how many tokens it had.
func (m *measures) answered(prompt int, first, all time.Duration, tokens int) {
	m.stay = m.stay.Observe(milliseconds(all))
	if first > 0 {
		m.first = m.first.Observe(milliseconds(first))
		m.prefill = m.prefill.Observe(milliseconds(first) * 1024 / float64(max(prompt, 64)))
	}
	if tokens > 1 {
		m.token = m.token.Observe(milliseconds(all-first) / float64(tokens))
	}
}

// patience is how long the first content of an answer may take. An answer that is
// not streamed comes as a whole.
func (e *engine) patience(c *Call) time.Duration {
	if e.rec.FirstByte > 0 {
		return e.rec.FirstByte
	}
	m := &e.measures
	d := firstPatience + time.Duration(c.PromptTokens)*promptPatience
	if m.first.Known {
		usual := max(m.first.Value, m.prefill.Value*float64(c.PromptTokens)/1024)
		d = max(leastPatience, time.Duration(patienceFactor*usual*float64(time.Millisecond)))
	}
	if !c.Stream {
		n := c.OutputTokens
		if n == 0 {
			n = assumedTokens
		}
		each := tokenPatience
		if m.token.Known {
			each = time.Duration(patienceFactor * m.token.Value * float64(time.Millisecond))
		}
		d += time.Duration(min(n, mostPatientTokens)) * min(each, mostPatience)
	}
	return min(d, mostPatience)
}

func (e *engine) silence() time.Duration {
	if e.rec.Silence > 0 {
		return e.rec.Silence
	}
	return silence
}
