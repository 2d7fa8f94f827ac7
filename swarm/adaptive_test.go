package swarm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// twins is a plan of whole-model copies, each on one node: a, b, c...
func twins(n int) *Plan {
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: 10}}}
	for i := range n {
		plan.Pipelines = append(plan.Pipelines, Pipeline{ID: i, Model: "m", Stages: []Stage{{string(rune('a' + i)), Layers(0, 9)}}})
	}
	return plan
}

// observe gives a node a sample in which it holds all ten layers.
func observe(t *testing.T, f *Fleet, id string, latency, load, score float64, at time.Time) {
	t.Helper()
	n := sample(id, latency, load, score)
	n.Fragments = []Fragment{{"m", Layers(0, 9)}}
	if err := f.Observe(n, at); err != nil {
		t.Fatal(err)
	}
}

func signal(t *testing.T, f *Fleet, id string, s Signals) {
	t.Helper()
	if err := f.Signal(id, s); err != nil {
		t.Fatal(err)
	}
}

// Each limit of the classic price that the adaptive one removes is one named
// term; here is what each amounts to.
func TestTerms(t *testing.T) {
	at := time.Unix(1000, 0)
	req := AdaptiveRequest{PromptTokens: 1024, OutputTokens: 100}
	for _, c := range []struct {
		name   string
		load   float64
		unseen bool
		sig    Signals
		leases int
		req    AdaptiveRequest
		want   string
	}{
		{"per step, link assumed", 0, false, Signals{}, 0, req, "decode=1000ms link=1500ms prefill=1280ms capacity=3.5ms"},
		{"per layer, link measured", 0, false, Signals{LayerMS: Measured(2), RoundTripMS: Measured(0.5)}, 0, req,
			"decode=2000ms link=50ms prefill=2560ms capacity=3.5ms"},
		{"prefill measured", 0, false, Signals{PrefillMS: Measured(7), RoundTripMS: Measured(0)}, 0, req, "decode=1000ms prefill=70ms capacity=3.5ms"},
		{"load reported", 0.5, false, Signals{RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0, req, "decode=1000ms load=560ms capacity=3.5ms"},
		{"load reserved counts at once", 0.5, false, Signals{RoundTripMS: Measured(0), PrefillMS: Measured(0), Slots: 2}, 3, req, "decode=1000ms load=1680ms capacity=3.5ms"},
		{"the larger of both loads, not the sum", 2, false, Signals{RoundTripMS: Measured(0), PrefillMS: Measured(0), Slots: 2}, 3, req, "decode=1000ms load=2240ms capacity=3.5ms"},
		{"unmeasured", 0, true, Signals{RoundTripMS: Measured(0)}, 0, req, "unmeasured=11010ms"},
		{"measured by the gateway alone", 0, true, Signals{LayerMS: Measured(1), PrefillMS: Measured(0), RoundTripMS: Measured(0)}, 0, req, "decode=1000ms"},
		{"errors", 0, false, Signals{Errors: Measured(0.2), RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0, req, "decode=1000ms capacity=3.5ms errors=2000ms"},
		{"half-open circuit", 0, false, Signals{Circuit: CircuitHalfOpen, RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0, req, "decode=1000ms capacity=3.5ms circuit=1000ms"},
		{"little KV room", 0, false, Signals{KVFree: Measured(2248), RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0, req, "decode=1000ms capacity=3.5ms kv=100ms"},
		{"fresh enough", 0, false, Signals{RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0,
			AdaptiveRequest{PromptTokens: 1024, OutputTokens: 100, Now: at.Add(3 * time.Second)}, "decode=1000ms capacity=3.5ms"},
		{"half stale", 0, false, Signals{LayerMS: Measured(1), RoundTripMS: Measured(0), PrefillMS: Measured(0)}, 0,
			AdaptiveRequest{PromptTokens: 1024, OutputTokens: 100, Now: at.Add(13 * time.Second)}, "decode=1000ms capacity=3.5ms stale=5003.25ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewFleet("m")
			if !c.unseen {
				observe(t, f, "a", 10, c.load, 10, at)
			}
			signal(t, f, "a", c.sig)
			for range c.leases {
				f.Reserve(Route{Stages: []Stage{{"a", Layers(0, 9)}}}, 0)
			}
			e, err := NewRouter(twins(1), f).Explain("m", c.req, Policy{Explore: -1})
			if err != nil {
				t.Fatal(err)
			}
			if got := e.Candidates[0].Terms.String(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestChooseObstacles(t *testing.T) {
	req := AdaptiveRequest{PromptTokens: 400, OutputTokens: 100}
	for _, c := range []struct {
		name   string
		set    func(t *testing.T, f *Fleet)
		req    AdaptiveRequest
		policy Policy
		want   string // the node, or a part of the error
	}{
		{"nothing in the way", func(*testing.T, *Fleet) {}, req, Policy{}, "a"},
		{"dead", func(_ *testing.T, f *Fleet) { f.MarkDead("a") }, req, Policy{}, "pipeline 0: a is dead"},
		{"open circuit", func(t *testing.T, f *Fleet) { signal(t, f, "a", Signals{Circuit: CircuitOpen}) }, req, Policy{}, "a fails too often"},
		{"half-open circuit", func(t *testing.T, f *Fleet) { signal(t, f, "a", Signals{Circuit: CircuitHalfOpen}) }, req, Policy{}, "a"},
		{"half-open and probed", func(t *testing.T, f *Fleet) {
			signal(t, f, "a", Signals{Circuit: CircuitHalfOpen})
			f.Reserve(Route{Stages: []Stage{{"a", Layers(0, 9)}}}, 0)
		}, req, Policy{}, "a is on probation and already probed"},
		{"no KV room", func(t *testing.T, f *Fleet) { signal(t, f, "a", Signals{KVFree: Measured(499)}) }, req, Policy{}, "500 tokens needed, 499 to be had"},
		{"just enough KV room", func(t *testing.T, f *Fleet) { signal(t, f, "a", Signals{KVFree: Measured(500)}) }, req, Policy{}, "a"},
		{"KV room reserved", func(t *testing.T, f *Fleet) {
			signal(t, f, "a", Signals{KVFree: Measured(1000), KVTotal: Measured(1000)})
			f.Reserve(Route{Stages: []Stage{{"a", Layers(0, 9)}}}, 600)
		}, req, Policy{}, "500 tokens needed, 400 to be had"},
		{"KV room kept for rescues", func(t *testing.T, f *Fleet) {
			signal(t, f, "a", Signals{KVFree: Measured(900), KVTotal: Measured(1000)})
		}, req, Policy{KVReserve: 0.5}, "500 tokens needed, 400 to be had"},
		{"a rescue may have it", func(t *testing.T, f *Fleet) {
			signal(t, f, "a", Signals{KVFree: Measured(900), KVTotal: Measured(1000)})
		}, AdaptiveRequest{PromptTokens: 400, OutputTokens: 100, Rescue: true}, Policy{KVReserve: 0.5}, "a"},
		{"layers not held", func(t *testing.T, f *Fleet) {
			n := sample("a", 1, 0, 1)
			n.Fragments = []Fragment{{"m", Layers(0, 4)}, {"m", Layers(6, 9)}}
			if err := f.Observe(n, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}, req, Policy{}, "does not hold layers 0-9: no usable node holds layers 5"},
		{"neighbouring fragments are one holding", func(t *testing.T, f *Fleet) {
			n := sample("a", 1, 0, 1)
			n.Fragments = []Fragment{{"m", Layers(5, 9)}, {"m", Layers(0, 4)}}
			if err := f.Observe(n, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}, req, Policy{}, "a"},
		{"a silent node is believed", func(_ *testing.T, f *Fleet) { f.Forget("a") }, req, Policy{}, "a"},
		{"unless it must confirm", func(_ *testing.T, f *Fleet) { f.Forget("a") }, req, Policy{ConfirmedOnly: true}, "does not hold"},
		{"bad policy", func(*testing.T, *Fleet) {}, req, Policy{KVReserve: 2}, "KV reserve"},
		{"bad request", func(*testing.T, *Fleet) {}, AdaptiveRequest{OutputTokens: -1}, Policy{}, "below zero"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewFleet("m")
			observe(t, f, "a", 1, 0, 10, time.Time{})
			c.set(t, f)
			r, err := NewRouter(twins(1), f).Choose("m", c.req, c.policy)
			got := strings.Join(r.Nodes(), " ")
			if err != nil {
				got = err.Error()
				if strings.HasPrefix(c.name, "bad") != errors.Is(err, ErrInvalid) {
					t.Errorf("%v is of the wrong kind", err)
				}
				// The reason comes before the list of copies: put the words
				// that a case looks for in one order.
				got += ": " + strings.Join(strings.Split(got, ": ")[1:2], "")
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A node that fails fast looks idle and quick; its errors must outweigh that.
func TestFastFailingNodeDoesNotAttract(t *testing.T) {
	f := NewFleet("m")
	observe(t, f, "a", 0.1, 0, 10, time.Time{})
	observe(t, f, "b", 5, 0.5, 10, time.Time{})
	router := NewRouter(twins(2), f)
	req := AdaptiveRequest{OutputTokens: 50}
	if r, err := router.Choose("m", req, Policy{}); err != nil || !r.Uses("a") {
		t.Fatalf("healthy: %v, %v, want a", r, err)
	}
	var c Circuit
	now := time.Unix(0, 0)
	c.Failure(now)
	signal(t, f, "a", Signals{Errors: c.ErrorRate(now), Circuit: c.State(now)})
	if r, err := router.Choose("m", req, Policy{}); err != nil || !r.Uses("b") {
		t.Errorf("after one error: %v, %v, want b", r, err)
	}
}

// Reservations spread simultaneous requests over equal copies before any
// telemetry can: 64 long prompts over 8 copies of two stages each.
func TestBurstDoesNotHerd(t *testing.T) {
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: 10}}}
	for i := range 8 {
		plan.Pipelines = append(plan.Pipelines, Pipeline{ID: i, Model: "m",
			Stages: []Stage{{fmt.Sprintf("front-%d", i), Layers(0, 4)}, {fmt.Sprintf("back-%d", i), Layers(5, 9)}}})
	}
	for _, mode := range []struct {
		name  string
		p     Policy
		limit float64
	}{{"cheapest", Policy{}, 1.3}, {"two choices", Policy{Choice: TwoChoices}, 2}} {
		t.Run(mode.name, func(t *testing.T) {
			st := StateFromPlan(plan)
			for id, n := range st.Nodes {
				n.LatencyMS, n.Load, n.Score = Measured(5), Measured(0), Measured(10)
				st.Nodes[id] = n
			}
			f := fleetOf(t, st, time.Time{})
			router := NewRouter(plan, f)
			count := map[int]int{}
			for i := range 64 {
				r, err := router.Choose("m", AdaptiveRequest{PromptTokens: 4000, Draw: uint64(i)}, mode.p)
				if err != nil {
					t.Fatal(err)
				}
				f.Reserve(r, 4256)
				count[r.PipelineID]++
			}
			least, most := 64, 0
			for i := range 8 {
				least, most = min(least, count[i]), max(most, count[i])
			}
			if float64(most) > mode.limit*float64(least) {
				t.Errorf("most %d, least %d: %v", most, least, count)
			}
		})
	}
}

func TestLeaseIsReleasedOnce(t *testing.T) {
	f := NewFleet("m")
	route := Route{Stages: []Stage{{"a", Layers(0, 3)}, {"b", Layers(4, 5)}, {"a", Layers(6, 9)}}}
	held := func(id string) string {
		n, _ := f.Node(id)
		return fmt.Sprintf("%d/%d", n.InFlight, n.KVTokens)
	}
	first, second := f.Reserve(route, 100), f.Reserve(route, 50)
	if got := held("a") + " " + held("b"); got != "4/300 2/150" {
		t.Errorf("two leases count %s", got)
	}
	f.Forget("a") // a node that left still owes its sessions
	if !first.Release() || first.Release() {
		t.Error("a lease must be released exactly once")
	}
	if got := held("a") + " " + held("b"); got != "2/100 1/50" {
		t.Errorf("one lease counts %s", got)
	}
	second.Release()
	if got := held("a") + " " + held("b"); got != "0/0 0/0" {
		t.Errorf("no lease counts %s", got)
	}
	var none *Lease
	if none.Release() {
		t.Error("a nil lease gave something back")
	}
}

func TestExplorationIsASmallShare(t *testing.T) {
	f := NewFleet("m")
	observe(t, f, "a", 5, 0, 10, time.Time{})
	n := NodeState{ID: "b", Fragments: []Fragment{{"m", Layers(0, 9)}}}
	if err := f.Observe(n, time.Time{}); err != nil {
		t.Fatal(err)
	}
	router := NewRouter(twins(2), f)
	explored := 0
	for draw := range 4000 {
		r, err := router.Choose("m", AdaptiveRequest{Draw: uint64(draw)}, Policy{Explore: 0.05})
		if err != nil {
			t.Fatal(err)
		}
		if r.Uses("b") {
			explored++
			l := f.Reserve(r, 0)
			if again, err := router.Choose("m", AdaptiveRequest{Draw: uint64(draw)}, Policy{Explore: 0.05}); err != nil || again.Uses("b") {
				t.Fatalf("draw %d: a second one goes to the unknown node at once: %v, %v", draw, again, err)
			}
			l.Release()
		}
	}
	if explored < 150 || explored > 250 {
		t.Errorf("%d of 4000 explored, want about 200", explored)
	}
	if r, err := router.Choose("m", AdaptiveRequest{}, Policy{}); err != nil || r.Uses("b") {
		t.Errorf("a request that never drew explores: %v, %v", r, err)
	}
	for draw := range 4000 {
		if r, err := router.Choose("m", AdaptiveRequest{Draw: uint64(draw)}, Policy{Explore: -1}); err != nil || r.Uses("b") {
			t.Fatalf("exploration is off: %v, %v", r, err)
		}
	}
}

// An old sample draws its node's price towards the unmeasured one, always
// dearer, never past it and without a cliff.
func TestStaleness(t *testing.T) {
	f := NewFleet("m")
	at := time.Unix(1000, 0)
	observe(t, f, "a", 5, 0, 10, at)
	router := NewRouter(twins(2), f)
	cost := func(pipeline int, age time.Duration) Cost {
		e, err := router.Explain("m", AdaptiveRequest{Now: at.Add(age)}, Policy{Explore: -1})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range e.Candidates {
			if c.PipelineID == pipeline {
				return c.Cost
			}
		}
		t.Fatal("no such pipeline")
		return 0
	}
	fresh, last := cost(0, 0), Cost(0)
	unmeasured := cost(1, 0)
	for age := time.Duration(0); age < 10*time.Minute; age += time.Second {
		c := cost(0, age)
		switch {
		case age <= 3*time.Second && c != fresh:
			t.Fatalf("after %v it costs %v, fresh %v", age, c, fresh)
		case age > 3*time.Second && c <= last, c > fresh+unmeasured:
			t.Fatalf("after %v it costs %v, a second before %v", age, c, last)
		case last > 0 && float64(c-last) > 0.1*float64(unmeasured):
			t.Fatalf("a cliff at %v: %v, a second before %v", age, c, last)
		}
		last = c
	}
	if float64(last) < 0.9*float64(unmeasured) {
		t.Errorf("after ten minutes it costs %v, an unmeasured node %v", last, unmeasured)
	}
}

func TestTwoChoices(t *testing.T) {
	f := NewFleet("m")
	for i := range 8 {
		observe(t, f, string(rune('a'+i)), float64(1+i), 0, 10, time.Time{})
	}
	router := NewRouter(twins(8), f)
	count := map[string]int{}
	for draw := range 2000 {
		req := AdaptiveRequest{Draw: uint64(draw)}
		p := Policy{Choice: TwoChoices, Explore: -1, Assemble: AssembleNever}
		r, err := router.Choose("m", req, p)
		again, _ := router.Choose("m", req, p)
		if err != nil || !slices.Equal(r.Nodes(), again.Nodes()) {
			t.Fatalf("draw %d: %v, %v, then %v: the same draw must choose the same", draw, r, err, again)
		}
		count[r.Nodes()[0]]++
	}
	// The best of eight is drawn in 1/4 of the pairs, the second best wins in
	// 6/28, ..., the worst never.
	if count["h"] != 0 || count["a"] < 400 || count["b"] < 340 || count["g"] < 30 {
		t.Errorf("choices %v do not look like the better of two", count)
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "h"} {
		f.MarkDead(id)
	}
	if r, err := router.Choose("m", AdaptiveRequest{Draw: 3}, Policy{Choice: TwoChoices}); err != nil || !r.Uses("g") {
		t.Errorf("one copy left: %v, %v, want g", r, err)
	}
}

func TestAdaptiveWindowMayCutStages(t *testing.T) {
	f := NewFleet("m")
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: 10}}, Pipelines: []Pipeline{
		{ID: 0, Model: "m", Stages: []Stage{{"a", Layers(0, 3)}, {"b", Layers(4, 6)}, {"c", Layers(7, 9)}}}}}
	window, beyond := Layers(2, 5), Layers(5, 10)
	r, err := NewRouter(plan, f).Choose("m", AdaptiveRequest{Window: &window}, Policy{Explore: -1})
	if err != nil || stagesText(r.Stages) != "a[2-3] b[4-5]" {
		t.Errorf("got %v, %v, want a[2-3] b[4-5]", r, err)
	}
	if plan.Pipelines[0].Stages[0].Layers != Layers(0, 3) {
		t.Error("the plan was changed")
	}
	if _, err := NewRouter(plan, f).Choose("m", AdaptiveRequest{Window: &beyond}, Policy{}); !errors.Is(err, ErrNoRoute) {
		t.Errorf("a window beyond the model: %v", err)
	}
}

func TestExpectedTokens(t *testing.T) {
	for _, c := range []struct {
		limit   int
		average Reading
		want    int
	}{
		{0, Reading{}, DefaultOutputTokens}, {100, Reading{}, 100}, {100000, Reading{}, MaxExpectedTokens},
		{0, Measured(80.2), 81}, {50, Measured(80.2), 50}, {4000, Measured(80.2), 81}, {0, Measured(0), 1},
	} {
		if got := ExpectedTokens(c.limit, c.average); got != c.want {
			t.Errorf("limit %d, average %v: %d, want %d", c.limit, c.average, got, c.want)
		}
	}
}

// randomFleet observes a random planned state and scatters signals over it.
func randomFleet(t *testing.T, r *rand.Rand) (State, *Fleet, time.Time) {
	t.Helper()
	now := time.Unix(5000, 0)
	st := randomPlanned(r)
	f := NewFleet("m")
	for _, id := range sortedIDs(st.Nodes) {
		if err := f.Observe(st.Nodes[id], now.Add(-time.Duration(r.IntN(20))*time.Second)); err != nil {
			t.Fatal(err)
		}
		s := Signals{RoundTripMS: Measured(float64(r.IntN(3))), Circuit: CircuitState(max(0, r.IntN(8)-5))}
		if r.IntN(2) == 0 {
			s.LayerMS = Measured(float64(r.IntN(3)))
		}
		if r.IntN(2) == 0 {
			s.KVFree, s.KVTotal = Measured(float64(r.IntN(2000))), Measured(2000)
		}
		if r.IntN(3) == 0 {
			s.Errors = Measured(r.Float64())
		}
		signal(t, f, id, s)
		if r.IntN(4) == 0 {
			f.Reserve(Route{Stages: []Stage{{id, Layers(0, 0)}}}, 100)
		}
	}
	return st, f, now
}

func sortedIDs(nodes map[string]NodeState) []string {
	ids := []string{}
	for id := range nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// What Explain says is what Choose did: the same winner, terms that add up to
// the price, and a reason for every loser.
func TestExplainAgreesWithChoose(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	routed, assembled := 0, 0
	for i := range 3000 {
		st, f, now := randomFleet(t, r)
		router := NewRouter(st.Plan, f)
		req := AdaptiveRequest{PromptTokens: r.IntN(500), Now: now, Draw: r.Uint64()}
		policy := Policy{Assemble: AssembleMode(r.IntN(3)), Choice: ChoiceMode(r.IntN(2)), Margin: -1}
		got, err := router.Choose("m", req, policy)
		e, explainErr := router.Explain("m", req, policy)
		if explainErr != nil {
			t.Fatal(explainErr)
		}
		chosen := 0
		for _, c := range e.Candidates {
			if total := c.Terms.Total(); c.Usable && total != c.Cost {
				t.Fatalf("swarm %d: terms %v add up to %v, the price is %v", i, c.Terms, total, c.Cost)
			}
			if c.Verdict == "" {
				t.Fatalf("swarm %d: no verdict on pipeline %d", i, c.PipelineID)
			}
			if c.Chosen {
				chosen++
				if err != nil || c.PipelineID != got.PipelineID || c.Cost != got.Cost || len(c.Stages) != len(got.Stages) {
					t.Fatalf("swarm %d: explained %+v, chose %v, %v", i, c, got, err)
				}
			}
		}
		if (err == nil) != (chosen == 1) || (err != nil) != (e.Error != "") {
			t.Fatalf("swarm %d: %d chosen, error %v, explained %q", i, chosen, err, e.Error)
		}
		if err == nil {
			routed++
			if got.Assembled {
				assembled++
			}
		}
	}
	if routed < 1000 || assembled < 100 {
		t.Errorf("%d routed, %d assembled: the swarms are too much alike", routed, assembled)
	}
}

func ExampleRouter_Explain() {
	plan := &Plan{Models: []ModelSpec{{ID: "llama", Layers: 32}}, Pipelines: []Pipeline{
		{ID: 0, Model: "llama", Stages: []Stage{{"gpu", Layers(0, 15)}, {"laptop", Layers(16, 31)}}},
		{ID: 1, Model: "llama", Stages: []Stage{{"server", Layers(0, 31)}}},
	}}
	fleet := NewFleet("llama")
	router := NewRouter(plan, fleet)
	for id, layerMS := range map[string]float64{"gpu": 0.1, "laptop": 0.5, "server": 0.4} {
		if err := fleet.Signal(id, Signals{LayerMS: Measured(layerMS), RoundTripMS: Measured(0.5)}); err != nil {
			fmt.Println(err)
		}
	}
	req := AdaptiveRequest{PromptTokens: 80, OutputTokens: 100}

	route, _ := router.Choose("llama", req, Policy{})
	lease := fleet.Reserve(route, 180) // counts before any telemetry does
	defer lease.Release()

	why, _ := router.Explain("llama", req, Policy{})
	fmt.Print(why)
	// Output:
	// model "llama", layers 0-31, 80 prompt tokens, 100 expected
	// pipeline 1 1458ms: chosen
	//   server[0-31] 1458ms: decode=1280ms link=50ms prefill=128ms
	// pipeline 0 1480ms: 22ms dearer than pipeline 1
	//   gpu[0-15] 300ms: decode=160ms link=50ms prefill=16ms load=74ms
	//   laptop[16-31] 1180ms: decode=800ms link=50ms prefill=80ms load=250ms
}
