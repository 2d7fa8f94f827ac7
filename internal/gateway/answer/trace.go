package answer

import (
	"context"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// A Tracer is told what answers spend their time on, span by span, when each has
// ended. The context is the request's and carries its trace. It is called from
// the goroutines that compute, so it must not block.
type Tracer interface {
	Span(ctx context.Context, s Span)
}

// A SpanKind names a part of an answer's life.
type SpanKind string

const (
	SpanQueue  SpanKind = "queue"  // from asking for room to having a route
	SpanOpen   SpanKind = "open"   // the stages of a route say yes
	SpanStage  SpanKind = "stage"  // a run of steps on one stage; see Phase
	SpanRescue SpanKind = "rescue" // from asking for the token that was interrupted to having it
	SpanAnswer SpanKind = "answer" // all of it
)

// A Phase is what a run of steps was for.
type Phase string

const (
	Prefill Phase = "prefill" // up to the first token
	Decode  Phase = "decode"  // one row per step
	Replay  Phase = "replay"  // what was computed again, after a rescue or a wait for room
)

// A Span is a part of an answer's life that is over. Fields beyond the first
// group are set where they mean something.
type Span struct {
	Kind         SpanKind
	Job, Model   string
	Began, Ended time.Time
	Err          error // why it ended badly; nil: it did not

	Route string // queue, answer: as X-Hecate-Route; of an answer, at its end

	Node   string // stage; rescue: that failed
	Layers swarm.LayerRange
	Phase  Phase
	Steps  int
	Rows   int           // positions computed
	Timing stage.Timing  // at the node, summed over the steps
	Slow   time.Duration // the longest step, the way there and back included

	Rescue   RescueKind
	Position int // at which it failed
	Replayed int // positions that a stage computed again

	Tokens  int // answer: generated
	Rescues int
}

func (a *Answer) span(s Span) {
	if a.run.Tracer == nil {
		return
	}
	s.Job, s.Model = a.job.ID, a.job.Model
	if s.Ended.IsZero() {
		s.Ended = time.Now()
	}
	a.run.Tracer.Span(a.parent, s)
}

// effort sums up the steps of one link since it was last told.
type effort struct {
	began, ended time.Time
	steps, rows  int
	timing       stage.Timing
	slow         time.Duration
}

func (e *effort) add(began time.Time, rows int, t stage.Timing) {
	if e.steps == 0 {
		e.began = began
	}
	e.ended = time.Now()
	e.steps++
	e.rows += rows
	e.timing.Queue += t.Queue
	e.timing.Compute += t.Compute
	e.slow = max(e.slow, e.ended.Sub(began))
}

// account tells what a link did since the last time, which was for one purpose.
func (a *Answer) account(l *link, p Phase) {
	e := l.effort
	l.effort = effort{}
	if a.run.Tracer == nil || l.session == nil || e.steps == 0 {
		return
	}
	a.span(Span{
		Kind: SpanStage, Began: e.began, Ended: e.ended, Node: l.stage.Node, Layers: l.stage.Layers,
		Phase: p, Steps: e.steps, Rows: e.rows, Timing: e.timing, Slow: e.slow,
	})
}

// accountAll does so for all links.
func (a *Answer) accountAll(p Phase) {
	for _, l := range a.links {
		if l != nil {
			a.account(l, p)
		}
	}
}

// summarise tells the whole of an answer, once.
func (a *Answer) summarise() {
	if a.told {
		return
	}
	a.told = true
	a.accountAll(a.phase())
	a.span(Span{Kind: SpanAnswer, Began: a.began, Err: a.failed, Route: a.grant.Route.String(), Tokens: a.Generated(), Rescues: len(a.story.rescued)})
}

// phase is what steps are for as things stand.
func (a *Answer) phase() Phase {
	switch {
	case a.Generated() == 0:
		return Prefill
	case a.story.rescuing(), a.waitedAgain:
		return Replay
	}
	return Decode
}
