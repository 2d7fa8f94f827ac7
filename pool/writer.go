package pool

import (
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// writer is one long-lived connection to one endpoint of a group. What it is
// (the first block) never changes; each other block has one owner.
type writer struct {
	id         uint64
	pool       *Pool
	group      *group
	family     Family
	endpoint   Endpoint
	generation uint64
	link       *link
	born       time.Time

	// Copies for readers without a lock.
	sessions  atomic.Int64
	idleSince atomic.Int64 // Unix nanoseconds; 0 while there are sessions
	measured  atomic.Bool  // a round trip is known

	// The pool's, under its lock.
	contour    contour
	drainStart time.Time
	drainWhy   string
	drainTold  bool      // drain_ttl has been warned about
	retiring   time.Time // the link was told to end then
	stale      bool      // of an older generation, kept because its group is not covered
	staleUntil time.Time // zero: without end
	refreshAt  time.Duration
	rotate     bool // to be replaced whether idle or not

	// The registry's, under its lock.
	seat seat
}

func (w *writer) pair() pairKey { return pairKey{w.group.name, w.family} }

// find implements linkOwner: a session that is bound elsewhere is unknown here.
func (w *writer) find(id uint64) *session {
	if s := w.pool.reg.find(id); s != nil && s.on() == w.link {
		return s
	}
	return nil
}

// open implements linkOwner: a gateway serves nobody.
func (w *writer) open(uint64, wire.Open) bool { return false }

// goAway implements linkOwner: no bind may meet the writer from here on.
func (w *writer) goAway(r wire.Reason) {
	w.pool.reg.refuse(w)
	w.link.markDraining()
	w.pool.peerGoesAway(w, r)
}

func (w *writer) wanted(int) {}

// doubtAfter implements linkOwner: only somebody who waits has doubts.
func (w *writer) doubtAfter() time.Duration {
	if w.group.sessions.Load() == 0 {
		return 0
	}
	return w.pool.doubtAfter(w.group)
}

func (w *writer) overdue(sent time.Time) { w.pool.suspect(w.group, sent) }

func (w *writer) answered(took time.Duration) {
	w.group.trips.sample(took)
	if !w.measured.Swap(true) {
		w.pool.poke()
	}
}

func (w *writer) healthChanged() {
	kind := EventWriterHealthy
	if w.link.degraded.Load() {
		kind = EventWriterDegraded
	}
	w.pool.event(w.describe(kind))
}

// tick implements linkOwner: it ends sessions whose consumer stopped.
func (w *writer) tick(now time.Time) {
	if w.sessions.Load() == 0 {
		return
	}
	for _, s := range w.pool.reg.sessionsOf(w) {
		endStalledSession(s, now)
	}
}

// lost implements linkOwner. The sessions hear of it first: they are what
// somebody waits for.
func (w *writer) lost(f *linkFault) {
	count, idleSince := w.pool.reg.activity(w)
	for _, s := range w.pool.reg.lose(w) {
		s.end(&CloseError{Code: CodeLost, Detail: f.detail, Silent: f.why == lossSilent}, endLost, false, nil)
	}
	idle := time.Duration(0)
	if count == 0 && !idleSince.IsZero() {
		idle = time.Since(idleSince)
	}
	w.pool.writerGone(w, f, idle)
}

func (w *writer) health() string {
	if w.link.degraded.Load() {
		return "degraded"
	}
	return "healthy"
}

// describe fills an event with what the writer is.
func (w *writer) describe(kind EventKind) Event {
	return Event{
		Kind: kind, Group: w.group.name, Family: w.family, Endpoint: w.endpoint.Addr,
		Writer: w.id, Generation: w.generation,
	}
}
