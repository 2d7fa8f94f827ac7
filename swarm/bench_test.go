package swarm

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// threeStagePlan has copies of three stages each on nodes of their own.
func threeStagePlan(copies, layers int) *Plan {
	plan := &Plan{Models: []ModelSpec{{ID: "m", Layers: layers}}}
	third := layers / 3
	for i := range copies {
		node := func(s int) string { return fmt.Sprintf("node-%03d", 3*i+s) }
		plan.Pipelines = append(plan.Pipelines, Pipeline{ID: i, Model: "m", Stages: []Stage{
			{node(0), Layers(0, third-1)}, {node(1), Layers(third, 2*third-1)}, {node(2), Layers(2*third, layers-1)},
		}})
	}
	return plan
}

// measuredState gives every node of the plan random telemetry.
func measuredState(plan *Plan, r *rand.Rand) State {
	st := StateFromPlan(plan)
	for id, n := range st.Nodes {
		n.LatencyMS, n.Load, n.Score = Measured(1+r.Float64()*40), Measured(r.Float64()), Measured(1+r.Float64()*20)
		st.Nodes[id] = n
	}
	return st
}

func fleetOf(tb testing.TB, st State, now time.Time) *Fleet {
	tb.Helper()
	if st.Plan == nil {
		st.Plan = &Plan{Models: []ModelSpec{{ID: "m"}}}
	}
	f, err := FleetFromState(st, now)
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func BenchmarkChooseAmong16Pipelines(b *testing.B) {
	plan := threeStagePlan(16, 48)
	st := measuredState(plan, rand.New(rand.NewPCG(1, 2)))
	fleet := fleetOf(b, st, time.Time{})
	router := NewRouter(plan, fleet)
	b.Run("values", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := RouteRequest("m", Request{PromptTokens: 100}, st); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compiled", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := router.RouteRequest("m", Request{PromptTokens: 100}, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	now := time.Unix(100, 0)
	for id := range st.Nodes {
		err := fleet.Signal(id, Signals{RoundTripMS: Measured(0.3), LayerMS: Measured(1), KVFree: Measured(4000), KVTotal: Measured(4096), Errors: Measured(0.01)})
		if err != nil {
			b.Fatal(err)
		}
		if err := fleet.Observe(st.Nodes[id], now.Add(-time.Second)); err != nil {
			b.Fatal(err)
		}
	}
	for _, policy := range []struct {
		name string
		p    Policy
	}{
		{"adaptive", Policy{Assemble: AssembleBroken}},
		{"adaptive-two-choices", Policy{Assemble: AssembleBroken, Choice: TwoChoices}},
		{"adaptive-or-assembled", Policy{}},
	} {
		b.Run(policy.name, func(b *testing.B) {
			b.ReportAllocs()
			draw := uint64(0)
			for b.Loop() {
				draw++
				if _, err := router.Choose("m", AdaptiveRequest{PromptTokens: 100, Now: now, Draw: draw}, policy.p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// manyFragments is 64 nodes with four fragments each over 80 layers.
func manyFragments(r *rand.Rand) map[string]NodeState {
	states := map[string]NodeState{}
	for i := range 64 {
		n := NodeState{ID: fmt.Sprintf("node-%02d", i), LatencyMS: Measured(1 + r.Float64()*40),
			Load: Measured(r.Float64()), Score: Measured(1 + r.Float64()*20)}
		for range 4 {
			first := r.IntN(10) * 8
			n.Fragments = append(n.Fragments, Fragment{"m", Layers(first, min(79, first+8*(1+r.IntN(3))-1))})
		}
		states[n.ID] = n
	}
	return states
}

func BenchmarkCheapestRoute64Nodes80Layers256Fragments(b *testing.B) {
	states := manyFragments(rand.New(rand.NewPCG(3, 4)))
	window := Layers(0, 79)
	b.Run("classic", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ScoreRoute(Request{Window: &window}, states, DefaultWeights(), "m"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("assembled", func(b *testing.B) {
		fleet := fleetOf(b, State{Nodes: states}, time.Time{})
		router := NewRouter(&Plan{Models: []ModelSpec{{ID: "m", Layers: 80}}}, fleet)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := router.Choose("m", AdaptiveRequest{}, Policy{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
