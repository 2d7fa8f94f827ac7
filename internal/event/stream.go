package event

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// An Event is a fact with its place in the stream. It is immutable.
type Event struct {
	Sequence uint64 // from 1, without gaps, within one run of the gateway
	Time     time.Time
	Fact
}

// Level is how loud the event is.
func (e Event) Level() slog.Level { return e.Kind().Level() }

// MarshalJSON writes what is the same for all events beside the fact's details.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Sequence uint64    `json:"seq"`
		Time     time.Time `json:"time"`
		Kind     Kind      `json:"kind"`
		Level    string    `json:"level"` // debug, info, warn, error
		Subject
		Text   string `json:"text"`
		Detail Fact   `json:"detail"`
	}{e.Sequence, e.Time.UTC(), e.Kind(), strings.ToLower(e.Level().String()), e.About(), e.String(), e.Fact})
}

// DefaultRing is how many events a stream remembers: an hour of a lively swarm,
// and well under a megabyte.
const DefaultRing = 1024

// A Stream is safe for concurrent use.
type Stream struct {
	run       string // tells one run of the gateway from the next
	listeners []func(Event)

	mu struct {
		sync.Mutex
		ring   []Event // ring[seq % len]; filled from sequence 1
		last   uint64  // 0: nothing happened yet
		subs   map[*Subscription]bool
		counts map[Kind]uint64
		drops  map[Drop]uint64
	}
}

// New makes a stream that remembers so many events; 0: DefaultRing. Listeners
// hear every event, in order, on the publisher's goroutine: they must be quick,
// must not block, and must not publish.
func New(ring int, listeners ...func(Event)) *Stream {
	if ring <= 0 {
		ring = DefaultRing
	}
	s := &Stream{run: strconv.FormatInt(time.Now().UnixMilli(), 36), listeners: listeners}
	s.mu.ring = make([]Event, ring)
	s.mu.subs = map[*Subscription]bool{}
	s.mu.counts = map[Kind]uint64{}
	s.mu.drops = map[Drop]uint64{}
	return s
}

// Publish adds a fact. It never waits for subscribers.
func (s *Stream) Publish(f Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.last++
	e := Event{Sequence: s.mu.last, Time: time.Now(), Fact: f}
	s.mu.ring[e.Sequence%uint64(len(s.mu.ring))] = e
	s.mu.counts[f.Kind()]++
	for _, hear := range s.listeners {
		hear(e)
	}
	for sub := range s.mu.subs {
		sub.ring()
	}
}

// Last is the sequence of the newest event, 0 when there is none.
func (s *Stream) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.last
}

// After gives the events after a sequence that are still remembered, oldest
// first, and how many are not.
func (s *Stream) After(seq uint64) (events []Event, forgotten uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.afterLocked(seq)
}

func (s *Stream) afterLocked(seq uint64) (events []Event, forgotten uint64) {
	seq = min(seq, s.mu.last)
	if oldest := s.mu.last - min(s.mu.last, uint64(len(s.mu.ring))); seq < oldest {
		seq, forgotten = oldest, oldest-seq
	}
	for n := seq + 1; n <= s.mu.last; n++ {
		events = append(events, s.mu.ring[n%uint64(len(s.mu.ring))])
	}
	return events, forgotten
}

// Counts says how often each kind happened, and how many events subscribers
// did not get, by why.
func (s *Stream) Counts() (events map[Kind]uint64, drops map[Drop]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	events, drops = map[Kind]uint64{}, map[Drop]uint64{}
	for k := range levels {
		events[k] = s.mu.counts[k]
	}
	for _, d := range Drops() {
		drops[d] = s.mu.drops[d]
	}
	return events, drops
}

// Missed counts events that did not even reach the stream.
func (s *Stream) Missed(n uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.drops[Unheard] += n
}

// ID names an event so that it is found again, also by the next run: what a
// client sends as Last-Event-ID.
func (s *Stream) ID(seq uint64) string { return fmt.Sprintf("%s-%d", s.run, seq) }

// Resume is the sequence behind an id. An id of another run means the beginning:
// everything that this run knows is new. false: it is no id.
func (s *Stream) Resume(id string) (seq uint64, ok bool) {
	run, number, found := strings.Cut(id, "-")
	seq, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil {
		return 0, false
	}
	if run != s.run {
		return 0, true
	}
	return seq, true
}
