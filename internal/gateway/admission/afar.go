package admission

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"hecate/internal/gateway/dispatch"
)

// Several gateways may share nodes, and each admits only its own answers. So that
// the rule of grow.go holds over all of them, each tells the others of its oldest
// answer that wants room (Claims), and heeds what it is told (Heed): nobody who
// began later grows or is admitted meanwhile, and where a running answer lacks cells
// that younger answers of one other gateway have, those give way.
//
// Ages are compared over gateways, by time and then by name: one order, and so
// nobody waits for each other here either.

// An Age is when an answer was admitted, and where.
type Age struct {
	At      time.Time
	Gateway string
}

// Before says that an answer is older than another one.
func (a Age) Before(b Age) bool {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Gateway, b.Gateway)) < 0
}

// A Claim is what a gateway's answers of one model want.
type Claim struct {
	Oldest   time.Time      // that wants room which is not there; zero: none does
	Holds    bool           // it runs, and keeps what it has for a moment; else it has given all back
	Missing  map[string]int // by node: cells that it lacks, and that another gateway's answers are to give; nil: none are
	Youngest time.Time      // that holds room; zero: none does

	Growth map[string]dispatch.Growth // what those that run will ask for, by node
}

// Equal says that two claims want the same.
func (c Claim) Equal(d Claim) bool {
	return c.Oldest.Equal(d.Oldest) && c.Holds == d.Holds && c.Youngest.Equal(d.Youngest) && maps.Equal(c.Missing, d.Missing) && maps.Equal(c.Growth, d.Growth)
}

// Claims says what the answers of each model want; models of which nobody runs or
// waits in the middle are left out.
func (a *Admission) Claims() map[string]Claim {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]Claim{}
	for _, t := range a.mu.tickets {
		if c := out[t.queue.model]; t.held && t.admitted.After(c.Youngest) {
			c.Youngest = t.admitted
			out[t.queue.model] = c
		}
	}
	for model, c := range out {
		c.Growth = a.Dispatcher.Expected(model)
		out[model] = c
	}
	for _, q := range a.mu.queues {
		if t := q.eldest(); t != nil {
			c := out[q.model]
			c.Oldest, c.Holds, c.Missing = t.admitted, t.held, maps.Clone(q.pressing[t])
			out[q.model] = c
		}
	}
	return out
}

// Claimed gives a channel of capacity 1 that receives when the oldest answer that
// wants room is another one.
func (a *Admission) Claimed() <-chan struct{} { return a.claimed }

func (a *Admission) announceLocked() {
	select {
	case a.claimed <- struct{}{}:
	default:
	}
}

// eldest is the oldest answer that wants room and has none; nil: none does.
func (q *queue) eldest() (eldest *ticket) {
	for t := range q.pressing {
		if eldest == nil || t.token < eldest.token {
			eldest = t
		}
	}
	for _, w := range q.waiting {
		if w.begun() && w.unready.IsZero() && (eldest == nil || w.again.token < eldest.token) {
			eldest = w.again
		}
	}
	return eldest
}

// Heed takes what another gateway claims, by model; nil: it is gone.
func (a *Admission) Heed(gateway string, claims map[string]Claim) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for model := range claims {
		a.queueLocked(model)
	}
	now := time.Now()
	for model, q := range a.mu.queues {
		claim, before := claims[model], q.afar[gateway]
		if claim.Equal(before) {
			continue
		}
		if !maps.Equal(claim.Growth, before.Growth) {
			a.Dispatcher.ExpectAfar(gateway, model, claim.Growth)
		}
		if q.afar == nil {
			q.afar = map[string]Claim{}
		}
		if q.afar[gateway] = claim; claim.Equal(Claim{}) {
			delete(q.afar, gateway)
		}
		if !claim.Oldest.IsZero() && (!claim.Oldest.Equal(before.Oldest) || !maps.Equal(claim.Missing, before.Missing)) {
			a.Dispatcher.Crowd()
			a.clearAfarLocked(q, Age{claim.Oldest, gateway}, claim.Missing)
		}
		if len(q.waiting) > 0 {
			a.passLocked(q, now)
			a.attendLocked()
		}
	}
}

// clearAfarLocked asks answers that are younger than another gateway's to make the
// room that it lacks.
func (a *Admission) clearAfarLocked(q *queue, age Age, missing map[string]int) {
	if len(missing) > 0 {
		a.clearLocked(q, missing, func(o *ticket) bool { return age.Before(a.ageOf(o)) })
	}
}

func (a *Admission) ageOf(t *ticket) Age { return Age{t.admitted, a.limits.Gateway} }

// elderAfar says that an answer of another gateway wants room that was admitted
// before: any, or one that waits.
func (q *queue) elderAfar(age Age, waits bool) bool {
	for gateway, c := range q.afar {
		if !c.Oldest.IsZero() && !(waits && c.Holds) && (Age{c.Oldest, gateway}).Before(age) {
			return true
		}
	}
	return false
}

// wantedAfar says that any answer of another gateway wants room.
func (q *queue) wantedAfar() bool {
	for _, c := range q.afar {
		if !c.Oldest.IsZero() {
			return true
		}
	}
	return false
}

// youngerAfar says that another gateway has answers that were admitted later.
func (q *queue) youngerAfar(age Age) bool {
	for gateway, c := range q.afar {
		if !c.Youngest.IsZero() && age.Before(Age{c.Youngest, gateway}) {
			return true
		}
	}
	return false
}

// admittedLocked is now, and later than every answer that was admitted before: a
// clock that is set back must not turn their order round.
func (a *Admission) admittedLocked() time.Time {
	now := time.Now().Round(0)
	if !now.After(a.mu.latest) {
		now = a.mu.latest.Add(1)
	}
	a.mu.latest = now
	return now
}

// heldUp says that a request must wait for answers of other gateways.
func (a *Admission) heldUp(q *queue, w *waiter) bool {
	if w.begun() {
		return q.elderAfar(a.ageOf(w.again), false)
	}
	return q.wantedAfar()
}
