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

// randomPlanned makes a plan of a few copies of two models over a few nodes,
// with telemetry that holds what the plan says and now and then some more.
func randomPlanned(r *rand.Rand) State {
	layers := 3 + r.IntN(8)
	nodes := 2 + r.IntN(5)
	node := func() string { return string(rune('a' + r.IntN(nodes))) }
	plan := &Plan{}
	for id := range 1 + r.IntN(5) {
		p := Pipeline{ID: id, Model: []string{"m", "m", "other"}[r.IntN(3)]}
		for first := 0; first < layers; {
			last := first + r.IntN(layers-first)
			p.Stages = appendStage(p.Stages, Stage{node(), Layers(first, last)})
			first = last + 1
		}
		plan.Pipelines = append(plan.Pipelines, p)
	}
	st := StateFromPlan(plan)
	for i := range nodes {
		id := string(rune('a' + i))
		n := st.Nodes[id]
		n.ID = id
		if r.IntN(8) > 0 {
			n.LatencyMS, n.Load, n.Score = Measured(float64(r.IntN(3)*10)), Measured(float64(r.IntN(2))), Measured(10)
		}
		n.Dead = r.IntN(6) == 0
		if r.IntN(2) == 0 {
			first := r.IntN(layers)
			n.Fragments = append(n.Fragments, Fragment{"m", Layers(first, first+r.IntN(layers-first))})
		}
		st.Nodes[id] = n
	}
	return st
}

