package swarm

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func sample(id string, latency, load, score float64, served ...LayerRange) NodeState {
	return NodeState{ID: id, LatencyMS: Measured(latency), Load: Measured(load), Score: Measured(score), Served: served}
}

func statesOf(list ...NodeState) map[string]NodeState {
	m := map[string]NodeState{}
	for _, n := range list {
		m[n.ID] = n
	}
	return m
}

// The worked example of the rules.
func TestScoreRouteWorkedExample(t *testing.T) {
	states := statesOf(
		sample("gpu", 40, 0.8, 10, Layers(0, 3)),
		sample("mini", 6, 0.2, 6, Layers(0, 3), Layers(4, 7)),
		sample("laptop", 9, 0, 3, Layers(8, 11)),
	)
	w := DefaultWeights()
	for id, want := range map[string]string{"gpu": "139.5ms", "mini": "35.833333ms", "laptop": "20.666667ms"} {
		if got := w.NodeCost(states[id]).String(); got != want {
			t.Errorf("cost of %s is %s, want %s", id, got, want)
		}
	}
	r, err := ScoreRoute(Request{}, states, w, "ncm")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.String(), "ncm: mini[0-7] laptop[8-11] 71.5ms"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if r.Hops() != 1 {
		t.Errorf("%d hops, want 1", r.Hops())
	}
	dear := []Stage{{"gpu", Layers(0, 3)}, {"mini", Layers(4, 7)}, {"laptop", Layers(8, 11)}}
	if got := w.RouteCost(dear, states, 0); got.String() != "226ms" {
		t.Errorf("gpu, mini, laptop cost %s, want 226ms", got)
	}
}

func TestScoreRouteTies(t *testing.T) {
	flat := func(id string, served ...LayerRange) NodeState { return sample(id, 10, 0, 10, served...) }
	free := Weights{Latency: 0, Load: 1, Capacity: 0, Hop: 0}
	for _, c := range []struct {
		name   string
		states map[string]NodeState
		w      Weights
		want   string
	}{
		{"fewer stages", statesOf(flat("b", Layers(0, 3)), flat("a", Layers(0, 1)), flat("c", Layers(2, 3))), free, "m: b[0-3] 0ms"},
		{"smaller ids", statesOf(flat("b", Layers(0, 3)), flat("a", Layers(0, 3))), DefaultWeights(), "m: a[0-3] 13.5ms"},
		{"ids compared from the front", statesOf(flat("a", Layers(0, 1)), flat("z", Layers(2, 3)), flat("b", Layers(0, 1)), flat("c", Layers(2, 3))),
			DefaultWeights(), "m: a[0-1] c[2-3] 42ms"},
		{"longer stage first", statesOf(flat("a", Layers(0, 0), Layers(0, 1), Layers(1, 2)), flat("b", Layers(1, 3), Layers(2, 3), Layers(3, 3))),
			DefaultWeights(), "m: a[0-2] b[3] 42ms"},
		{"staying beats the two cheapest", statesOf(sample("a", 10, 0, 1, Layers(0, 3)), sample("b", 11, 0, 1, Layers(0, 3)),
			sample("c", 12, 0, 1, Layers(0, 3), Layers(4, 7))), Weights{Latency: 1, Hop: 1}, "m: c[0-7] 12ms"},
		{"a node that comes back pays again", statesOf(flat("a", Layers(0, 0), Layers(2, 2)), flat("b", Layers(1, 1))),
			DefaultWeights(), "m: a[0] b[1] a[2] 70.5ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := ScoreRoute(Request{}, c.states, c.w, "m")
			if err != nil {
				t.Fatal(err)
			}
			if r.String() != c.want {
				t.Errorf("got %s, want %s", r, c.want)
			}
		})
	}
}

