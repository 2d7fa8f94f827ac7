package swarm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func stagesText(stages []Stage) string {
	parts := make([]string, len(stages))
	for i, s := range stages {
		parts[i] = s.String()
	}
	return strings.Join(parts, " ")
}

func TestFailover(t *testing.T) {
	ranged := func(stages ...Stage) Route { return Route{Model: "m", Stages: stages} }
	states := statesOf(
		sample("a", 10, 0, 10, Layers(0, 3)), sample("b", 10, 0, 10, Layers(4, 7)), sample("c", 10, 0, 10, Layers(8, 11)),
		sample("cheap", 1, 0, 10, Layers(4, 5)), sample("dear", 50, 0, 10, Layers(4, 7)), sample("twin", 1, 0, 10, Layers(4, 5)),
		NodeState{ID: "corpse", Served: []LayerRange{Layers(0, 11)}, Dead: true},
	)
	abc := ranged(Stage{"a", Layers(0, 3)}, Stage{"b", Layers(4, 7)}, Stage{"c", Layers(8, 11)})
	for _, c := range []struct {
		name       string
		route      Route
		redundancy Redundancy
		failed     string
		opts       FailoverOptions
		want       string // stages and replacements, or what the error says
	}{
		{"not on the route", abc, nil, "cheap", FailoverOptions{}, "a[0-3] b[4-7] c[8-11] not on the route"},
		{"per layer the cheapest, ties by id", abc, nil, "b", FailoverOptions{}, "a[0-3] cheap[4-5] dear[6-7] c[8-11] cheap:4-5 dear:6-7"},
		{"a neighbour takes over and collapses", abc, Redundancy{4: {"a"}, 5: {"a"}, 6: {"a", "corpse"}, 7: {"c"}}, "b",
			FailoverOptions{Weights: &Weights{}}, "a[0-6] c[7-11] a:4-6 c:7"},
		{"a substitute that comes back keeps its later stage", ranged(Stage{"a", Layers(0, 3)}, Stage{"b", Layers(4, 7)}, Stage{"cheap", Layers(8, 11)}), Redundancy{6: {"cheap"}, 7: {"twin"}}, "b",
			FailoverOptions{}, "a[0-3] cheap[4-6] twin[7] cheap[8-11] cheap:4-6 twin:7"},
		{"both stages of the failed node", ranged(Stage{"b", Layers(4, 5)}, Stage{"a", Layers(6, 6)}, Stage{"b", Layers(7, 7)}), nil, "b",
			FailoverOptions{}, "cheap[4-5] a[6] dear[7] cheap:4-5 dear:7"},
		{"nobody holds the lost layers", abc, nil, "c", FailoverOptions{}, `unrecoverable: model "m" over layers 0-11 lost c: no other living holder of layers 8-11`},
		{"survivors under the fallback's name", abc, nil, "c", FailoverOptions{FallbackModel: "small"}, "small a[-] b[-] survivors"},
		{"another dead node on the route", ranged(Stage{"b", Layers(4, 5)}, Stage{"corpse", Layers(6, 7)}), nil, "b", FailoverOptions{}, "cheap[4-5] dear[6-7] cheap:4-5 dear:6-7"},
		{"no ranges: by telemetry", ranged(Stage{"a", Unstated()}, Stage{"b", Unstated()}), nil, "b", FailoverOptions{}, "a[-] cheap[-] dear[-] cheap:4-5 dear:6-7"},
		{"no ranges: by the redundancy map", ranged(Stage{"x", Unstated()}, Stage{"c", Unstated()}), Redundancy{0: {"x", "y"}, 1: {"x", "a"}}, "x",
			FailoverOptions{}, "a[-] c[-] a:0-1"},
		{"no ranges: clipped to the window", ranged(Stage{"a", Unstated()}, Stage{"b", Unstated()}), nil, "b",
			FailoverOptions{Window: &LayerRange{0, 5}}, "a[-] cheap[-] cheap:4-5"},
		{"nothing known of what it ran", ranged(Stage{"x", Unstated()}), nil, "x", FailoverOptions{}, "nothing says which layers it ran"},
		{"stages that do not follow one another", ranged(Stage{"a", Layers(0, 3)}, Stage{"b", Layers(5, 7)}), nil, "b", FailoverOptions{}, "does not begin at layer 4"},
		{"ranges stated in part", ranged(Stage{"a", Layers(0, 3)}, Stage{"b", Unstated()}), nil, "b", FailoverOptions{}, "states no layers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Failover(c.route, c.redundancy, c.failed, states, c.opts)
			if text := failoverText(got, err); !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

func failoverText(r Route, err error) string {
	if err != nil {
		return err.Error()
	}
	text := stagesText(r.Stages)
	if r.Degraded {
		text = r.Model + " " + text
	}
	if r.Reason != "" {
		text += " " + r.Reason
	}
	for _, rep := range r.Replaced {
		text += fmt.Sprintf(" %s:%s", rep.By, rep.Layers)
	}
	return text
}

func TestFailoverInSwarmOrder(t *testing.T) {
	plan := &Plan{Pipelines: []Pipeline{
		{ID: 0, Model: "m", Stages: []Stage{{"a", Layers(0, 3)}, {"b", Layers(4, 7)}}},
		{ID: 1, Model: "m", Stages: []Stage{{"c", Layers(0, 3)}, {"d", Layers(4, 7)}}},
		{ID: 2, Model: "expert", Stages: []Stage{{"e", Layers(0, 7)}}},
	}, Redundancy: map[string]Redundancy{"m": {4: {"b", "e"}, 5: {"b", "e"}, 6: {"b", "e"}, 7: {"b", "e"}}}}
	broken := Route{Model: "m", PipelineID: 0, Stages: plan.Pipelines[0].Stages}
	kill := func(ids ...string) State {
		st := StateFromPlan(plan)
		for _, id := range ids {
			n := st.Nodes[id]
			n.Dead = true
			st.Nodes[id] = n
		}
		return st
	}
	for _, c := range []struct {
		name   string
		dead   []string
		failed string
		opts   FailoverOptions
		want   string
	}{
		{"not on the route", nil, "c", FailoverOptions{}, "0 m: a[0-3] b[4-7] +Inf"},
		{"whole copy first", nil, "b", FailoverOptions{}, "1 m: c[0-3] d[4-7] 2015ms"},
		{"then a splice", []string{"d"}, "b", FailoverOptions{}, "-1 m: a[0-3] e[4-7] 2015ms"},
		{"a splice before degradation", []string{"d"}, "b", FailoverOptions{FallbackModel: "expert"}, "-1 m: a[0-3] e[4-7] 2015ms"},
		{"the map alone is not enough", []string{"d"}, "b", FailoverOptions{ConfirmedOnly: true}, "no other living holder of layers 4-7"},
		{"the fallback's copy", []string{"c"}, "a", FailoverOptions{FallbackModel: "expert"}, "2 expert: e[0-7] 1000ms degraded"},
		{"the survivors", []string{"c", "e"}, "a", FailoverOptions{FallbackModel: "expert"}, "-1 expert: b[-] 1000ms degraded"},
		{"never undeclared", []string{"d", "c"}, "a", FailoverOptions{}, "no other living holder of layers 0-3"},
		{"other dead nodes count", []string{"b", "e", "d"}, "a", FailoverOptions{}, "lost a, b: no other living holder of layers 4-7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			route := broken
			route.Cost = Infinite
			got, err := FailoverInSwarm(route, c.failed, kill(c.dead...), c.opts)
			text := fmt.Sprintf("%d %s", got.PipelineID, got)
			if err != nil {
				text = err.Error()
				if !errors.Is(err, ErrUnrecoverable) {
					t.Errorf("%v is not ErrUnrecoverable", err)
				}
			}
			if !strings.Contains(text, c.want) {
				t.Errorf("got %q, want %q", text, c.want)
			}
		})
	}
}

// Whatever comes out of a failover never runs on a failed or dead node, covers
// the window once, and runs only where holders are.
func TestFailoverProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	kinds := map[string]int{}
	for i := range 6000 {
		st := randomPlanned(r)
		p := st.Plan.Pipelines[r.IntN(len(st.Plan.Pipelines))]
		route := Route{Model: p.Model, PipelineID: p.ID, Stages: p.Stages}
		failed := p.Stages[r.IntN(len(p.Stages))].Node
		opts := FailoverOptions{}
		if r.IntN(3) == 0 {
			opts.FallbackModel = []string{"m", "other", "absent"}[r.IntN(3)]
		}
		classic, classicErr := Failover(route, nil, failed, st.Nodes, opts)
		inSwarm, inSwarmErr := FailoverInSwarm(route, failed, st, opts)
		kinds["classic "+checkRescue(t, i, route, classic, classicErr, failed, st, opts)]++
		kinds["swarm "+checkRescue(t, i, route, inSwarm, inSwarmErr, failed, st, opts)]++
		if inSwarmErr != nil && classicErr == nil {
			t.Fatalf("swarm %d: the swarm gives up (%v) where one route can be repaired: %v", i, inSwarmErr, classic)
		}
	}
	for _, k := range []string{"classic full", "classic degraded", "classic error", "swarm full", "swarm degraded", "swarm error"} {
		if kinds[k] < 100 {
			t.Errorf("%d of %q: the swarms are too much alike", kinds[k], k)
		}
	}
}

func checkRescue(t *testing.T, i int, route, got Route, err error, failed string, st State, opts FailoverOptions) string {
	t.Helper()
	if err != nil {
		if !errors.Is(err, ErrUnrecoverable) {
			t.Fatalf("swarm %d: %v", i, err)
		}
		return "error"
	}
	for _, s := range got.Stages {
		if s.Node == failed || st.Nodes[s.Node].Dead {
			t.Fatalf("swarm %d: %v runs on %s, which is dead", i, got, s.Node)
		}
	}
	if got.Degraded {
		if got.Model != opts.FallbackModel || opts.FallbackModel == "" {
			t.Fatalf("swarm %d: degraded to %q, allowed is %q", i, got.Model, opts.FallbackModel)
		}
		return "degraded"
	}
	window := route.Window()
	if err := ValidateRoute(got, st, RouteCheck{Window: &window, ConfirmedOnly: true}); err != nil {
		t.Fatalf("swarm %d: %v", i, err)
	}
	if got.Model != route.Model {
		t.Fatalf("swarm %d: %v stands in for %q", i, got, route.Model)
	}
	return "full"
}

func TestValidateRoute(t *testing.T) {
	st := State{Plan: &Plan{Redundancy: map[string]Redundancy{"m": {4: {"planned"}, 5: {"planned"}}}},
		Nodes: statesOf(sample("a", 1, 0, 1, Layers(0, 3)), sample("b", 1, 0, 1, Layers(2, 5)), NodeState{ID: "dead", Dead: true, Served: []LayerRange{Layers(0, 5)}})}
	window := Layers(0, 5)
	for _, c := range []struct {
		name  string
		route []Stage
		check RouteCheck
		says  string
	}{
		{"good", []Stage{{"a", Layers(0, 3)}, {"b", Layers(4, 5)}}, RouteCheck{Window: &window}, ""},
		{"planned holder", []Stage{{"a", Layers(0, 3)}, {"planned", Layers(4, 5)}}, RouteCheck{}, ""},
		{"planned is not confirmed", []Stage{{"a", Layers(0, 3)}, {"planned", Layers(4, 5)}}, RouteCheck{ConfirmedOnly: true}, "does not hold"},
		{"no stages", nil, RouteCheck{}, "no stages"},
		{"short", []Stage{{"a", Layers(0, 3)}}, RouteCheck{Window: &window}, "end at layer 3"},
		{"overlap", []Stage{{"a", Layers(0, 3)}, {"b", Layers(3, 5)}}, RouteCheck{}, "does not begin at layer 4"},
		{"dead", []Stage{{"dead", Layers(0, 5)}}, RouteCheck{}, "dead"},
		{"not a holder", []Stage{{"b", Layers(0, 5)}}, RouteCheck{}, "does not hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := ValidateRoute(Route{Model: "m", Stages: slices.Clone(c.route)}, st, c.check)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

func ExampleFailover() {
	states := map[string]NodeState{
		"gpu":    {LatencyMS: Measured(5), Load: Measured(0), Score: Measured(20), Served: []LayerRange{Layers(0, 7)}},
		"mini":   {LatencyMS: Measured(6), Load: Measured(0), Score: Measured(6), Served: []LayerRange{Layers(8, 11)}},
		"laptop": {LatencyMS: Measured(9), Load: Measured(0), Score: Measured(3), Served: []LayerRange{Layers(6, 11)}},
	}
	route := Route{Model: "llama", Stages: []Stage{{"gpu", Layers(0, 7)}, {"mini", Layers(8, 11)}}}
	repaired, err := Failover(route, nil, "mini", states, FailoverOptions{})
	fmt.Println(repaired, err)

	_, err = Failover(route, nil, "gpu", states, FailoverOptions{})
	fmt.Println(err)
	// Output:
	// llama: gpu[0-7] laptop[8-11] 42.416667ms <nil>
	// unrecoverable: model "llama" over layers 0-11 lost gpu: no other living holder of layers 0-5
}
