package sim

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"hecate/swarm"
)

// A node dies in the middle of an answer and the other copy reads everything
// again: prompt and answer so far.
func TestRescueByCopy(t *testing.T) {
	for _, name := range []string{"adaptive", "classic", "round-robin"} {
		s := Scenario{Plan: whole(10, 2), Hardware: exact(), Piece: 1, Detect: 500 * time.Millisecond,
			Arrivals: []Arrival{at(0, 80, 100)}, Outages: []Outage{{Node: "n0", At: 600 * time.Millisecond}}}
		r := run(t, s, name)
		if r.Finished != 1 || r.Rescued != 1 || r.Copied != 1 || r.Spliced != 0 || r.Lost != 0 {
			t.Fatalf("%s: %+v", name, r)
		}
		// The prompt takes 100 ms, so that 51 tokens are out after 600 ms. From
		// 1100 ms on 131 tokens are read at 1.25 ms each, and make one more.
		near(t, name+" gap", r.Gap.P50, 500+131*1.25, 1e-5)
		near(t, name+" latency", r.Latency.P50, 1100+131*1.25+48*10, 1e-5)
	}
}

// A splice replays the lost layers only.
func TestRescueBySplice(t *testing.T) {
	// One copy over a and b; c holds b's layers as a warm spare.
	plan := planOf(10, stages("a", 6, "b", 4))
	plan.Nodes = append(plan.Nodes, swarm.NodePlan{Profile: swarm.NodeProfile{ID: "c", Score: 1},
		Fragments: []swarm.PlacedFragment{{Model: "m", Layers: swarm.Layers(6, 9), Spare: true}}})
	for l := 6; l <= 9; l++ {
		plan.Redundancy["m"][l] = append(plan.Redundancy["m"][l], "c")
	}
	for _, name := range []string{"adaptive", "classic"} {
		s := Scenario{Plan: plan, Hardware: exact(), Piece: 1, Detect: 500 * time.Millisecond,
			Arrivals: []Arrival{at(0, 80, 100)}, Outages: []Outage{{Node: "b", At: 600 * time.Millisecond}}}
		w, r := lived(t, s, name)
		if r.Spliced != 1 || r.Copied != 0 || r.Finished != 1 {
			t.Fatalf("%s: %+v", name, r)
		}
		near(t, name+" gap", r.Gap.P50, 500+131*0.5, 1e-5) // four layers at 1/8 ms
		if w.machines[2].peak != 1 || w.machines[0].peak != 1 {
			t.Errorf("%s: a and c should have run the answer: %+v", name, w.machines)
		}
	}
}

func TestWithoutAnotherHolderAnswersAreLost(t *testing.T) {
	for _, name := range []string{"adaptive", "two-choice", "classic", "least-loaded", "round-robin", "random"} {
		s := Scenario{Plan: planOf(10, stages("a", 6, "b", 4)), Hardware: exact(),
			Arrivals: []Arrival{at(0, 80, 100), at(650, 1, 1), at(1500, 1, 1), at(9000, 1, 1)},
			Outages:  []Outage{{Node: "b", At: 600 * time.Millisecond, For: 3 * time.Second}}}
		r := run(t, s, name)
		// The first is under way, the second comes before the death is noticed,
		// the third after, the fourth when b is back and has been heard of.
		if r.Lost != 2 || r.Refused != 1 || r.Finished != 1 {
			t.Errorf("%s: lost %d, refused %d, finished %d; want 2, 1, 1", name, r.Lost, r.Refused, r.Finished)
		}
	}
}

