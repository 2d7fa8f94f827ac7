package event

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fact(i int) Fact { return Plan{Generation: uint64(i)} }

func sequences(events []Event) (out []uint64) {
	for _, e := range events {
		out = append(out, e.Sequence)
	}
	return out
}

func TestTheRingKeepsTheNewest(t *testing.T) {
	s := New(4)
	for i := range 6 {
		s.Publish(fact(i))
	}
	for _, c := range []struct {
		after     uint64
		want      []uint64
		forgotten uint64
	}{
		{0, []uint64{3, 4, 5, 6}, 2}, {1, []uint64{3, 4, 5, 6}, 1}, {2, []uint64{3, 4, 5, 6}, 0},
		{5, []uint64{6}, 0}, {6, nil, 0}, {99, nil, 0},
	} {
		got, forgotten := s.After(c.after)
		if diff := cmp.Diff(c.want, sequences(got)); diff != "" || forgotten != c.forgotten {
			t.Errorf("after %d: %s, forgotten %d, want %d", c.after, diff, forgotten, c.forgotten)
		}
	}
}

func TestASlowSubscriberLosesTheOldestAndItIsCounted(t *testing.T) {
	s := New(4)
	sub := s.Subscribe(s.Last())
	defer sub.Close()
	s.Publish(fact(0))
	if got, missed := sub.Take(); len(got) != 1 || missed != 0 {
		t.Fatalf("took %d events, missed %d", len(got), missed)
	}
	for i := range 7 {
		s.Publish(fact(i))
	}
	got, missed := sub.Take()
	if diff := cmp.Diff([]uint64{5, 6, 7, 8}, sequences(got)); diff != "" || missed != 3 {
		t.Errorf("%s, missed %d, want 3", diff, missed)
	}
	late := s.Subscribe(1) // of which the ring knows nothing any more
	defer late.Close()
	if got, missed := late.Take(); len(got) != 4 || missed != 3 {
		t.Errorf("took %d events, missed %d", len(got), missed)
	}
	all := s.Subscribe(0)
	defer all.Close()
	if got, missed := all.Take(); len(got) != 4 || missed != 0 {
		t.Errorf("took %d events, missed %d", len(got), missed)
	}
	s.Missed(5)
	_, drops := s.Counts()
	if diff := cmp.Diff(map[Drop]uint64{Overrun: 3, Expired: 3, Unheard: 5}, drops); diff != "" {
		t.Error(diff)
	}
}

