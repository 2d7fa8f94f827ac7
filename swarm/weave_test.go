package swarm

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// An assembled chain against every assignment of nodes to layers.
func TestAssembledChainAgainstBruteForce(t *testing.T) {
	r := rand.New(rand.NewPCG(71, 72))
	found, none := 0, 0
	for i := range 3000 {
		st, f, now := randomFleet(t, r)
		layers := 1 + r.IntN(6)
		window := Layers(0, layers-1)
		router := NewRouter(&Plan{Models: []ModelSpec{{ID: "m", Layers: 12}}}, f)
		req := AdaptiveRequest{Window: &window, Now: now, PromptTokens: r.IntN(300)}
		got, err := router.Choose("m", req, Policy{Explore: -1})

		p, _, pricingErr := router.pricing("m", req, Policy{Explore: -1})
		if pricingErr != nil {
			t.Fatal(pricingErr)
		}
		best, stages := bruteAssign(p, sortedIDs(st.Nodes), window)
		if stages == nil {
			none++
			if !errors.Is(err, ErrNoRoute) {
				t.Fatalf("swarm %d: got %v, %v where a layer has no holder", i, got, err)
			}
			continue
		}
		found++
		if err != nil || got.Cost != best || !got.Assembled || got.PipelineID != -1 {
			t.Fatalf("swarm %d: got %v, %v, want %v over %v", i, got, err, best, stages)
		}
		if len(got.Stages) > len(stages) {
			t.Fatalf("swarm %d: %v has more stages than %v at the same price", i, got, stages)
		}
		if err := ValidateRoute(got, f.State(nil), RouteCheck{Window: &window, ConfirmedOnly: true}); err != nil {
			t.Fatalf("swarm %d: %v", i, err)
		}
	}
	if found < 500 || none < 500 {
		t.Errorf("%d with a chain, %d without: the swarms are too much alike", found, none)
	}
}

// bruteAssign tries every usable holder for every layer and returns the
// cheapest way, the one with fewest stages among equals.
func bruteAssign(p *pricing, ids []string, window LayerRange) (Cost, []Stage) {
	best, bestStages := Infinite, []Stage(nil)
	var walk func(layer int, stages []Stage)
	walk = func(layer int, stages []Stage) {
		if layer > window.Last {
			cost := Cost(0)
			for _, s := range stages {
				cost = cost.Add(p.price(p.fleet.ids[s.Node]).of(s.Layers.Len()))
			}
			if cost < best || cost == best && len(stages) < len(bestStages) {
				best, bestStages = cost, stages
			}
			return
		}
		for _, id := range ids {
			i, one := p.fleet.ids[id], Layers(layer, layer)
			if p.available(i) == noObstacle && p.fleet.nodes[i].holds(p.model, one) {
				walk(layer+1, appendStage(slices.Clone(stages), Stage{id, one}))
			}
		}
	}
	walk(window.First, nil)
	return best, bestStages
}

func TestAssembleModes(t *testing.T) {
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: 10}}, Pipelines: []Pipeline{
		{ID: 0, Model: "m", Stages: []Stage{{"slow", Layers(0, 4)}, {"fast", Layers(5, 9)}}}}}
	setup := func(t *testing.T, slow float64) (*Fleet, *Router) {
		f := NewFleet("m")
		for id, held := range map[string]LayerRange{"slow": Layers(0, 4), "fast": Layers(2, 9), "spare": Layers(0, 6)} {
			n := NodeState{ID: id, Fragments: []Fragment{{"m", held}}}
			if err := f.Observe(n, time.Time{}); err != nil {
				t.Fatal(err)
			}
			s := Signals{LayerMS: Measured(1), RoundTripMS: Measured(0)}
			if id == "slow" {
				s.LayerMS = Measured(slow)
			}
			signal(t, f, id, s)
		}
		return f, NewRouter(plan, f)
	}
	for _, c := range []struct {
		name string
		slow float64
		dead string
		mode AssembleMode
		want string
	}{
		{"a copy that is nearly as good stays", 1.2, "", AssembleCheaper, "slow[0-4] fast[5-9]"},
		{"a chain that saves the margin wins", 5, "", AssembleCheaper, "spare[0-6] fast[7-9]"},
		{"not when only broken copies are replaced", 5, "", AssembleBroken, "slow[0-4] fast[5-9]"},
		{"no copy lives", 1, "slow", AssembleBroken, "spare[0-6] fast[7-9]"},
		{"never", 1, "slow", AssembleNever, ""},
		{"a layer without a holder", 1, "fast", AssembleCheaper, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, router := setup(t, c.slow)
			if c.dead != "" {
				f.MarkDead(c.dead)
			}
			r, err := router.Choose("m", AdaptiveRequest{OutputTokens: 100}, Policy{Assemble: c.mode})
			if (err != nil) != (c.want == "") || stagesText(r.Stages) != c.want {
				t.Errorf("got %v, %v, want %q", r, err, c.want)
			}
			if r.Assembled != (r.PipelineID == -1 && err == nil) {
				t.Errorf("%v is labelled wrongly", r)
			}
		})
	}
}
