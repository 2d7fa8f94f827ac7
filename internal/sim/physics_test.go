package sim

import (
	"math"
	"testing"
	"time"
)

func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*math.Abs(want) {
		t.Errorf("%s is %.4f, want %.4f within %.2g", what, got, want, share)
	}
}

// One request alone takes what can be computed by hand: 16 prompt tokens through
// 10 layers at 1/8 ms, then 9 more tokens at 10 ms.
func TestALoneRequest(t *testing.T) {
	s := Scenario{Plan: whole(10, 1), Hardware: exact(), Arrivals: []Arrival{at(5, 16, 10)}}
	r := run(t, s, "classic")
	near(t, "first token", r.FirstToken.P50, 16*10.0/8, 1e-6)
	near(t, "latency", r.Latency.P50, 16*10.0/8+9*10, 1e-6)
}

// Two stages share the work and add a round trip each, per token and per piece
// of the prompt.
func TestStagesAddUp(t *testing.T) {
	h := exact()
	h.RoundTrip = 4 * time.Millisecond
	s := Scenario{Plan: planOf(10, stages("a", 6, "b", 4)), Hardware: h, Arrivals: []Arrival{at(0, 300, 5)}}
	w, r := lived(t, s, "classic")
	links := (w.machines[0].link + w.machines[1].link) / 1e6
	if links < 4 || links > 12 {
		t.Fatalf("two round trips of 2 to 6 ms are %v ms", links)
	}
	near(t, "first token", r.FirstToken.P50, 300*10.0/8+2*links, 1e-5) // 300 tokens are two pieces
	near(t, "latency", r.Latency.P50, 300*10.0/8+2*links+4*(10+links), 1e-5)
}

// Sessions in one batch: with a batch cost of one half, two take 1.5 times as
// long each; past two slots they take turns.
func TestBatches(t *testing.T) {
	for sessions, slow := range map[int]float64{1: 1, 2: 1.5, 3: 1.5 * 3 / 2, 6: 1.5 * 6 / 2} {
		s := Scenario{Plan: whole(10, 1), Hardware: exact(), Piece: 1}
		for range sessions {
			s.Arrivals = append(s.Arrivals, at(0, 1, 200))
		}
		r := run(t, s, "classic")
		near(t, "latency", r.Latency.P50, slow*(199*10+10.0/8), 0.02) // they begin and end one by one
	}
}

// A node with one slot serves sessions in turns: processor sharing. The mean
// time of M/G/1 processor sharing is E[S]/(1-rho), whatever the distribution
// (Kleinrock, Queueing Systems II, section 4.4).
func TestProcessorSharing(t *testing.T) {
	h := exact()
	h.Slots = 1
	const layers, rho = 1, 0.6
	lengths := Lengths{Prompt: 1, Output: 60}
	sample := Poisson(60_000, 1, lengths, []int32{0}, 3)
	var work float64 // ms per request
	for _, a := range sample {
		work += float64(a.Output-1) + float64(max(1, a.Prompt))/8
	}
	work /= float64(len(sample))
	s := Scenario{Plan: whole(layers, 1), Hardware: h, Piece: 1, Arrivals: Poisson(len(sample), rho/work*1000, lengths, []int32{0}, 3)}
	r := run(t, s, "random")
	near(t, "mean latency", r.Latency.Mean, work/(1-rho), 0.05)
}

// Pieces of many tokens are an approximation; a coarse one must tell the same
// story.
func TestPiecesTellTheSameStory(t *testing.T) {
	plan := generated(t, Size{Nodes: 12})
	s := Scenario{Plan: plan, Seed: 2}
	s.Arrivals = Poisson(2000, 0.7*Capacity(plan, s.Hardware, Lengths{}), Lengths{}, Traffic(plan), 2)
	for _, name := range []string{"adaptive", "round-robin"} {
		s.Piece = 1
		fine := run(t, s, name)
		s.Piece = 16
		coarse := run(t, s, name)
		near(t, name+" p50", coarse.Latency.P50, fine.Latency.P50, 0.06)
		near(t, name+" p99", coarse.Latency.P99, fine.Latency.P99, 0.15)
	}
}

// At nine tenths of its capacity a swarm keeps up, at twice it does not.
func TestCapacity(t *testing.T) {
	plan := generated(t, Size{Nodes: 20, Even: true})
	for share, keepsUp := range map[float64]bool{0.9: true, 2: false} {
		s := Scenario{Plan: plan, Seed: 1}
		rate := share * Capacity(plan, s.Hardware, Lengths{})
		s.Arrivals = Poisson(6000, rate, Lengths{}, Traffic(plan), 1)
		r := run(t, s, "round-robin")
		took := float64(r.Finished) / rate * 1000 // ms in which the requests arrive
		if got := r.Latency.P50 < 0.1*took; got != keepsUp {
			t.Errorf("at %v of the capacity the median is %v ms in %v ms: keeps up %v", share, r.Latency.P50, took, got)
		}
	}
}

// Loads are averaged over the watched time only.
func TestWatch(t *testing.T) {
	// Busy from 0 to 1 s with one session on two slots.
	s := Scenario{Plan: whole(10, 1), Hardware: exact(), Arrivals: []Arrival{at(0, 1, 100), at(3000, 1, 1)}}
	for _, c := range []struct{ from, to, load float64 }{
		{0, 0.5, 0.5}, {0, 2, 0.25}, {0.5, 1.5, 0.25}, {1.5, 2.5, 0},
	} {
		s.Watch = Span{time.Duration(c.from * 1e9), time.Duration(c.to * 1e9)}
		r := run(t, s, "random")
		if math.Abs(r.Load.Mean-c.load) > 0.01 {
			t.Errorf("from %v to %v s the load is %v, want %v", c.from, c.to, r.Load.Mean, c.load)
		}
	}
}

// A node in two copies is counted once, not twice.
func TestCapacityOfSharedNodes(t *testing.T) {
	own := planOf(8, stages("a", 4, "b", 4), stages("c", 4, "d", 4))
	shared := planOf(8, stages("a", 4, "b", 4), stages("a", 4, "d", 4))
	near(t, "capacity with a shared node", Capacity(shared, exact(), Lengths{}), Capacity(own, exact(), Lengths{})/2, 1e-9)
}
