package answer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// retryPause is how long a rescue without a way waits before it looks again:
// nodes come back.
const retryPause = 100 * time.Millisecond

// rescue finds a way on after a failed attempt. It returns nil when the attempt
// may be repeated on the route that stands now, else the error that ends the answer.
func (a *Answer) rescue(err error) error {
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	var failed *stageError
	if !errors.As(err, &failed) {
		return err
	}
	if a.turnedAway(failed) {
		return a.giveWay([]Failure{failed.failure()}, failed)
	}
	if fatal := a.condemn(failed); fatal != nil {
		return fatal
	}
	a.story.noticed(failed, len(a.tokens))
	a.acquit()
	before := a.abandon(failed)
	others := a.run.casualties.others(failed.node, a)
	failure := failed.failure()
	if failed.kind == Gone && !errors.Is(failed.err, errNodeDead) {
		again := a.reconnect(failed)
		if again == nil {
			return a.resume(failed, others, before)
		}
		if again.kind == Refused { // it lives, but it is another process than before
			failure.Kind = Refused
		}
	}
	if err := a.bury(failed, others); err != nil {
		return err
	}
	return a.reroute(failed.stage, failure)
}

// condemn says whether a failure ends the answer: too many rescues of one token
// for too long, or an answer that no other node could give better. Tries alone
// end nothing: nodes that are full for a moment use them up within another.
func (a *Answer) condemn(f *stageError) error {
	var refusal *stage.Error
	if errors.As(f.err, &refusal) && (refusal.Code == stage.CodeNotFinite || refusal.Code == stage.CodeBad) {
		return fmt.Errorf("answer %s at token %d: %w", a.job.ID, a.Generated(), f)
	}
	if a.story.attempts < a.limits.Tries {
		return nil
	}
	if time.Since(a.story.failing) >= a.limits.RescueTime {
		return fmt.Errorf("answer %s: %w after %d rescues: %w", a.job.ID, ErrNoWayOn, a.story.attempts, f)
	}
	return a.pause()
}

// resume goes on at the node whose connection broke: with the state that its
// process kept, or, if the process is not the one of before, from the beginning.
// A rescue whose node was only now to be opened stays the rescue that it was.
func (a *Answer) resume(f *stageError, others int, before *link) error {
	l := a.links[f.stage]
	switch {
	case before == nil && a.story.attempts > 1:
		a.story.replays(len(a.tokens) - 1 - l.held)
		return nil
	case before == nil || before.process == "" || before.process == l.process:
		a.story.goesOn(Reconnect)
		return nil
	}
	if err := a.bury(f, others); err != nil {
		return err
	}
	a.story.goesOn(Revival)
	a.story.replays(len(a.tokens) - 1 - l.held)
	return nil
}

// abandon drops the link that failed, if the stage was open.
func (a *Answer) abandon(f *stageError) *link {
	l := a.links[f.stage]
	if l != nil {
		a.account(l, a.phase())
		a.strikes(l.order)
		switch {
		case errors.Is(f.err, errNonsense):
			l.end()
		case f.kind != Refused:
			a.orphaned(l)
			fallthrough
		default:
			l.drop()
		}
		a.links[f.stage] = nil
	}
	return l
}

// reconnects is how many connections to one node may break one after the other
// before its answer goes elsewhere: when all of them are reset, the others may not
// have noticed yet.
const reconnects = 8

// reconnect goes to the same node over another connection; a node that kept the
// state resumes without replay. Whether it is there at all, the opener finds out.
func (a *Answer) reconnect(f *stageError) (failed *stageError) {
	a.bear()
	stages := a.grant.Route.Stages
	for range reconnects {
		l, err := a.begin(a.ctx, &link{index: f.stage, stage: stages[f.stage], last: f.stage == len(stages)-1, again: true, sent: -1}, true)
		if err == nil {
			a.links[f.stage] = l
			return nil
		}
		errors.As(err, &failed) // begin fails with nothing else
		if failed.kind != Gone || errors.Is(err, ErrNoConnection) || errors.Is(err, errNodeDead) || a.ctx.Err() != nil {
			break
		}
	}
	return failed
}

// reroute asks the router for a route without the failed node, and keeps asking
// while time remains: a node may return.
func (a *Answer) reroute(stage int, f Failure) error {
	deadline := time.Now().Add(a.limits.RescueTime)
	for again := false; ; again = true {
		progress := Progress{Tokens: len(a.tokens), Again: again, StatesKept: a.statesKept(stage)}
		progress.Warm, progress.Standbys = a.warmth(a.grant.Route.Stages[stage].Node)
		grant, kind, err := a.run.Router.Rescue(a.ctx, a.need, a.grant, []Failure{f}, progress)
		if err == nil {
			a.adopt(grant, kind)
			return nil
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if errors.Is(err, ErrFull) && again && a.run.Queue != nil {
			return a.giveWay(nil, err) // it may be in the way of those whom it waits for
		}
		if !errors.Is(err, swarm.ErrUnrecoverable) && !errors.Is(err, swarm.ErrNoRoute) || time.Now().After(deadline) {
			return fmt.Errorf("answer %s: %w: %w", a.job.ID, ErrNoWayOn, err)
		}
		if err := a.pause(); err != nil {
			return err
		}
	}
}

// statesKept says whether a substitute for a stage could be fed from the log.
func (a *Answer) statesKept(stage int) bool {
	if stage == 0 {
		return true // its input is the tokens
	}
	base, _ := a.logs[a.grant.Route.Stages[stage].Layers.First].span()
	return base == 0
}

func (a *Answer) adopt(g Grant, kind RescueKind) {
	a.grant = g
	a.publish()
	switch {
	case kind == Again:
		a.story.nothingHappened()
	case a.Generated() == 0:
		a.story.goesOn(Reroute)
	default:
		a.story.goesOn(kind)
	}
	a.takeOver(g.Route)
	a.follow(g.Route)
}

func (a *Answer) pause() error {
	t := time.NewTimer(retryPause)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-a.ctx.Done():
		return context.Cause(a.ctx)
	}
}
