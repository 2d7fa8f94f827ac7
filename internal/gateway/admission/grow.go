package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
)

// Answers that run ask for more room as they get longer. Who was admitted first goes
// first: where an answer finds none, the youngest ones in its way are asked to give
// way, which they do between two tokens. One that nobody younger is in the way of
// gives way itself. Those that wait in the middle are served in the same order,
// before all that have not begun, and while one waits nobody younger grows.
//
// So nobody waits for each other: an answer that keeps its room waits only for
// younger ones, and not for long. And the oldest one always gets on: all room is
// its own if it wants it.

var (
	// errElder: an answer that was admitted before waits for room.
	errElder = fmt.Errorf("an answer that began before has no room: %w", dispatch.ErrFull)
	// errSoon: others are about to make room.
	errSoon = fmt.Errorf("others are about to make room: %w", dispatch.ErrFull)
)

// leaveTime is how long those who are in the way may take to go: the youngest may be
// reading a long prompt.
const leaveTime = 2 * time.Second

// Grow makes a grant reserve the need's room, on all its nodes or on none. An error
// wraps dispatch.ErrFull, or is the context's cause.
func (a *Admission) Grow(ctx context.Context, n answer.Need, g answer.Grant) error {
	err := a.growNow(ctx, n, g)
	if !errors.Is(err, errSoon) {
		return err
	}
	defer a.relent(g)
	timer := time.After(leaveTime)
	for {
		changed := a.Changed()
		if err := a.growNow(ctx, n, g); !errors.Is(err, errSoon) {
			return err
		}
		select {
		case <-changed:
		case <-g.Wanted:
			return errElder
		case <-timer:
			return errSoon
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pressLocked keeps the room that others are about to make from everybody who
// waits, until the answer relents. missing is what those of other gateways are to
// make, by node.
func (a *Admission) pressLocked(t *ticket, missing map[string]int) {
	if had, already := t.queue.pressing[t]; already && (had == nil) == (missing == nil) {
		return
	}
	if t.queue.pressing == nil {
		t.queue.pressing = map[*ticket]map[string]int{}
	}
	t.queue.pressing[t] = missing
	a.announceLocked()
}

func (a *Admission) relent(g answer.Grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.ticketLocked(g)
	q := t.queue
	delete(q.pressing, t)
	a.announceLocked()
	if len(q.waiting) > 0 {
		a.passLocked(q, time.Now())
		a.attendLocked()
	}
}

func (a *Admission) growNow(ctx context.Context, n answer.Need, g answer.Grant) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, now := a.ticketLocked(g), time.Now()
	if t.asked || t.queue.elder(t) || t.queue.elderAfar(a.ageOf(t), true) {
		return errElder
	}
	err := a.Dispatcher.Grow(ctx, n, t.inner)
	var full *dispatch.RoomError
	if errors.As(err, &full) && a.makeRoomLocked(t, full) {
		return errSoon
	}
	if err != nil {
		return err
	}
	if more := n.Room() - t.cells; more > 0 {
		t.began = t.queue.pace.grow(t.cells, more, t.began, now)
		t.cells += more
		t.queue.fair.bill(flowKey{n.Key, min(max(n.Priority, -MostPriority), MostPriority)}, more)
	}
	return nil
}

// makeRoomLocked sees to it that room is made for an answer that grows, and says
// whether somebody is about to.
func (a *Admission) makeRoomLocked(t *ticket, full *dispatch.RoomError) bool {
	switch {
	case full.Shadows > 0 || a.clearLocked(t.queue, full.Missing, func(o *ticket) bool { return o.token > t.token }):
		a.pressLocked(t, nil)
	case t.queue.pressing[t] != nil: // it was said already
	case t.queue.youngerAfar(a.ageOf(t)):
		a.pressLocked(t, full.Missing)
	default:
		return false
	}
	return true
}

// clearLocked asks younger answers to leave nodes on which cells are missing, the
// youngest first, and says whether that will be enough. If not it asks nobody.
func (a *Admission) clearLocked(q *queue, missing map[string]int, isYounger func(*ticket) bool) bool {
	var younger []*ticket
	for _, o := range a.mu.tickets {
		if o.queue == q && o.held && isYounger(o) {
			younger = append(younger, o)
		}
	}
	slices.SortFunc(younger, func(x, y *ticket) int { return cmp.Compare(y.token, x.token) })
	asked := map[*ticket]bool{}
	for node, cells := range missing {
		for _, o := range younger {
			if cells > 0 && o.inner.Route.Uses(node) {
				asked[o] = true
				cells -= o.cells
			}
		}
		if cells > 0 {
			return false
		}
	}
	for o := range asked {
		if !o.asked {
			o.asked = true
			close(o.leave)
		}
	}
	return true
}

// elder says that an answer waits in the middle that was admitted before.
func (q *queue) elder(t *ticket) bool {
	for _, w := range q.waiting {
		if w.begun() && w.unready.IsZero() && w.again.token < t.token {
			return true
		}
	}
	return false
}

// GiveWay gives back what an answer reserved that finds no room to grow, and waits
// for the need's room. On error the grant stands for nothing, and is still to be
// released.
func (a *Admission) GiveWay(ctx context.Context, n answer.Need, g answer.Grant, failed []answer.Failure) (answer.Grant, error) {
	if len(failed) > 0 {
		a.Blame(n, failed)
	}
	now := time.Now()
	a.mu.Lock()
	t := a.ticketLocked(g)
	if t.held {
		t.held = false
		t.queue.pace.cancel(t.cells, t.began)
		t.spent += float64(t.cells) * now.Sub(t.began).Seconds()
		a.Dispatcher.Release(t.inner)
	}
	if n.PromptTokens > t.reached {
		t.reached, t.deadline = n.PromptTokens, now.Add(a.limits.Midway)
	}
	w := &waiter{
		ctx: ctx, need: n, flow: flowKey{n.Key, 0}, cells: n.Room(), start: midway, seq: t.token, again: t,
		arrived: now, deadline: t.deadline, result: make(chan result, 1),
	}
	a.mu.counts.gaveWay++
	t.queue.add(w)
	a.announceLocked()
	a.passLocked(t.queue, now)
	a.attendLocked()
	a.mu.Unlock()
	return a.wait(w)
}

// outOfTime words why an answer that had begun waits no longer.
func outOfTime(waited time.Duration, because error) error {
	waited = waited.Round(time.Millisecond)
	if because != nil {
		return fmt.Errorf("it waited %s, and no copy can take it: %w", waited, because)
	}
	return fmt.Errorf("it gave way to others and waited %s for room", waited)
}
