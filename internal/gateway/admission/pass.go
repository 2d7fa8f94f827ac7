package admission

import (
	"math"
	"time"

	"hecate/internal/gateway/answer"
)

// attendLocked sees to it that somebody attends to those who wait.
func (a *Admission) attendLocked() {
	if a.mu.serving {
		select {
		case a.poke <- struct{}{}:
		default:
		}
		return
	}
	a.mu.serving = true
	go a.serve()
}

// serve looks at the queues whenever something changed or is due, until nobody
// waits.
func (a *Admission) serve() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		changed := a.Changed() // before looking, or a change in between were missed
		next, busy := a.round()
		if !busy {
			return
		}
		timer.Reset(max(time.Nanosecond, time.Until(next))) // of 0 and in fake time it could crash the runtime under the race detector
		select {
		case <-changed:
		case <-timer.C:
		case <-a.poke:
		}
	}
}

// round passes through all queues and gives the time of the next one that is
// due by itself.
func (a *Admission) round() (next time.Time, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for _, q := range a.mu.queues {
		if len(q.waiting) == 0 {
			continue
		}
		a.passLocked(q, now)
		if t := q.due(a.limits); !t.IsZero() && (!busy || t.Before(next)) {
			next, busy = t, true
		}
	}
	a.mu.serving = busy
	return next, busy
}

// passLocked grants what can be granted and refuses those whose time is up. A
// refusal may let others through.
func (a *Admission) passLocked(q *queue, now time.Time) {
	a.grantLocked(q, now)
	if a.expireLocked(q, now) {
		a.grantLocked(q, now)
	}
}

// grantLocked goes through a queue in its order. Room is the same for all, so
// once a request found none only smaller ones are tried; and of those, only such
// as those before them still let pass.
func (a *Admission) grantLocked(q *queue, now time.Time) {
	if len(q.pressing) > 0 {
		return
	}
	p := pass{least: math.MaxInt, slack: math.MaxInt}
	for i := 0; i < len(q.waiting) && p.tries < a.limits.Tries; {
		w := q.waiting[i]
		if a.heldUp(q, w) {
			q.mark(w, room, nil, now)
			return // so are all behind it
		}
		if !p.admits(w, now) {
			p.skip(q, w, now)
		} else if done := a.tryOneLocked(q, w, &p, now); done {
			continue // w is gone
		}
		p.pay(w, a.limits, now)
		i++
	}
}

// tryOneLocked grants or refuses a request, or notes what it lacks.
func (a *Admission) tryOneLocked(q *queue, w *waiter, p *pass, now time.Time) (done bool) {
	p.tries++
	t, err := a.tryLocked(q, w, now)
	if t != nil {
		p.slack -= w.cells
		if !w.begun() {
			a.mu.counts.admit(now.Sub(w.arrived))
		}
		q.grant(w)
		if w.begun() {
			a.announceLocked()
		}
		w.result <- result{ticket: t}
		return true
	}
	l, reason := judge(err)
	if l == nothing {
		a.refuseLocked(q, w, reason, err, now)
		return true
	}
	p.least, p.lack, p.because = w.cells, l, err
	q.mark(w, l, err, now)
	return false
}

// pass is one way through a queue.
type pass struct {
	tries   int
	least   int     // cells of the smallest request that was not granted
	lack    lack    // what it lacked
	because error   // in the dispatcher's words
	slack   int     // cells that those before still let pass
	strict  *waiter // the one of them who lets pass least
}

// admits says whether a request may be tried. One that may not only because of
// somebody before it is held up by that one.
func (p *pass) admits(w *waiter, now time.Time) bool {
	if w.cells >= p.least {
		return false
	}
	if w.cells > p.slack {
		if p.strict.holding.IsZero() && !p.strict.begun() {
			p.strict.holding = now
		}
		return false
	}
	return true
}

