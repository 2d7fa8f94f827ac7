package answer

import (
	"errors"
	"time"
)

// story is what befell one answer: the counters that the client is told and the
// events that are told.
type story struct {
	rescued  []Event // failures survived: a token came after each; only ever appended to
	attempts int     // rescues tried since the last token

	open     bool      // a failure was noticed and no token has come since
	failing  time.Time // when the first of them was noticed
	since    time.Time // when the token that was interrupted was asked for
	kind     RescueKind
	node     string
	position int
	replay   int // positions that the stages of the new route did not hold
	err      error
	before   *story // as it was when the newest failure was noticed
}

// asked notes that the next token is wanted from now on.
func (s *story) asked() { s.since = time.Now() }

// rescuing says that a failure was noticed and no token has come since.
func (s *story) rescuing() bool { return s.open }

func (s *story) noticed(f *stageError, position int) {
	before := *s
	before.before = nil // one is enough
	s.before = &before
	if s.attempts++; s.attempts == 1 {
		s.failing = time.Now()
	}
	s.open, s.node, s.err, s.position, s.replay = true, f.node, f, position, 0
}

// nothingHappened takes back what was noticed last: it was no failure.
func (s *story) nothingHappened() { *s = *s.before }

// replays notes how far behind a stage of the new route is.
func (s *story) replays(rows int) { s.replay = max(s.replay, rows) }

func (s *story) goesOn(kind RescueKind) { s.kind = kind }

// resumed is called with every token.
func (s *story) resumed(a *Answer) {
	if !s.open {
		return
	}
	s.open, s.attempts = false, 0
	e := Event{Job: a.job.ID, Kind: "rescued", Rescue: s.kind, Node: s.node, Position: s.position, Replay: s.replay, Gap: time.Since(s.since), Err: s.err}
	s.rescued = append(s.rescued, e)
	a.span(Span{Kind: SpanRescue, Began: s.since, Node: e.Node, Rescue: e.Rescue, Position: e.Position, Replayed: e.Replay, Err: e.Err})
	a.publish()
	a.tell(e)
}

func (s *story) lost(a *Answer, err error) {
	if a.ctx.Err() != nil || errors.Is(err, ErrRefused) || a.job.StandIn && a.Generated() == 0 {
		return // nobody waits for it, nothing of it ever was, or another model answers
	}
	a.tell(Event{Job: a.job.ID, Kind: "lost", Rescue: s.kind, Node: s.node, Position: len(a.tokens), Err: err})
}

func (a *Answer) tell(e Event) {
	if a.run.Events != nil {
		a.run.Events(e)
	}
}

// hedged tells that this answer is the second try and was faster than the first.
func (a *Answer) hedged(slow string) {
	a.tell(Event{Job: a.job.ID, Kind: "rescued", Rescue: Hedge, Node: slow, Position: len(a.job.Prompt)})
}
