package control

import (
	"maps"
	"slices"
	"time"
)

// Liveness is the swarm's one idea of how long silence may last.
type Liveness struct {
	Interval time.Duration // between two reports of a healthy node; 0: 1 s
	Suspect  time.Duration // silence after which two reports were missed; 0: 2.1 s
	// Dead is the silence after which it is dead; 0: 2.4 s, so that the verdict
	// is known within 2.5 s also on a busy machine.
	Dead time.Duration
	// Gap is how late one's own clock tick may come before one suspects
	// oneself (a stopped process, a machine that slept); 0: 1 s.
	Gap time.Duration
	// Settle is how long after a reset a report may still be one that was on
	// its way when the node died; 0: 300 ms.
	Settle time.Duration
}

func (l Liveness) withDefaults() Liveness {
	fill := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	fill(&l.Interval, time.Second)
	fill(&l.Suspect, 2*l.Interval+l.Interval/10)
	fill(&l.Dead, 24*l.Interval/10)
	fill(&l.Gap, time.Second)
	fill(&l.Settle, 300*time.Millisecond)
	return l
}

// tickEvery is how often the roster wants to see the clock, at most: often
// enough to notice that the process itself stood still.
func (l Liveness) tickEvery() time.Duration { return l.Gap / 4 }

// Status is what the evidence says about a node.
//
//	         report                silence               silence, reset
//	Unheard --------> Alive  <---------------> Suspect ------------------> Dead
//	                    ^        report                                      |
//	                    +------------- fresh report, newer incarnation -----+
//	any --goodbye or removal--> Left --newer incarnation--> Alive
type Status int

const (
	// StatusUnheard: enrolled, but this observer has not heard of it yet.
	StatusUnheard Status = iota
	// StatusAlive: heard recently.
	StatusAlive
	// StatusSuspect: two reports missed; still used where nothing else is.
	StatusSuspect
	// StatusDead: silent for too long, or its connection was reset.
	StatusDead
	// StatusLeft: it said goodbye, or was removed.
	StatusLeft
)

func (s Status) String() string {
	switch s {
	case StatusUnheard:
		return "unheard"
	case StatusAlive:
		return "alive"
	case StatusSuspect:
		return "suspect"
	case StatusDead:
		return "dead"
	case StatusLeft:
		return "left"
	}
	panic("BUG: no such status")
}

// Living reports whether a node in this status may be used.
func (s Status) Living() bool { return s == StatusAlive || s == StatusSuspect }

// A Member is a node as one observer sees it.
type Member struct {
	ID      string
	Record  *NodeRecord // nil: not in the store (yet)
	Health  *Health     // the newest report; nil: none
	Status  Status
	Since   time.Time // when Status began
	Heard   time.Time // when the newest evidence of life arrived
	resetAt time.Time // of the reset that killed it; zero otherwise
}

// incarnation is the newest one that is known of, from either source.
func (m *Member) incarnation() uint64 {
	var n uint64
	if m.Record != nil {
		n = m.Record.Incarnation
	}
	if m.Health != nil {
		n = max(n, m.Health.Incarnation)
	}
	return n
}

// A Roster decides who is alive. It is pure: evidence and the time come in,
// events come out. All times must carry the same clock and never go back. The
// zero value is not ready; use NewRoster.
type Roster struct {
	live     Liveness
	members  map[string]*Member
	lastTick time.Time // when the clock was last seen; zero: never
	// grace is the end of the window that everyone was given because the
	// observer itself had stood still: what was not heard before it may be our own
	// fault.
	grace time.Time
	// due is when the next silence may mean something: never later than the
	// earliest deadline of a living member, often earlier. It spares a sweep
	// over a thousand members for each report.
	due time.Time
	// known is set once the store's records are complete: until then a report
	// of an unknown node is kept, afterwards it is a ghost's.
	known bool
}

// NewRoster returns an empty roster; zero fields of l mean the defaults.
func NewRoster(l Liveness) *Roster {
	return &Roster{live: l.withDefaults(), members: map[string]*Member{}}
}

