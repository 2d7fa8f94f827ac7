package sim

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hecate/swarm"
)

// The claim of docs/simulator.md: under a burst that telemetry shows two
// seconds late, reservations keep the hottest node within 1.3 of the mean where
// nodes are alike, and cheapest-by-report piles everything onto few.
func TestBurst(t *testing.T) {
	plan := generated(t, Size{Nodes: 60, Even: true})
	s := Scenario{Plan: plan, Seed: 1, Telemetry: Telemetry{Delay: 2 * time.Second}, Watch: Span{10 * time.Second, 13 * time.Second}}
	s.Arrivals = Merge(Poisson(3000, 0.6*Capacity(plan, s.Hardware, Lengths{}), Lengths{}, Traffic(plan), 1),
		Burst(500, 10*time.Second, time.Second, Lengths{}, Traffic(plan), 1))
	results, err := Compare(context.Background(), s, Policies())
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]Result{}
	for _, r := range results {
		by[r.Policy] = r
	}
	for _, ours := range []string{"adaptive", "two-choice"} {
		r := by[ours]
		if r.Load.MaxOverMean >= 1.3 {
			t.Errorf("%s: the hottest node has %v of the mean", ours, r.Load.MaxOverMean)
		}
		for _, other := range []string{"classic", "least-loaded", "round-robin", "random"} {
			if r.Latency.P99 >= by[other].Latency.P99 {
				t.Errorf("%s has a p99 of %v ms, %s one of %v", ours, r.Latency.P99, other, by[other].Latency.P99)
			}
		}
	}
	if herd := by["classic"].Load.MaxOverMean; herd < 3 {
		t.Errorf("classic spreads a burst evenly (%v): is its telemetry late?", herd)
	}
}

// The same scenario gives the same results, beside other runs too; another
// seed gives others.
func TestRunsRepeat(t *testing.T) {
	plan := generated(t, Size{Nodes: 15, Models: 2})
	s := Scenario{Plan: plan, Seed: 4, Telemetry: Telemetry{Delay: time.Second}, Gateways: 2,
		Outages: []Outage{{Node: plan.Nodes[0].Profile.ID, At: time.Second, For: 2 * time.Second}}}
	s.Arrivals = Poisson(500, Capacity(plan, s.Hardware, Lengths{}), Lengths{}, Traffic(plan), 4)
	first, err := Compare(context.Background(), s, Policies())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range Policies() {
		again := run(t, s, p.Name)
		if again != first[i] {
			t.Errorf("%s: first %+v, then %+v", p.Name, first[i], again)
		}
		other := s
		other.Seed = 5
		if run(t, other, p.Name) == again {
			t.Errorf("%s: another seed changes nothing", p.Name)
		}
	}
}

// Round-robin goes round, random and least-loaded spread, and none of them
// uses a dead copy.
func TestBlindPolicies(t *testing.T) {
	s := Scenario{Plan: whole(4, 3), Hardware: exact(), Outages: []Outage{{Node: "n1", At: 0}}}
	for i := range 300 {
		s.Arrivals = append(s.Arrivals, at(1000+i*20, 1, 2))
	}
	for name, most := range map[string]float64{"round-robin": 0.51, "random": 0.6, "least-loaded": 0.6} {
		w, r := lived(t, s, name)
		if r.Finished != 300 || w.machines[1].peak != 0 {
			t.Errorf("%s: finished %d, the dead node had %d sessions at once", name, r.Finished, w.machines[1].peak)
		}
		if share := max(w.machines[0].work, w.machines[2].work) / (w.machines[0].work + w.machines[2].work); share > most {
			t.Errorf("%s gives one of two nodes %v of the work", name, share)
		}
	}
}

func TestPoliciesNamed(t *testing.T) {
	if got, err := PoliciesNamed(); err != nil || len(got) != len(Policies()) {
		t.Errorf("no names give %d policies (%v)", len(got), err)
	}
	_, err := PoliciesNamed("classic", "clasic")
	if !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), `"clasic"`) {
		t.Errorf("a misspelt policy: %v", err)
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	plan := whole(4, 3)
	s := Scenario{Plan: plan, Arrivals: Poisson(200_000, 1000, Lengths{}, Traffic(plan), 1)}
	if _, err := Compare(ctx, s, Policies()); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// Once every session has begun, living through their pieces allocates nothing.
func TestEventsDoNotAllocate(t *testing.T) {
	s := Scenario{Plan: generated(t, Size{Nodes: 30}), Seed: 1}
	for range 500 {
		s.Arrivals = append(s.Arrivals, at(0, 64, 100_000))
	}
	w := newWorldOf(t, s, "classic")
	for range 50_000 {
		w.step()
	}
	if n := testing.AllocsPerRun(20_000, w.step); n != 0 {
		t.Errorf("%v allocations per event", n)
	}
	if w.live != 500 {
		t.Fatalf("%d sessions are under way, want 500", w.live)
	}
}