// Reports that left before a death arrive after its detection. They must not
// bring the dead back: while it is known to be dead, nobody is sent there.
func TestLateReportsDoNotRaiseTheDead(t *testing.T) {
	const back = 6 * time.Second
	s := Scenario{Plan: whole(4, 2), Hardware: exact(), Telemetry: Telemetry{Every: 100 * time.Millisecond, Delay: 3 * time.Second},
		Outages: []Outage{{Node: "n0", At: time.Second, For: back - time.Second}}}
	for ms := 0; ms < 12_000; ms += 50 {
		s.Arrivals = append(s.Arrivals, at(ms, 1, 1))
	}
	for _, name := range []string{"adaptive", "classic", "least-loaded", "round-robin", "random"} {
		w := newWorldOf(t, s, name)
		known, afterwards := 0, 0
		for w.arrived < len(w.Arrivals) {
			before := w.machines[0].peak
			w.machines[0].peak = 0
			w.step()
			hit := w.machines[0].peak > 0
			w.machines[0].peak = max(before, w.machines[0].peak)
			now := time.Duration(w.now)
			if hit && now > time.Second+300*time.Millisecond && now < back+3*time.Second {
				known++
			}
			if hit && now >= back+3*time.Second {
				afterwards++
			}
		}
		if known > 0 {
			t.Errorf("%s: %d requests were sent to a node that is known to be dead", name, known)
		}
		if idle := name == "classic" || name == "adaptive"; afterwards == 0 && !idle { // these find n1 a little cheaper
			t.Errorf("%s: nobody uses the node after its return", name)
		}
	}
}

// Whatever happens, every request comes to one end, nobody stays on a node, and
// every reservation is given back. Random scenarios under every policy.
func TestNothingIsForgotten(t *testing.T) {
	for seed := range uint64(25) {
		chance := rand.New(rand.NewPCG(seed, 7))
		plan := generated(t, Size{Nodes: 4 + chance.IntN(12), Models: 1 + chance.IntN(2)})
		s := Scenario{Plan: plan, Seed: seed, Gateways: 1 + chance.IntN(3), Piece: 1 + chance.IntN(32),
			Telemetry: Telemetry{Delay: time.Duration(chance.IntN(4000)) * time.Millisecond}}
		rate := (0.3 + chance.Float64()) * Capacity(plan, s.Hardware, Lengths{})
		s.Arrivals = Merge(Poisson(300, rate, Lengths{}, Traffic(plan), seed),
			Burst(100, 2*time.Second, time.Second, Lengths{}, Traffic(plan), seed))
		span := s.Arrivals[len(s.Arrivals)-1].At
		for _, n := range chance.Perm(len(plan.Nodes))[:chance.IntN(len(plan.Nodes)+1)] {
			o := Outage{Node: plan.Nodes[n].Profile.ID, At: time.Duration(chance.Float64() * float64(span))}
			if chance.IntN(3) > 0 {
				o.For = 300*time.Millisecond + time.Duration(chance.Float64()*float64(span)/2)
			}
			s.Outages = append(s.Outages, o)
		}
		for _, p := range Policies() {
			t.Run(fmt.Sprintf("%d/%s", seed, p.Name), func(t *testing.T) {
				w, r := lived(t, s, p.Name)
				checkEnd(t, w, r)
			})
		}
	}
}

func checkEnd(t *testing.T, w *world, r Result) {
	t.Helper()
	if r.Finished+r.Lost+r.Refused != r.Requests {
		t.Errorf("%d finished, %d lost, %d refused of %d", r.Finished, r.Lost, r.Refused, r.Requests)
	}
	if r.Rescued > r.Copied+r.Spliced {
		t.Errorf("%d requests were rescued in %d rescues", r.Rescued, r.Copied+r.Spliced)
	}
	if len(w.meter.first) < r.Finished || len(w.meter.gaps) > r.Copied+r.Spliced {
		t.Errorf("%d first tokens of %d answers, %d gaps of %d rescues", len(w.meter.first), r.Finished, len(w.meter.gaps), r.Copied+r.Spliced)
	}
	for i := range w.machines {
		m := &w.machines[i]
		if m.sessions != 0 || m.present != 0 {
			t.Errorf("%d sessions (%v present) stay on %s", m.sessions, m.present, m.id)
		}
		for _, g := range w.gateways {
			if v, _ := g.fleet.Node(m.id); v.InFlight != 0 || v.KVTokens != 0 {
				t.Errorf("gateway %d keeps %d reservations on %s", g.number, v.InFlight, m.id)
			}
		}
	}
}