// Hear takes in one report.
func (r *Roster) Hear(now time.Time, h *Health) []Event {
	events := r.Tick(now)
	m := r.members[h.Node]
	if m == nil {
		if r.known {
			return events // not enrolled, or forgotten: a ghost
		}
		m = &Member{ID: h.Node, Since: now}
		r.members[h.Node] = m
	}
	if h.Incarnation < m.incarnation() && !h.Leaving {
		return append(events, Ghost{Node: m.ID, Incarnation: h.Incarnation, Current: m.incarnation()})
	}
	if !r.fresh(now, m, h) {
		return events
	}
	m.Health = h
	if h.Leaving {
		return append(events, r.leave(now, m, false)...)
	}
	m.Heard = now
	return append(events, r.revive(now, m)...)
}

// fresh refuses ghosts, repetitions, and what was already on its way when the
// connection broke.
func (r *Roster) fresh(now time.Time, m *Member, h *Health) bool {
	if m.Record != nil && m.Record.Desired == DesiredRemoved {
		return false
	}
	if h.Incarnation != m.incarnation() {
		return h.Incarnation > m.incarnation()
	}
	if m.Health != nil && m.Health.Incarnation == h.Incarnation {
		if h.Sequence <= m.Health.Sequence || m.Status == StatusLeft {
			return false
		}
	}
	return m.Status != StatusDead || m.resetAt.IsZero() || h.Leaving || now.Sub(m.resetAt) >= r.live.Settle
}

// Confirm takes in a direct answer of a node: as good as a report.
func (r *Roster) Confirm(now time.Time, id string, incarnation uint64) []Event {
	events := r.Tick(now)
	m := r.members[id]
	if m == nil || m.Status == StatusLeft || m.Health == nil || incarnation != m.incarnation() {
		return events
	}
	m.Heard = now
	return append(events, r.revive(now, m)...)
}

// Reset takes in what the data plane saw: the node's connections broke, and no new
// one is answered. It is dead at once, unless we stood still ourselves a moment
// ago: then we may not have listened, and silence has to prove it.
func (r *Roster) Reset(now time.Time, id string) []Event {
	return r.lose(now, id, CauseReset)
}

// Refuse takes in that the node's connections broke, and that nobody is where it
// was: new ones are refused. That needs no clock, so it is believed always.
func (r *Roster) Refuse(now time.Time, id string) []Event {
	return r.lose(now, id, CauseRefused)
}

func (r *Roster) lose(now time.Time, id string, cause Cause) []Event {
	events := r.Tick(now)
	m := r.members[id]
	if m == nil || !m.Status.Living() || cause == CauseReset && now.Before(r.grace) {
		return events
	}
	return append(events, r.die(now, m, cause)...)
}

// Tick lets time pass.
func (r *Roster) Tick(now time.Time) []Event {
	if !r.lastTick.IsZero() && now.Sub(r.lastTick) > r.live.Gap {
		r.Excuse(now)
	}
	r.lastTick = now
	if now.Before(r.due) {
		return nil
	}
	return r.sweep(now)
}

// sweep looks at everybody's silence, and at when to look again.
func (r *Roster) sweep(now time.Time) []Event {
	var events []Event
	r.due = now.Add(r.live.Suspect)
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		m := r.members[id]
		switch silence := now.Sub(m.Heard); {
		case m.Status.Living() && silence >= r.live.Dead:
			events = append(events, r.die(now, m, CauseSilence)...)
		case m.Status == StatusAlive && silence >= r.live.Suspect:
			events = append(events, r.suspect(now, m)...)
		}
		if m.Status.Living() {
			r.watch(m)
		}
	}
	return events
}

// watch sees to it that a living member's silence is noticed in time.
func (r *Roster) watch(m *Member) {
	deadline := m.Heard.Add(r.live.Dead)
	if m.Status == StatusAlive {
		deadline = m.Heard.Add(r.live.Suspect)
	}
	if deadline.Before(r.due) {
		r.due = deadline
	}
}

// Excuse gives every living node one fresh window, because the observer stood
// still. Others may have given up on it meanwhile, so connections that broke and
// are not answered prove nothing either for that long.
func (r *Roster) Excuse(now time.Time) {
	r.grace = now.Add(r.live.Dead)
	r.Deaf(now)
}

