package pool

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// registry is the only source of truth for who is bound where. One lock
// linearises binds, the publication of writers and the closing of replacement
// victims; reads on the hot path (find, activity copies) take none.
//
// Every operation is idempotent. Nothing in here blocks or calls out.
type registry struct {
	index slots
	mu    sync.Mutex
	open  atomic.Int64 // registered sessions
}

// binding is a session's part of the registry, guarded by its lock.
type binding struct {
	registered bool
	w          *writer  // nil: unbound
	prev, next *session // among the sessions of w
}

// seat is a writer's part of the registry, guarded by its lock.
type seat struct {
	published   bool // binds may meet it
	refusing    bool // no new binds
	first       *session
	count       int       // sessions in the list of first
	idleSince   time.Time // non-zero exactly when count is 0
	replacement replacement
}

// Why a bind was refused.
var (
	errUnknownSession = errors.New("session is not registered")
	errUnpublished    = errors.New("writer is not published")
	errRefusing       = errors.New("writer takes no new sessions")
	errNoSlots        = errors.New("all session slots are taken")
)

func (r *registry) find(id uint64) *session { return r.index.find(id) }

// register makes a session with a new id and puts it into the index.
func (r *registry) register(make func(id uint64) *session) (*session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, ok := r.index.reserve()
	if !ok {
		return nil, errNoSlots
	}
	s := make(id)
	s.bound.registered = true
	r.index.place(s)
	r.open.Add(1)
	return s, nil
}

// unregister takes the session out of the index and off its writer.
func (r *registry) unregister(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.bound.registered {
		return
	}
	r.unbindLocked(s)
	s.bound.registered = false
	r.index.vacate(s)
	r.open.Add(-1)
}

// bind ties the session to the writer, moving it there if it was bound
// elsewhere. A refusal changes nothing.
func (r *registry) bind(s *session, w *writer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case !s.bound.registered:
		return errUnknownSession
	case !w.seat.published:
		return errUnpublished
	case w.seat.refusing:
		return errRefusing
	case s.bound.w == w:
		return nil
	}
	r.unbindLocked(s)
	s.bound.w = w
	s.bound.next = w.seat.first
	if w.seat.first != nil {
		w.seat.first.bound.prev = s
	}
	w.seat.first = s
	r.countLocked(w, 1)
	return nil
}

// unbindLocked takes the session off its writer, if any.
func (r *registry) unbindLocked(s *session) {
	b := &s.bound
	if b.w == nil {
		return
	}
	if b.prev != nil {
		b.prev.bound.next = b.next
	} else {
		b.w.seat.first = b.next
	}
	if b.next != nil {
		b.next.bound.prev = b.prev
	}
	r.countLocked(b.w, -1)
	b.w, b.prev, b.next = nil, nil, nil
}

func (r *registry) countLocked(w *writer, by int) {
	w.seat.count += by
	if w.seat.count == 0 {
		w.seat.idleSince = time.Now()
		w.idleSince.Store(w.seat.idleSince.UnixNano())
	} else {
		w.seat.idleSince = time.Time{}
		w.idleSince.Store(0)
	}
	w.sessions.Store(int64(w.seat.count))
	w.group.sessions.Add(int64(by))
	w.group.lastUse.Store(time.Now().UnixNano())
}

// publish lets binds meet the writer. False: it was lost before.
func (r *registry) publish(w *writer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.publishLocked(w)
}

func (r *registry) publishLocked(w *writer) bool {
	if w.link.fault.Load() != nil {
		return false
	}
	if w.seat.published {
		return true
	}
	w.seat.published = true
	w.seat.idleSince = time.Now()
	w.idleSince.Store(w.seat.idleSince.UnixNano())
	return true
}

// refuse closes the writer to new binds.
func (r *registry) refuse(w *writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.seat.refusing = true
}

// lose removes the writer and returns the sessions that still belonged to it,
// unbound and out of the index. The caller signals their end; one that moved
// elsewhere before is not among them.
func (r *registry) lose(w *writer) []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.seat.published = false
	var orphans []*session
	for s := w.seat.first; s != nil; s = w.seat.first {
		r.unbindLocked(s)
		s.bound.registered = false
		r.index.vacate(s)
		r.open.Add(-1)
		orphans = append(orphans, s)
	}
	return orphans
}

// sessionsOf lists the sessions bound to the writer now.
func (r *registry) sessionsOf(w *writer) []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*session, 0, w.seat.count)
	for s := w.seat.first; s != nil; s = s.bound.next {
		list = append(list, s)
	}
	return list
}

// activity is how many sessions the writer has, and since when it has none.
func (r *registry) activity(w *writer) (count int, idleSince time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return w.seat.count, w.seat.idleSince
}
