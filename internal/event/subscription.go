package event

import "context"

// A Drop is why a subscriber did not get an event.
type Drop string

const (
	Overrun Drop = "overrun" // the subscriber was slower than the ring is long
	Expired Drop = "expired" // it asked for events from before the ring
	Unheard Drop = "unheard" // lost on the way into the stream: its source's queue was full
)

// Drops lists all reasons there are.
func Drops() []Drop { return []Drop{Overrun, Expired, Unheard} }

// A Subscription is a cursor into the stream, for one goroutine.
type Subscription struct {
	stream *Stream
	bell   chan struct{} // capacity 1: something is new
	next   uint64        // the last sequence taken
	begun  bool
}

// Subscribe starts behind a sequence: 0 gives all that is remembered, Last only
// what is to come. Close ends it.
func (s *Stream) Subscribe(after uint64) *Subscription {
	sub := &Subscription{stream: s, bell: make(chan struct{}, 1), next: after}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.subs[sub] = true
	sub.ring()
	return sub
}

// Close ends the subscription. It is idempotent.
func (sub *Subscription) Close() {
	sub.stream.mu.Lock()
	defer sub.stream.mu.Unlock()
	delete(sub.stream.mu.subs, sub)
}

// Bell rings when Take may give something. It may ring in vain.
func (sub *Subscription) Bell() <-chan struct{} { return sub.bell }

// Take gives what is new, oldest first, and how many events before those this
// subscriber will never see.
func (sub *Subscription) Take() (events []Event, missed uint64) {
	s := sub.stream
	s.mu.Lock()
	defer s.mu.Unlock()
	sub.next = min(sub.next, s.mu.last)
	events, missed = s.afterLocked(sub.next)
	// Asking for all is no wish for the very first event.
	switch {
	case missed > 0 && sub.begun:
		s.mu.drops[Overrun] += missed
	case missed > 0 && sub.next > 0:
		s.mu.drops[Expired] += missed
	case !sub.begun:
		missed = 0
	}
	sub.next, sub.begun = s.mu.last, true
	return events, missed
}

// Follow hands every new event to a function until ctx ends.
func (sub *Subscription) Follow(ctx context.Context, each func(Event)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.bell:
		}
		events, _ := sub.Take()
		for _, e := range events {
			each(e)
		}
	}
}

// ring wakes the subscriber. It never blocks.
func (sub *Subscription) ring() {
	select {
	case sub.bell <- struct{}{}:
	default:
	}
}