// Deaf gives every living node one fresh window, because the observer has
// evidence that it would not hear them. A reset still counts: it was seen on
// another way.
func (r *Roster) Deaf(now time.Time) {
	for _, m := range r.members {
		if m.Status.Living() {
			m.Heard = now
		}
	}
}

// Next is when the roster must see the clock again at the latest.
func (r *Roster) Next(now time.Time) time.Time {
	next := now.Add(r.live.tickEvery())
	if r.due.Before(next) {
		return r.due
	}
	return next
}

// Enrolled takes in what the store says of a node.
func (r *Roster) Enrolled(now time.Time, rec *NodeRecord) []Event {
	m := r.members[rec.ID]
	if m == nil {
		m = &Member{ID: rec.ID, Since: now}
		r.members[rec.ID] = m
	}
	m.Record = rec
	switch {
	case rec.Desired == DesiredRemoved:
		return r.leave(now, m, true)
	case m.Status.Living() && m.Health != nil && rec.Incarnation > m.Health.Incarnation:
		// It registered anew, which is refused while the old one answers: what
		// the old one held is gone.
		return r.die(now, m, CauseRestart)
	}
	if m.Status == StatusLeft && (m.Health == nil || rec.Incarnation > m.Health.Incarnation) {
		r.enter(now, m, StatusUnheard)
	}
	return nil
}

// Forgotten takes in that the store no longer knows a node.
func (r *Roster) Forgotten(now time.Time, id string) []Event {
	m := r.members[id]
	if m == nil {
		return nil
	}
	events := r.leave(now, m, true)
	delete(r.members, id)
	return events
}

// Complete says that every record of the store has been told: reports of
// other nodes are ghosts' from now on.
func (r *Roster) Complete(now time.Time) []Event {
	r.known = true
	var events []Event
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		if r.members[id].Record == nil {
			events = append(events, r.Forgotten(now, id)...)
		}
	}
	return events
}

// Members returns copies of all members in id order.
func (r *Roster) Members() []Member {
	out := make([]Member, 0, len(r.members))
	for _, id := range slices.Sorted(maps.Keys(r.members)) {
		out = append(out, *r.members[id])
	}
	return out
}

// The transitions. Nothing else assigns a status.

func (r *Roster) enter(now time.Time, m *Member, s Status) {
	m.Status, m.Since, m.resetAt = s, now, time.Time{}
}

func (r *Roster) revive(now time.Time, m *Member) []Event {
	was, since := m.Status, m.Since
	if was == StatusAlive {
		return nil
	}
	r.enter(now, m, StatusAlive)
	r.watch(m)
	switch was {
	case StatusUnheard, StatusLeft:
		return []Event{Joined{Node: m.ID, Incarnation: m.incarnation()}}
	case StatusSuspect, StatusDead:
		return []Event{Returned{Node: m.ID, After: now.Sub(since), WasDead: was == StatusDead}}
	}
	panic("BUG: no way to live from " + was.String())
}

func (r *Roster) suspect(now time.Time, m *Member) []Event {
	if m.Status != StatusAlive {
		panic("BUG: no way to suspect from " + m.Status.String())
	}
	r.enter(now, m, StatusSuspect)
	return []Event{Suspected{Node: m.ID, Silence: now.Sub(m.Heard)}}
}

func (r *Roster) die(now time.Time, m *Member, cause Cause) []Event {
	if !m.Status.Living() {
		panic("BUG: no way to die from " + m.Status.String())
	}
	r.enter(now, m, StatusDead)
	if cause == CauseReset || cause == CauseRefused {
		m.resetAt = now
	}
	return []Event{Died{Node: m.ID, Cause: cause, Silence: now.Sub(m.Heard)}}
}

func (r *Roster) leave(now time.Time, m *Member, removed bool) []Event {
	if m.Status == StatusLeft {
		return nil
	}
	unheard := m.Status == StatusUnheard
	r.enter(now, m, StatusLeft)
	if unheard {
		return nil
	}
	return []Event{Left{Node: m.ID, Removed: removed}}
}
