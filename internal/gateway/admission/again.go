package admission

import (
	"context"
	"errors"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
)

// Rescue replaces failed nodes in a grant. An answer of which nothing exists yet
// and whose node had no room after all is no patient: it goes back into the
// queue, before all others.
func (a *Admission) Rescue(ctx context.Context, n answer.Need, g answer.Grant, failed []answer.Failure, p answer.Progress) (answer.Grant, answer.RescueKind, error) {
	a.mu.Lock()
	t := a.ticketLocked(g)
	a.mu.Unlock()
	if p.Tokens == n.PromptTokens && onlyTurnedAway(failed) {
		g, err := a.again(ctx, t, n, failed)
		return g, answer.Again, err
	}
	inner, kind, err := a.Dispatcher.Rescue(ctx, n, t.inner, failed, p)
	if err != nil {
		return answer.Grant{}, "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	t.inner = inner
	return t.grant(), kind, nil
}

// onlyTurnedAway says that the nodes live and just could not take the answer.
func onlyTurnedAway(failed []answer.Failure) bool {
	for _, f := range failed {
		var refusal *stage.Error
		if f.Kind != answer.Refused || !errors.As(f.Err, &refusal) {
			return false
		}
		switch refusal.Code {
		case stage.CodeNoCells, stage.CodePaused, stage.CodeNotHeld:
		default:
			return false
		}
	}
	return len(failed) > 0
}

// again gives a grant back and waits for another under the same token. On error
// the token stands for nothing, and is still to be released.
func (a *Admission) again(ctx context.Context, t *ticket, n answer.Need, failed []answer.Failure) (answer.Grant, error) {
	a.Blame(n, failed)
	now := time.Now()
	w := &waiter{
		ctx: ctx, need: n, flow: flowKey{n.Key, 0}, cells: t.cells, start: again, again: t,
		arrived: t.arrived, result: make(chan result, 1),
	}
	a.mu.Lock()
	if t.held {
		t.held = false
		t.queue.pace.cancel(t.cells, t.began)
		a.Dispatcher.Release(t.inner)
	}
	if !t.sentBack {
		t.sentBack = true
		t.deadline = later(t.deadline, now.Add(a.limits.Again))
	}
	a.mu.counts.again++
	if !t.deadline.After(now) {
		defer a.mu.Unlock()
		return answer.Grant{}, a.refusalLocked(t.queue, w, NoRoom, nil, now)
	}
	w.deadline = t.deadline
	a.mu.next++
	w.seq = a.mu.next
	t.queue.add(w)
	a.passLocked(t.queue, now)
	a.attendLocked()
	a.mu.Unlock()
	return a.wait(w)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// regrantLocked is tryLocked for an answer that comes again.
func (a *Admission) regrantLocked(t *ticket, w *waiter, now time.Time) (*ticket, error) {
	g, err := a.Dispatcher.Choose(w.ctx, w.need)
	if err != nil {
		return nil, err
	}
	t.queue.outage = time.Time{}
	t.inner, t.held, t.began, t.cells = g, true, now, w.need.Room()
	t.leave, t.asked = make(chan struct{}), false
	t.queue.pace.begin(t.cells, now)
	return t, nil
}