func TestRouteRequest(t *testing.T) {
	plan := &Plan{Pipelines: []Pipeline{
		{ID: 3, Model: "m", Stages: []Stage{{"a", Layers(0, 3)}, {"b", Layers(4, 7)}}},
		{ID: 1, Model: "m", Stages: []Stage{{"c", Layers(0, 3)}, {"d", Layers(4, 7)}}},
		{ID: 2, Model: "other", Stages: []Stage{{"idle", Layers(0, 7)}}},
		{ID: 4, Model: "m"},
	}}
	st := StateFromPlan(plan)
	set := func(ids string, latency float64) {
		for _, id := range strings.Split(ids, "") {
			n := st.Nodes[id]
			n.LatencyMS, n.Load, n.Score = Measured(latency), Measured(0), Measured(10)
			st.Nodes[id] = n
		}
	}
	route := func(req Request) string {
		r, err := RouteRequest("m", req, st)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprintf("%d %s", r.PipelineID, r)
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	expect(route(Request{}), "1 m: c[0-3] d[4-7] 2015ms") // all unmeasured: the smaller id
	set("ab", 5)
	expect(route(Request{}), "3 m: a[0-3] b[4-7] 32ms")
	set("cd", 4)
	expect(route(Request{PromptTokens: 1024}), "1 m: c[0-3] d[4-7] 40ms")
	tail, cut := Layers(4, 7), Layers(2, 7)
	expect(route(Request{Window: &tail}), "1 m: d[4-7] 7.5ms")
	if got := route(Request{Window: &cut}); !strings.Contains(got, "pipeline 1: has no whole stages over layers 2-7") {
		t.Errorf("a window that cuts a stage: %q", got)
	}
	for _, id := range []string{"a", "d"} {
		n := st.Nodes[id]
		n.Dead = true
		st.Nodes[id] = n
	}
	expect(route(Request{}), `no route for model "m": pipeline 1: d is dead; pipeline 3: a is dead; pipeline 4: has no stages`)
	if _, err := RouteRequest("absent", Request{}, st); !errors.Is(err, ErrNoRoute) || !strings.Contains(err.Error(), "no copy of it") {
		t.Errorf("an unknown model: %v", err)
	}
	if _, err := RouteRequest("m", Request{}, State{}); !errors.Is(err, ErrNoRoute) {
		t.Errorf("no plan: %v", err)
	}
}

// The compiled router and the plain function are one implementation; with the
// fleet's samples they must agree on everything, errors included.
func TestRouterAgreesWithRouteRequest(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	for i := range 2000 {
		st := randomPlanned(r)
		fleet := NewFleet("m")
		for _, n := range st.Nodes {
			if err := fleet.Observe(n, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
		req := Request{PromptTokens: r.IntN(3000)}
		if r.IntN(3) == 0 {
			w := Layers(0, r.IntN(6))
			req.Window = &w
		}
		want, wantErr := RouteRequest("m", req, st)
		got, gotErr := NewRouter(st.Plan, fleet).RouteRequest("m", req, nil)
		if fmt.Sprint(got, wantErr) != fmt.Sprint(want, gotErr) {
			t.Fatalf("swarm %d: compiled %v, %v, plain %v, %v", i, got, gotErr, want, wantErr)
		}
	}
}

func TestRouteRequestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(31, 32))
	routed := 0
	for i := range 3000 {
		st := randomPlanned(r)
		got, err := RouteRequest("m", Request{}, st)
		if err != nil {
			for _, p := range st.Plan.Pipelines {
				if p.Model == "m" && !slices.ContainsFunc(p.Stages, func(s Stage) bool { return st.Nodes[s.Node].Dead }) {
					t.Fatalf("swarm %d: %v, yet pipeline %d lives", i, err, p.ID)
				}
			}
			continue
		}
		routed++
		if got.Model != "m" {
			t.Fatalf("swarm %d: another model answers: %v", i, got)
		}
		if err := ValidateRoute(got, st, RouteCheck{ConfirmedOnly: true}); err != nil {
			t.Fatalf("swarm %d: %v", i, err)
		}
		for _, p := range st.Plan.Pipelines {
			cost := DefaultWeights().RouteCost(p.Stages, st.Nodes, 0)
			alive := !slices.ContainsFunc(p.Stages, func(s Stage) bool { return st.Nodes[s.Node].Dead })
			if p.Model == "m" && alive && (cost < got.Cost || cost == got.Cost && p.ID < got.PipelineID) {
				t.Fatalf("swarm %d: chose %v, yet pipeline %d costs %v", i, got, p.ID, cost)
			}
		}
	}
	if routed < 1000 {
		t.Errorf("only %d of the swarms could be routed", routed)
	}
}

func TestChoosingDoesNotAllocate(t *testing.T) {
	plan := threeStagePlan(16, 48)
	st := measuredState(plan, rand.New(rand.NewPCG(1, 2)))
	fleet := fleetOf(t, st, time.Unix(0, 0))
	router := NewRouter(plan, fleet)
	for name, choose := range map[string]func() error{
		"values":   func() error { _, err := RouteRequest("m", Request{PromptTokens: 9}, st); return err },
		"compiled": func() error { _, err := router.RouteRequest("m", Request{PromptTokens: 9}, nil); return err },
		"adaptive": func() error {
			// The margin keeps a chain from winning, not from being looked for.
			_, err := router.Choose("m", AdaptiveRequest{Now: time.Unix(20, 0)}, Policy{Margin: 1})
			return err
		},
	} {
		if n := testing.AllocsPerRun(100, func() {
			if err := choose(); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

func TestStateFromProfiles(t *testing.T) {
	plan := &Plan{
		Nodes:     []NodePlan{{Profile: NodeProfile{ID: "a"}, Fragments: []PlacedFragment{{Model: "m", Layers: Layers(0, 5)}, {Model: "m", Layers: Layers(8, 9), Spare: true}}}},
		Pipelines: []Pipeline{{ID: 0, Model: "m", Stages: []Stage{{"a", Layers(0, 5)}, {"b", Layers(6, 9)}}}},
	}
	st := StateFromProfiles(plan, []NodeProfile{{ID: "a", LatencyMS: 7, Score: 2}, {ID: "new", LatencyMS: 1, Score: 1}})
	if err := st.Validate(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(st.Nodes["a"].Fragments, st.Nodes["b"].Fragments, st.Nodes["new"].Fragments); got != "[{m 0-5} {m 8-9}] [{m 6-9}] []" {
		t.Errorf("holdings: %s", got)
	}
	w := DefaultWeights()
	for id, want := range map[string]string{"a": "24.5ms", "b": "1000ms", "new": "36ms"} {
		if got := w.NodeCost(st.Nodes[id]).String(); got != want {
			t.Errorf("%s costs %s, want %s", id, got, want)
		}
	}
}

func TestStateValidate(t *testing.T) {
	bad := DefaultWeights()
	bad.Load = -1
	for name, st := range map[string]State{
		"other id": {Nodes: map[string]NodeState{"a": {ID: "b"}}},
		"sample":   {Nodes: map[string]NodeState{"a": {ID: "a", Load: Measured(-1)}}},
		"weights":  {Weights: &bad},
	} {
		if err := st.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func ExampleRouteRequest() {
	plan := &Plan{Pipelines: []Pipeline{
		{ID: 0, Model: "llama", Stages: []Stage{{"gpu", Layers(0, 15)}, {"laptop", Layers(16, 31)}}},
		{ID: 1, Model: "llama", Stages: []Stage{{"server", Layers(0, 31)}}},
	}}
	st := StateFromProfiles(plan, []NodeProfile{
		{ID: "gpu", LatencyMS: 5, Score: 20}, {ID: "laptop", LatencyMS: 9, Score: 5}, {ID: "server", LatencyMS: 20, Score: 10},
	})
	route, _ := RouteRequest("llama", Request{PromptTokens: 512}, st)
	fmt.Println(route)

	server := st.Nodes["server"]
	server.Dead = true
	st.Nodes["server"] = server
	route, _ = RouteRequest("llama", Request{PromptTokens: 512}, st)
	fmt.Println(route)
	// Output:
	// llama: server[0-31] 28.5ms
	// llama: gpu[0-15] laptop[16-31] 42.75ms
}