func TestScoreRouteErrors(t *testing.T) {
	states := statesOf(sample("a", 1, 0, 1, Layers(0, 3)), sample("b", 1, 0, 1, Layers(4, 5)), sample("c", 1, 0, 1, Layers(8, 11)))
	inverted, wide := LayerRange{5, 2}, Layers(0, 11)
	for _, c := range []struct {
		name string
		req  Request
		w    Weights
		want error
		says []string
	}{
		{"gap", Request{Window: &wide}, DefaultWeights(), ErrNoRoute, []string{`"m"`, "0-11", "reached layer 6"}},
		{"inverted", Request{Window: &inverted}, DefaultWeights(), ErrInvalid, []string{"[5, 2]"}},
		{"negative prompt", Request{PromptTokens: -1}, DefaultWeights(), ErrInvalid, []string{"-1"}},
		{"negative weight", Request{}, Weights{Hop: -1}, ErrInvalid, []string{"hop"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ScoreRoute(c.req, states, c.w, "m")
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
	if _, err := ScoreRoute(Request{}, nil, DefaultWeights(), "m"); !errors.Is(err, ErrNoRoute) {
		t.Errorf("an empty swarm: %v, want ErrNoRoute", err)
	}
}

// randomSwarm makes small swarms with few different prices, so that ties are
// common.
func randomSwarm(r *rand.Rand) (map[string]NodeState, int) {
	layers := 2 + r.IntN(7)
	states := map[string]NodeState{}
	for i := range 2 + r.IntN(4) {
		n := sample(string(rune('a'+i)), float64(r.IntN(3)*15), float64(r.IntN(2)), 10)
		if r.IntN(8) == 0 {
			n = n.Unmeasured()
		}
		n.Dead = r.IntN(8) == 0
		for range r.IntN(5) {
			first := r.IntN(layers)
			n.Served = append(n.Served, Layers(first, first+r.IntN(layers-first)))
		}
		states[n.ID] = n
	}
	return states, layers
}

// bruteRoutes calls yield with every chain over the window.
func bruteRoutes(states map[string]NodeState, window LayerRange, yield func([]Stage)) {
	var walk func(at int, stages []Stage)
	walk = func(at int, stages []Stage) {
		if at > window.Last {
			yield(stages)
			return
		}
		for id, n := range states {
			for _, f := range n.Served {
				if !n.Dead && f.First == at && f.Last <= window.Last {
					walk(f.Last+1, appendStage(slices.Clone(stages), Stage{id, f}))
				}
			}
		}
	}
	walk(window.First, nil)
}

func compareRoutes(w Weights, states map[string]NodeState, a, b []Stage) int {
	order := cmp.Or(
		cmp.Compare(w.RouteCost(a, states, 0), w.RouteCost(b, states, 0)),
		cmp.Compare(len(a), len(b)),
		slices.Compare(Route{Stages: a}.Nodes(), Route{Stages: b}.Nodes()),
	)
	for i := 0; order == 0 && i < len(a); i++ {
		order = cmp.Compare(b[i].Layers.Last, a[i].Layers.Last)
	}
	return order
}

func TestScoreRouteAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	found, none := 0, 0
	for i := range 6000 {
		states, layers := randomSwarm(r)
		window := Layers(0, layers-1)
		if r.IntN(3) == 0 {
			window.First = r.IntN(layers)
			window.Last = window.First + r.IntN(layers-window.First)
		}
		w := DefaultWeights()
		if r.IntN(3) == 0 {
			w.Hop = 0
		}
		var best []Stage
		bruteRoutes(states, window, func(s []Stage) {
			if best == nil || compareRoutes(w, states, s, best) < 0 {
				best = s
			}
		})
		got, err := ScoreRoute(Request{Window: &window}, states, w, "m")
		if best == nil {
			none++
			if !errors.Is(err, ErrNoRoute) {
				t.Fatalf("swarm %d: got %v, %v where no chain exists", i, got, err)
			}
			continue
		}
		found++
		if err != nil {
			t.Fatalf("swarm %d: %v, want %v", i, err, best)
		}
		if !slices.Equal(got.Stages, best) {
			t.Fatalf("swarm %d: got %v, want %v", i, got.Stages, best)
		}
		if want := w.RouteCost(best, states, 0); got.Cost != want {
			t.Fatalf("swarm %d: cost %v, want %v", i, got.Cost, want)
		}
		if err := ValidateRoute(got, State{Nodes: states}, RouteCheck{Window: &window}); err != nil {
			t.Fatalf("swarm %d: %v", i, err)
		}
	}
	if found < 1000 || none < 1000 {
		t.Errorf("%d with a route, %d without: the swarms are too much alike", found, none)
	}
}

// A node's served layers speak of the base model, its fragments of all.
func TestHolds(t *testing.T) {
	n := NodeState{ID: "a", Served: []LayerRange{Layers(0, 3)}, Fragments: []Fragment{{"base", Layers(0, 3)}, {"expert", Layers(2, 5)}}}
	old := NodeState{ID: "b", Served: []LayerRange{Layers(0, 3)}}
	for _, c := range []struct {
		n           NodeState
		model, base string
		layer       int
		want        bool
	}{
		{n, "base", "base", 1, true}, {n, "base", "", 1, true}, {n, "expert", "base", 1, false}, {n, "expert", "base", 4, true},
		{n, "expert", "", 0, false}, {old, "base", "base", 1, true}, {old, "base", "", 1, true}, {old, "expert", "base", 1, false},
	} {
		if got := c.n.HoldsLayer(c.model, c.base, c.layer); got != c.want {
			t.Errorf("%s holds layer %d of %s (base %q): %v, want %v", c.n.ID, c.layer, c.model, c.base, got, c.want)
		}
	}
}

func ExampleScoreRoute() {
	states := map[string]NodeState{
		"gpu":    {LatencyMS: Measured(40), Load: Measured(0.8), Score: Measured(10), Served: []LayerRange{Layers(0, 3)}},
		"mini":   {LatencyMS: Measured(6), Load: Measured(0.2), Score: Measured(6), Served: []LayerRange{Layers(0, 3), Layers(4, 7)}},
		"laptop": {LatencyMS: Measured(9), Load: Measured(0), Score: Measured(3), Served: []LayerRange{Layers(8, 11)}},
	}
	route, err := ScoreRoute(Request{}, states, DefaultWeights(), "llama")
	fmt.Println(route, err)
	// Output: llama: mini[0-7] laptop[8-11] 71.5ms <nil>
}
