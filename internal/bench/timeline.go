package bench

import (
	"slices"
	"time"
)

// timeline is when the tokens of one answer came.
type timeline struct {
	at     []time.Time // of events
	tokens int         // in them; a character of several tokens comes as one event
}

// rate is how many tokens per second came on all timelines together while all of
// them ran: after the first token of the last to begin, until the first of them
// ends. It leaves prompts out. 0 when they were never all running.
func rate(lines []timeline) float64 {
	var from, to time.Time
	for i, l := range lines {
		if len(l.at) < 2 {
			return 0
		}
		if first := l.at[0]; i == 0 || first.After(from) {
			from = first
		}
		if last := l.at[len(l.at)-1]; i == 0 || last.Before(to) {
			to = last
		}
	}
	took := to.Sub(from)
	if took <= 0 {
		return 0
	}
	tokens := 0.0
	for _, l := range lines {
		tokens += float64(l.between(from, to)) * float64(l.tokens) / float64(len(l.at))
	}
	return tokens / took.Seconds()
}

// between counts the events after from, up to to.
func (l timeline) between(from, to time.Time) int {
	n := 0
	for _, t := range l.at {
		if t.After(from) && !t.After(to) {
			n++
		}
	}
	return n
}

// gap is the longest time between two events that follow each other, and the
// index of the second of them; 0 and 0 when there are fewer than two.
func (l timeline) gap() (longest time.Duration, index int) {
	for i := 1; i < len(l.at); i++ {
		if d := l.at[i].Sub(l.at[i-1]); d > longest {
			longest, index = d, i
		}
	}
	return longest, index
}

// split gives the parts before and behind an event.
func (l timeline) split(index int) (before, after timeline) {
	share := func(at []time.Time) timeline {
		return timeline{at, l.tokens * len(at) / max(1, len(l.at))}
	}
	return share(slices.Clone(l.at[:index])), share(slices.Clone(l.at[index:]))
}
