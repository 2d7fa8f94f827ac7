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

// Least-loaded takes the copy whose busiest node has the least reported load,
// wherever in the copy that node stands.
func TestLeastLoadedReadsReports(t *testing.T) {
	plan := planOf(8, stages("a", 4, "b", 4), stages("c", 4, "d", 4), stages("e", 4, "f", 4))
	s := Scenario{Plan: plan, Hardware: exact(), Arrivals: []Arrival{at(0, 1, 1)}}
	for _, c := range []struct {
		loads []float64 // of a to f
		want  int
	}{
		{[]float64{0.9, 0, 0.5, 0.5, 0.6, 0.1}, 1},
		{[]float64{0, 0.9, 0.5, 0.6, 0.4, 0.55}, 2},
		{[]float64{0.1, 0.1, 0.5, 0, 0, 0.5}, 0},
	} {
		w := newWorldOf(t, s, "least-loaded")
		g := w.gateways[0]
		for i, load := range c.loads {
			g.heard[i].load = load
		}
		job := g.job(0, 1, 1, 0)
		if r, err := g.decider.Route(&job); err != nil || r.PipelineID != c.want {
			t.Errorf("with loads %v copy %d is taken (%v), want %d", c.loads, r.PipelineID, err, c.want)
		}
	}
}

// The classic rescue goes by the newest reports, not by those of an earlier
// rescue.
func TestRescuesReadTheNewestReports(t *testing.T) {
	s := Scenario{Plan: whole(10, 3), Hardware: exact(), Telemetry: Telemetry{Every: 100 * time.Millisecond},
		Arrivals: []Arrival{at(0, 1, 400), at(2500, 1, 400)},
		Outages: []Outage{{Node: "n0", At: time.Second, For: 400 * time.Millisecond},
			{Node: "n0", At: 3 * time.Second, For: 400 * time.Millisecond}}}
	s.Rules.Route = func(r *swarm.Router, model string, _ swarm.Request, _ *swarm.Weights) (swarm.Route, error) {
		return swarm.Route{Model: model, Stages: r.Plan().Pipelines[0].Stages}, nil // always n0
	}
	var loads []float64
	s.Rules.Failover = func(route swarm.Route, failed string, st swarm.State, opts swarm.FailoverOptions) (swarm.Route, error) {
		out, err := swarm.FailoverInSwarm(route, failed, st, opts)
		var sum float64
		for _, n := range st.Nodes {
			if n.ID != failed {
				sum += n.Load.Value
			}
		}
		loads = append(loads, sum)
		return out, err
	}
	r := run(t, s, "classic")
	if r.Copied != 2 || len(loads) != 2 || loads[0] != 0 || loads[1] == 0 {
		t.Errorf("%d rescues saw loads %v; the second must see the first one's answer running", r.Copied, loads)
	}
}

// How long answers are expected to be follows from how long they were.
func TestExpectationsLearn(t *testing.T) {
	s := Scenario{Plan: whole(4, 1), Hardware: exact()}
	for i := range 40 {
		s.Arrivals = append(s.Arrivals, at(i*1000, 1, 10))
	}
	var expected []int
	s.Rules.Choose = func(r *swarm.Router, model string, req swarm.AdaptiveRequest, p swarm.Policy) (swarm.Route, error) {
		expected = append(expected, req.OutputTokens)
		return r.Choose(model, req, p)
	}
	run(t, s, "adaptive")
	if expected[0] != swarm.DefaultOutputTokens || expected[len(expected)-1] != 10 {
		t.Errorf("the first answer is expected to have %d tokens, the last %d; want the default and 10", expected[0], expected[len(expected)-1])
	}
}
