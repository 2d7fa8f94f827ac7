package answer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"hecate/internal/stage"
)

// Most answers end long before they must. So an answer reserves cells for its
// prompt and a first portion of what it may say, and grows just before they are
// used up: first in the router's books, then at the nodes. A portion is as much as
// it has room for already, within bounds: few growths, and little that is reserved
// in vain.
//
//	             grow
//	 run ────────────────────► run
//	  │ no room
//	  ▼
//	give way: all room of all nodes ──► wait in the queue ──► run, by replay
//
// An answer that finds no room keeps none either, or answers that all want to grow
// would wait for each other for ever. So does one whose room is wanted for an older
// one. What it has said stays said; when there is room for it and a further
// portion, the tokens are computed once more, like after a death, only that nothing
// failed.

// mostPortions is the largest portion, in first ones.
const mostPortions = 4

// needOf is what a job needs at its beginning.
func (l Limits) needOf(j Job) Need {
	n := Need{Job: j.ID, Model: j.Model, Layers: j.Layers, PromptTokens: len(j.Prompt), OutputTokens: j.MaxTokens, StandIn: j.StandIn, Caller: j.Caller}
	n.Cells, n.Next = n.PromptTokens, l.portion(0, j.MaxTokens)
	return l.grown(n)
}

// portion is how much more output gets room when there is some for have of most.
func (l Limits) portion(have, most int) int {
	return min(min(max(have, l.Portion), mostPortions*l.Portion), most-have)
}

// grown is a need with its next portion.
func (l Limits) grown(n Need) Need {
	n.Cells += n.Next
	n.Next = l.portion(n.Cells-n.PromptTokens, n.OutputTokens)
	return n
}

// ready opens the stages that are not open, and sees to it that all of them have
// room for the tokens so far and the next one.
func (a *Answer) ready() error {
	for {
		if err := a.reopen(); err != nil {
			return err
		}
		if ok, err := a.roomy(); ok || err != nil {
			return err
		}
	}
}

// reopen is connect; an answer that was just given room asks for it several times.
func (a *Answer) reopen() error {
	for try, pause := 1, growPause; ; try, pause = try+1, 2*pause {
		err := a.connect(a.story.rescuing())
		var refusal *stage.Error
		if !a.waitedAgain || try == growTries || !errors.As(err, &refusal) || refusal.Code != stage.CodeNoCells {
			return err
		}
		if err := rest(a.ctx, pause); err != nil {
			return err
		}
	}
}

// errWanted is why an answer gave way that had all the room it needed.
var errWanted = errors.New("an answer that began before has no room to grow")

// roomy makes room, or says that there are stages to be opened again.
func (a *Answer) roomy() (bool, error) {
	select {
	case <-a.grant.Wanted:
		if a.Generated() > 0 && a.run.Queue != nil {
			return false, a.giveWay(nil, errWanted)
		}
	default:
	}
	if want := min(len(a.tokens)+1, a.need.PromptTokens+a.need.OutputTokens); want > a.need.Room() {
		next := a.limits.grown(a.need)
		if err := a.run.Router.Grow(a.ctx, next, a.grant); err != nil {
			return false, a.giveWay(nil, err)
		}
		a.need = next
	}
	return a.growStages(a.need.Room())
}

// growStages asks all nodes whose stages have fewer cells, at once. A node that
// cannot grow loses its stage, to be opened anew with more room.
func (a *Answer) growStages(cells int) (bool, error) {
	var g *errgroup.Group
	open := true
	for i, l := range a.links {
		switch {
		case l.room >= cells:
		case !l.grows:
			a.leave(i)
			open = false
		default:
			if g == nil {
				g = &errgroup.Group{}
			}
			g.Go(func() error { return a.growLink(a.ctx, l, cells) })
		}
	}
	if g == nil {
		return open, nil
	}
	return open, g.Wait()
}

// A node has the cells of an answer that just ended within milliseconds, but
// perhaps not yet when the next one asks for them.
const (
	growPause = 10 * time.Millisecond // doubled after each try
	growTries = 5
)

// growLink asks a node for cells until it has them, or has refused several times.
func (a *Answer) growLink(ctx context.Context, l *link, cells int) error {
	ctx, done := l.under(ctx)
	defer done()
	for try, pause := 1, growPause; ; try, pause = try+1, 2*pause {
		if err := l.grow(ctx, cells, a.patience(l, 1)); err != nil || l.room >= cells {
			return err
		}
		if try == growTries {
			return l.fail(&stage.Error{Code: stage.CodeNoCells, Message: fmt.Sprintf("%d cells are wanted, and there is no room for more than %d", cells, l.room)})
		}
		if err := rest(ctx, pause); err != nil {
			return l.fail(err)
		}
	}
}

// leave ends a stage.
func (a *Answer) leave(i int) {
	if l := a.links[i]; l != nil {
		a.account(l, a.phase())
		l.end()
		a.links[i] = nil
	}
}

// turnedAway says that a node lives and just has no room for what the answer was
// about to do. While a rescue is under way that is the rescue's business, unless
// the node has the stage already.
func (a *Answer) turnedAway(f *stageError) bool {
	var refusal *stage.Error
	if a.run.Queue == nil || a.Generated() == 0 || f.kind != Refused || !errors.As(f.err, &refusal) {
		return false
	}
	switch refusal.Code {
	case stage.CodeNoCells:
		return a.links[f.stage] != nil || !a.story.rescuing()
	case stage.CodePaused, stage.CodeNotHeld:
		return a.waitedAgain && !a.story.rescuing()
	}
	return false
}

// giveWay leaves all nodes, waits until there is room, and follows whatever route
// that is on.
func (a *Answer) giveWay(failed []Failure, because error) error {
	if a.run.Queue == nil {
		return fmt.Errorf("answer %s at token %d: %w: %w", a.job.ID, a.Generated(), ErrNoRoom, because)
	}
	began := time.Now()
	a.clear()
	for i := range a.links {
		a.leave(i)
	}
	clear(a.sessions)
	for a.need.Next > 0 && a.need.Room()-len(a.tokens) < a.limits.Portion {
		a.need = a.limits.grown(a.need)
	}
	a.waitedAgain = true
	a.tell(Event{Job: a.job.ID, Kind: "gave way", Position: len(a.tokens), Err: because})
	n := a.need
	n.PromptTokens, n.OutputTokens = len(a.tokens), max(1, n.PromptTokens+n.OutputTokens-len(a.tokens))
	n.Begun, n.Rescue = true, a.story.rescuing()
	grant, err := a.run.Queue.GiveWay(a.ctx, n, a.grant, failed)
	if err != nil {
		if a.ctx.Err() != nil {
			return context.Cause(a.ctx)
		}
		return fmt.Errorf("answer %s at token %d: %w: %s", a.job.ID, a.Generated(), ErrNoRoom, err.Error()) // not wrapped: it was no refusal
	}
	a.grant = grant
	a.publish()
	a.span(Span{Kind: SpanQueue, Began: began, Route: grant.Route.String()})
	switch {
	case !a.story.rescuing():
	case a.Generated() == 0:
		a.story.goesOn(Reroute)
	default:
		a.story.goesOn(Copy)
	}
	a.follow(grant.Route)
	return nil
}
