package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/swarm"
)

// small is a model whose every layer takes one byte, and nothing for KV.
func small(id string, layers int) swarm.ModelSpec {
	return swarm.ModelSpec{ID: id, Layers: layers, LayerBytes: []int64{1}, ContextTokens: 1}
}

func frag(model string, first, last int) swarm.Fragment {
	return swarm.Fragment{Model: model, Layers: swarm.LayerRange{First: first, Last: last}}
}

// planOf makes a plan of one model from what each node shall hold; every node
// has the same budget.
func planOf(spec swarm.ModelSpec, budget int64, want Holdings) *swarm.Plan {
	p := &swarm.Plan{Models: []swarm.ModelSpec{spec}}
	for _, id := range slices.Sorted(keysOf(want)) {
		n := swarm.NodePlan{Profile: swarm.NodeProfile{ID: id, MemoryBytes: budget}}
		for _, f := range want[id] {
			n.Fragments = append(n.Fragments, swarm.PlacedFragment{Model: f.Model, Layers: f.Layers})
		}
		p.Nodes = append(p.Nodes, n)
	}
	return p
}

func keysOf(h Holdings) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range h {
			if !yield(k) {
				return
			}
		}
	}
}

func TestStages(t *testing.T) {
	m := small("m", 4)
	for name, c := range map[string]struct {
		budget     int64
		have, want Holdings
		stage      Stage
	}{
		"a first plan is simply followed": {
			4, nil, Holdings{"a": {frag("m", 0, 3)}, "b": {frag("m", 0, 3)}}, Stage{},
		},
		"nothing changes": {
			4, Holdings{"a": {frag("m", 0, 3)}}, Holdings{"a": {frag("m", 0, 3)}}, Stage{},
		},
		"a move with room: the old holder keeps until the new one has it": {
			4, Holdings{"a": {frag("m", 0, 3)}}, Holdings{"a": nil, "b": {frag("m", 0, 3)}},
			Stage{Keep: Holdings{"a": {frag("m", 0, 3)}}},
		},
		"the new holder has it: the old one may let go": {
			4, Holdings{"a": {frag("m", 0, 3)}, "b": {frag("m", 0, 3)}}, Holdings{"a": nil, "b": {frag("m", 0, 3)}}, Stage{},
		},
		"the new holder has half of it": {
			4, Holdings{"a": {frag("m", 0, 3)}, "b": {frag("m", 0, 1)}}, Holdings{"a": nil, "b": {frag("m", 0, 3)}},
			Stage{Keep: Holdings{"a": {frag("m", 2, 3)}}},
		},
		"two nodes swap with one layer of room: half of it now": {
			3, Holdings{"a": {frag("m", 0, 1)}, "b": {frag("m", 2, 3)}}, Holdings{"a": {frag("m", 2, 3)}, "b": {frag("m", 0, 1)}},
			Stage{
				Keep: Holdings{"a": {frag("m", 0, 1)}, "b": {frag("m", 2, 3)}},
				Wait: Holdings{"a": {frag("m", 3, 3)}, "b": {frag("m", 1, 1)}},
			},
		},
		"a full node makes room with what somebody else holds too": {
			2, Holdings{"a": {frag("m", 0, 1)}, "b": {frag("m", 0, 1)}}, Holdings{"a": {frag("m", 0, 1)}, "b": {frag("m", 2, 3)}},
			Stage{Wait: Holdings{"b": {frag("m", 2, 3)}}},
		},
		"two full nodes swap: somebody must lose something, and it is said": {
			2, Holdings{"a": {frag("m", 0, 1)}, "b": {frag("m", 2, 3)}}, Holdings{"a": {frag("m", 2, 3)}, "b": {frag("m", 0, 1)}},
			Stage{
				Keep:        Holdings{"a": {frag("m", 1, 1)}, "b": {frag("m", 2, 3)}},
				Wait:        Holdings{"a": {frag("m", 2, 3)}, "b": {frag("m", 0, 1)}},
				Interrupted: []swarm.Fragment{frag("m", 0, 0)},
			},
		},
		"a node that leaves the plan keeps what nobody else has": {
			4, Holdings{"gone": {frag("m", 0, 3)}}, Holdings{"a": {frag("m", 0, 3)}}, Stage{Keep: Holdings{"gone": {frag("m", 0, 3)}}},
		},
		"a model that left the catalogue is let go": {
			4, Holdings{"a": {frag("old", 0, 3)}}, Holdings{"a": {frag("m", 0, 3)}}, Stage{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.stage, StageOf(planOf(m, c.budget, c.want), c.have)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// obey makes nodes do what plan and stage allow, in random order and only a
// part of it, and checks the promises after each single step.
func obey(t *testing.T, rng *rand.Rand, plan *swarm.Plan, s Stage, now map[string]map[int]bool, served map[int]bool) {
	t.Helper()
	budget := plan.Nodes[0].Profile.MemoryBytes
	doc := &PlanDocument{Plan: plan, Stage: s}
	type step struct {
		node  string
		layer int
		load  bool
	}
	var steps []step
	for _, n := range plan.Nodes {
		id, wanted := n.Profile.ID, map[int]bool{}
		for _, f := range doc.Wanted(id) {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				wanted[l] = true
			}
		}
		for l := range plan.Models[0].Layers {
			if wanted[l] != now[id][l] {
				steps = append(steps, step{id, l, wanted[l]})
			}
		}
	}
	rng.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	slices.SortStableFunc(steps, func(a, b step) int { return boolInt(a.load) - boolInt(b.load) }) // a node unloads before it loads
	for _, st := range steps[:1+rng.IntN(max(1, len(steps)))] {
		now[st.node][st.layer] = st.load
		if n := int64(count(now[st.node])); n > budget {
			t.Fatalf("%s holds %d of %d", st.node, n, budget)
		}
		if !st.load && served[st.layer] && holders(now, st.layer) == 0 && !contains(s.Interrupted, st.layer) {
			t.Fatalf("layer %d lost its last holder", st.layer)
		}
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func count(held map[int]bool) (n int) {
	for _, h := range held {
		n += boolInt(h)
	}
	return n
}

func holders(now map[string]map[int]bool, l int) (n int) {
	for _, held := range now {
		n += boolInt(held[l])
	}
	return n
}

func contains(fs []swarm.Fragment, l int) bool {
	return slices.ContainsFunc(fs, func(f swarm.Fragment) bool { return f.Layers.First <= l && l <= f.Layers.Last })
}

func holdingsOf(now map[string]map[int]bool, model string) Holdings {
	h := Holdings{}
	for node, held := range now {
		set := map[layer]bool{}
		for l, has := range held {
			if has {
				set[layer{model, l}] = true
			}
		}
		h[node] = fragments(set)
	}
	return h
}

// randomHoldings gives each of some nodes a range within a budget.
func randomHoldings(rng *rand.Rand, nodes, layers, budget int) Holdings {
	h := Holdings{}
	for i := range nodes {
		n := 1 + rng.IntN(budget)
		first := rng.IntN(layers - n + 1)
		h[fmt.Sprintf("n%d", i)] = []swarm.Fragment{frag("m", first, first+n-1)}
	}
	return h
}

func TestEveryTransitionArrivesAndKeepsItsPromises(t *testing.T) {
	interrupted := 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		layers := 2 + rng.IntN(8)
		nodes, budget := 2+rng.IntN(4), 1+rng.IntN(layers)
		spec := small("m", layers)
		from, to := randomHoldings(rng, nodes, layers, budget), randomHoldings(rng, nodes, layers, budget)
		plan := planOf(spec, int64(budget), to)
		now, served := map[string]map[int]bool{}, map[int]bool{}
		for id, fs := range from {
			now[id] = map[int]bool{}
			for l := fs[0].Layers.First; l <= fs[0].Layers.Last; l++ {
				now[id][l] = true
				served[l] = true
			}
		}
		for l := range layers { // only what the plan serves has to go on being served
			served[l] = served[l] && slices.ContainsFunc(plan.Nodes, func(n swarm.NodePlan) bool {
				return slices.ContainsFunc(n.Fragments, func(f swarm.PlacedFragment) bool { return f.Layers.First <= l && l <= f.Layers.Last })
			})
		}
		for round := 0; ; round++ {
			have := holdingsOf(now, "m")
			s := StageOf(plan, have)
			if s.Empty() && cmp.Equal(have, to) {
				break
			}
			if round > 200 {
				t.Fatalf("seed %d: never there: have %v, want %v, %s", seed, have, to, s)
			}
			if len(s.Interrupted) > 0 {
				interrupted++
				for _, f := range s.Interrupted {
					for l := f.Layers.First; l <= f.Layers.Last; l++ {
						served[l] = false
					}
				}
			}
			obey(t, rng, plan, s, now, served)
		}
	}
	if interrupted == 0 {
		t.Error("no transition was tight: the test tests too little")
	}
}
