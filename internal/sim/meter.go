package sim

import (
	"math"
	"slices"
	"time"
)

// A meter counts what becomes of requests.
type meter struct {
	latency []int64 // of each request, nanoseconds; 0: it did not finish
	first   []int64 // until its first token; 0: there was none
	gaps    []int64 // of each rescue: from death to next token
	events  int64
	tokens  int64

	refused, lost   int
	rescued         int // requests
	copied, spliced int // rescues
	end             int64
}

func newMeter(requests int) meter {
	return meter{latency: make([]int64, 0, requests), first: make([]int64, 0, requests)}
}

func (m *meter) spoke(s *session, now int64, a *Arrival) {
	if s.resuming {
		m.gaps = append(m.gaps, now-s.stalled)
		s.resuming = false
	}
	if s.emitted == 1 {
		m.first = append(m.first, now-int64(a.At))
	}
}

func (m *meter) completed(s *session, now int64, a *Arrival) {
	m.latency = append(m.latency, now-int64(a.At))
	m.tokens += int64(a.Output)
	m.end = now
	if s.rescued {
		m.rescued++
	}
}

func (m *meter) saved(s *session) {
	if len(s.route.Replaced) > 0 {
		m.spliced++
	} else {
		m.copied++
	}
}

// A ledger adds up one node's load over the watched time.
type ledger struct {
	watch Span
	since int64   // load is added up until here
	area  float64 // sessions present times nanoseconds
	work  float64 // nanoseconds that what was sent here takes, undisturbed
	peak  int     // most sessions at once
}

// settle adds up that many sessions present until now.
func (l *ledger) settle(present float64, now int64) {
	from, to := max(l.since, int64(l.watch.From)), min(now, int64(l.watch.To))
	if to > from {
		l.area += present * float64(to-from)
	}
	l.since = now
}

// charge notes work that is sent here.
func (l *ledger) charge(work float64, now int64) {
	if int64(l.watch.From) <= now && now <= int64(l.watch.To) {
		l.work += work
	}
}

// quantiles sorts the times and reads them off, by nearest rank.
func quantiles(times []int64) Quantiles {
	if len(times) == 0 {
		return Quantiles{}
	}
	slices.Sort(times)
	sum := 0.0
	for _, t := range times {
		sum += float64(t)
	}
	at := func(percent int) float64 { return ms(times[(len(times)*percent+99)/100-1]) }
	return Quantiles{Mean: round(sum / float64(len(times)) / 1e6), P50: at(50), P90: at(90), P99: at(99), Max: ms(times[len(times)-1])}
}

func ms(ns int64) float64 { return round(float64(ns) / float64(time.Millisecond)) }

// round keeps three decimals: more would be a show of precision.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
