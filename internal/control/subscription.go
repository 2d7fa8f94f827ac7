package control

import "sync/atomic"

// A Subscription receives membership events through C. A reader that lags
// more than the queue's length loses the newest ones, counted by Missed, and
// then has to look at the View: the state is never lost.
type Subscription struct {
	C      <-chan Event
	queue  chan Event
	missed atomic.Uint64
	owner  *Membership
}

const eventQueue = 256 // a burst of every event of 50 nodes

// Subscribe starts a subscription; Close ends it.
func (m *Membership) Subscribe() *Subscription {
	s := &Subscription{queue: make(chan Event, eventQueue), owner: m}
	s.C = s.queue
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.subs[s] = true
	return s
}

// Missed counts the events that did not fit.
func (s *Subscription) Missed() uint64 { return s.missed.Load() }

// Close ends the subscription and closes C. It is idempotent.
func (s *Subscription) Close() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if s.owner.mu.subs[s] {
		delete(s.owner.mu.subs, s)
		close(s.queue)
	}
}

func (s *Subscription) offer(e Event) {
	select {
	case s.queue <- e:
	default:
		s.missed.Add(1)
	}
}

// Watch delivers the newest view, now and after every change, skipping what a
// slow reader has no time for; stop ends it.
func (m *Membership) Watch() (views <-chan *View, stop func()) {
	ch := make(chan *View, 1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.watchers[ch] = true
	ch <- m.view.Load()
	return ch, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.mu.watchers, ch)
	}
}