// skip notes what a request lacks that is not tried: what even less lacks.
func (p *pass) skip(q *queue, w *waiter, now time.Time) {
	if p.lack == nodes && w.cells >= p.least {
		q.mark(w, nodes, p.because, now)
	}
}

// pay takes into account how much a request that stays lets pass. One that waits
// for nodes holds nobody up who needs less.
func (p *pass) pay(w *waiter, l Limits, now time.Time) {
	if t := w.yields(l); !t.IsZero() && !t.After(now) {
		w.holding, w.passed = time.Time{}, 0
	}
	left := w.cells - w.passed
	if w.begun() {
		left = 0
	}
	if w.unready.IsZero() && left < p.slack {
		p.slack, p.strict = left, w
	}
}

// expireLocked refuses those whose time is up.
func (a *Admission) expireLocked(q *queue, now time.Time) (any bool) {
	for i := 0; i < len(q.waiting); {
		w := q.waiting[i]
		switch {
		case q.ends(w, a.limits).After(now):
			i++
			continue
		case w.unready.IsZero():
			a.refuseLocked(q, w, NoRoom, nil, now)
		default:
			a.refuseLocked(q, w, NotReady, w.why, now)
		}
		any = true
	}
	return any
}

// refuseLocked takes a request out of its queue and tells it why.
func (a *Admission) refuseLocked(q *queue, w *waiter, reason Reason, because error, now time.Time) {
	err := a.refusalLocked(q, w, reason, because, now)
	q.drop(w)
	a.announceLocked()
	w.result <- result{err: err}
}

// refusalLocked words and counts a refusal; no reason means that the request is
// at fault.
func (a *Admission) refusalLocked(q *queue, w *waiter, reason Reason, because error, now time.Time) error {
	if reason == "" {
		return because
	}
	if w.begun() {
		return outOfTime(now.Sub(w.arrived), because)
	}
	a.mu.counts.refused[reason]++
	n, cells := q.ahead(w)
	r := &Refusal{Reason: reason, Model: q.model, Waited: now.Sub(w.arrived), Ahead: n, Midway: q.midway(n), Afar: q.wantedAfar(), Because: because}
	wait := q.pace.wait(cells, w.cells, now)
	switch reason {
	case TooLarge:
	case NotReady:
		// Of an outage one knows only how long it has lasted; as long again is
		// the best guess.
		r.Retry = min(max(now.Sub(q.outage), a.limits.LeastRetry), a.limits.MostRetry)
	case NoRoom:
		r.Retry = q.pace.promise(wait, w.cells, a.limits, now)
	default:
		// Then the same request would be served in time.
		r.Retry = q.pace.promise(wait-a.limits.Patience, w.cells, a.limits, now)
	}
	return r
}

// tryLocked asks the dispatcher, for all answers of a request at once: they would
// otherwise hold what each other waits for.
func (a *Admission) tryLocked(q *queue, w *waiter, now time.Time) (*ticket, error) {
	if w.again != nil {
		return a.regrantLocked(w.again, w, now)
	}
	grants, err := a.ChooseAll(w.ctx, w.need)
	if err != nil {
		return nil, alone(q, err)
	}
	q.outage = time.Time{}
	tickets := make([]*ticket, len(grants))
	for i, g := range grants {
		tickets[i] = a.admitLocked(q, w, g)
	}
	a.setAsideLocked(w, tickets[1:])
	return tickets[0], nil
}

// admitLocked registers one answer that the dispatcher granted.
func (a *Admission) admitLocked(q *queue, w *waiter, g answer.Grant) *ticket {
	now := time.Now()
	a.mu.next++
	t := &ticket{token: a.mu.next, queue: q, need: w.need, cells: w.need.Room(), deadline: w.deadline, inner: g, held: true, began: now, leave: make(chan struct{}), arrived: w.arrived, admitted: a.admittedLocked()}
	a.mu.tickets[t.token] = t
	q.pace.begin(t.cells, now)
	return t
}