// Whatever the interleaving, a subscriber sees rising sequences, each once, and
// taken plus missed is all there was.
func TestManyPublishersOneSlowReader(t *testing.T) {
	s := New(8)
	sub := s.Subscribe(0)
	defer sub.Close()
	const publishers, each = 8, 200
	var wg sync.WaitGroup
	for range publishers {
		wg.Go(func() {
			for i := range each {
				s.Publish(fact(i))
			}
		})
	}
	var last, taken, lost uint64
	take := func() {
		events, missed := sub.Take()
		lost += missed
		for _, e := range events {
			if e.Sequence <= last {
				t.Errorf("sequence %d after %d", e.Sequence, last)
			}
			last = e.Sequence
			taken++
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for open := true; open; {
		select {
		case <-sub.Bell():
			take()
		case <-done:
			open = false
		}
	}
	take()
	if last != publishers*each || taken+lost > publishers*each || taken == 0 {
		t.Errorf("last %d, taken %d, lost %d of %d", last, taken, lost, publishers*each)
	}
}

func TestListenersHearEverythingInOrder(t *testing.T) {
	var heard []uint64
	s := New(2, func(e Event) { heard = append(heard, e.Sequence) })
	for i := range 5 {
		s.Publish(fact(i))
	}
	if diff := cmp.Diff([]uint64{1, 2, 3, 4, 5}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(0)
		sub := s.Subscribe(0)
		var got []uint64
		go sub.Follow(t.Context(), func(e Event) { got = append(got, e.Sequence) })
		s.Publish(fact(1))
		s.Publish(fact(2))
		synctest.Wait()
		if diff := cmp.Diff([]uint64{1, 2}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestResumption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := New(0)
		time.Sleep(time.Second)
		s := New(0)
		for _, c := range []struct {
			id  string
			seq uint64
			ok  bool
		}{
			{s.ID(7), 7, true}, {before.ID(7), 0, true}, {"", 0, false}, {"7", 0, false}, {"x-", 0, false}, {"x-y", 0, false},
		} {
			if seq, ok := s.Resume(c.id); seq != c.seq || ok != c.ok {
				t.Errorf("%q: %d %v, want %d %v", c.id, seq, ok, c.seq, c.ok)
			}
		}
	})
}

// every is one fact of each kind.
func every() []Fact {
	out := []Fact{
		Steered{Node: "desk", Want: "paused"}, Plan{Generation: 3, Copies: 2, MovedBytes: 10},
		Layers{Node: "desk", Model: "demo", Last: 5, Loaded: true}, Layers{Node: "desk", Model: "demo", Last: 5},
		Readiness{Model: "demo", Ready: true}, Readiness{Model: "demo", Missing: "a node"},
		Copy{Model: "demo", ID: 1, Live: true}, Copy{Model: "demo", ID: 1, Missing: "a node"},
		Rescue{Job: "j", Model: "demo", Node: "desk", How: "splice", Position: 40, GapMS: 120.4}, Loss{Job: "j", Node: "desk", Position: 4, Because: "no route"},
		Wait{Job: "j", Model: "m", Position: 9, Because: "no copy has room now"},
		Degradation{Job: "j", Model: "large", By: "demo", Because: "no route"},
		Refusal{Model: "demo", Reason: "queue_full", Count: 1}, Refusal{Model: "demo", Reason: "queue_full", Count: 9},
	}
	for _, k := range []Kind{NodeJoined, NodeSuspect, NodeDied, NodeReturned, NodeLeft, NodeRemoved, NodeGhost} {
		out = append(out, Membership{What: k, Node: "desk", Words: "node desk did " + string(k)})
	}
	for _, k := range []Kind{TransferStarted, TransferFinished, TransferFailed} {
		out = append(out, Transfer{What: k, Node: "desk", Model: "demo", Last: 5, Because: "the disk is full"})
	}
	for _, k := range []Kind{PoolRoutine, PoolChange, PoolTrouble} {
		out = append(out, Pool{What: k, Node: "desk", Event: "writer_up", Words: "writer_up group=desk"})
	}
	return out
}

func TestEveryKindHasAFactALevelAndWords(t *testing.T) {
	s, seen := New(0), map[Kind]bool{}
	for _, f := range every() {
		s.Publish(f)
		seen[f.Kind()] = true
		if strings.TrimSpace(f.String()) == "" {
			t.Errorf("%T says nothing", f)
		}
	}
	for _, k := range Kinds() {
		if !seen[k] {
			t.Errorf("no fact is of kind %s", k)
		}
	}
	if len(seen) != len(Kinds()) {
		t.Errorf("%d kinds were seen, %d are known", len(seen), len(Kinds()))
	}
	counts, _ := s.Counts()
	if counts[Refused] != 2 || len(counts) != len(Kinds()) {
		t.Errorf("counts: %v", counts)
	}
}

func TestJSON(t *testing.T) {
	e := Event{Sequence: 4, Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Fact: Rescue{Job: "chat-1", Model: "demo", Node: "desk", How: "splice", Position: 40, GapMS: 120.4, Because: "reset"}}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"seq":4,"time":"2026-01-02T03:04:05Z","kind":"answer_rescued","level":"warn","node":"desk","model":"demo","job":"chat-1",` +
		`"text":"an answer survived the failure of node desk by splice, after a pause of 120 ms",` +
		`"detail":{"how":"splice","position":40,"gap_ms":120.4,"because":"reset"}}`
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
}

func Example() {
	s := New(0)
	sub := s.Subscribe(0)
	defer sub.Close()
	s.Publish(Membership{What: NodeDied, Node: "desk", Words: "node desk is dead: connection reset"})
	<-sub.Bell()
	events, _ := sub.Take()
	for _, e := range events {
		fmt.Println(e.Sequence, e.Level(), e)
	}
	// Output: 1 WARN node desk is dead: connection reset
}
