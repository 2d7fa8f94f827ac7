package swarm

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestWhatIfOutcomes(t *testing.T) {
	base := flat("base", 12, 1)
	small := ModelSpec{ID: "small", Layers: 1, LayerBytes: []int64{1}, FallbackFor: "base", Copies: 1}
	lone := ModelSpec{ID: "lone", Layers: 1, LayerBytes: []int64{1}, Copies: 1, Expert: true}
	nodes := []NodeProfile{{ID: "a", MemoryBytes: 9, Score: 1}, {ID: "b", MemoryBytes: 9, Score: 1}, {ID: "c", MemoryBytes: 9, Score: 1}}
	p := mustPlan(t, bare, nodes, []ModelSpec{base, small, lone}, nil)
	t.Log(chainsText(p))
	shared := p.SharedNodes[0].Node
	got := outcomes(t, p, shared)
	if got["base"] != BySplice {
		t.Errorf("without the shared node: %v", got)
	}
	for _, n := range nodes {
		if n.ID != shared && outcomes(t, p, n.ID)["base"] != ByCopy {
			t.Errorf("without %s: %v", n.ID, outcomes(t, p, n.ID))
		}
	}
	var holder string // of the fallback
	for _, pl := range p.PipelinesOf("small") {
		holder = pl.Stages[0].Node
	}
	others := slices.DeleteFunc([]string{"a", "b", "c"}, func(id string) bool { return id == holder })
	if got := outcomes(t, p, others...); got["base"] != ByFallback {
		t.Errorf("with the fallback's node alone: %v", got)
	}
	if got := outcomes(t, p, "a", "b", "c"); got["base"] != Down || got["lone"] != Down {
		t.Errorf("without anybody: %v", got)
	}
	if _, err := p.WhatIf("toaster"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown node: %v", err)
	}
}

func outcomes(t *testing.T, p *Plan, dead ...string) map[string]Outcome {
	t.Helper()
	effects, err := p.WhatIf(dead...)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]Outcome{}
	for _, e := range effects {
		out[e.Model] = e.Outcome
	}
	return out
}

// What a plan says beforehand is what failover then does: the route over each
// copy in turn loses the node, and the answers must be the same kind.
func TestWhatIfAgainstFailover(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	seen := map[Outcome]int{}
	for i := range 600 {
		m := randomModel(rng, "m")
		m.Copies = 1 + rng.IntN(2)
		f := randomModel(rng, "f")
		f.Copies, f.FallbackFor = 1, "m"
		nodes := randomNodes(rng, 2+rng.IntN(6), m.TotalBytes())
		p := mustPlan(t, Planner{}, nodes, []ModelSpec{m, f}, nil)
		if len(p.PipelinesOf("m")) == 0 {
			continue
		}
		for _, n := range nodes {
			want := byFailover(t, p, n.ID)
			got := outcomes(t, p, n.ID)["m"]
			seen[got]++
			if got != want {
				t.Fatalf("case %d without %s: what-if says %s, failover does %s\n%s", i, n.ID, got, want, chainsText(p))
			}
		}
	}
	t.Log(seen)
	for _, o := range []Outcome{Unaffected, ByCopy, BySplice, ByFallback, Down} {
		if seen[o] == 0 {
			t.Errorf("no case came out as %s", o)
		}
	}
}

// byFailover asks the router: the worst of what happens to a route over each
// of the model's copies.
func byFailover(t *testing.T, p *Plan, dead string) Outcome {
	t.Helper()
	rank := []Outcome{Unaffected, ByCopy, BySplice, ByFallback, Down}
	worst := 0
	for _, pl := range p.PipelinesOf("m") {
		route := Route{Model: "m", PipelineID: pl.ID, Stages: pl.Stages}
		out, err := FailoverInSwarm(route, dead, StateFromPlan(p), FailoverOptions{FallbackModel: "f"})
		got := Down
		switch {
		case err != nil:
		case out.Reason == ReasonNotOnRoute:
			got = Unaffected
		case out.Degraded && out.PipelineID >= 0:
			got = ByFallback
		case out.Degraded: // survivors of another model execute nothing
		case len(out.Replaced) > 0:
			got = BySplice
		default:
			got = ByCopy
		}
		worst = max(worst, slices.Index(rank, got))
	}
	return rank[worst]
}

// The layers and counts of an effect, against counting by hand.
func TestWhatIfCounts(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	for i := range 300 {
		m := randomModel(rng, "m")
		m.Copies = 1 + rng.IntN(3)
		nodes := randomNodes(rng, 2+rng.IntN(6), m.TotalBytes())
		p := mustPlan(t, Planner{}, nodes, []ModelSpec{m}, nil)
		if len(p.Pipelines) == 0 {
			continue
		}
		dead := []string{nodes[0].ID, nodes[1].ID}
		effects, err := p.WhatIf(dead...)
		if err != nil {
			t.Fatal(err)
		}
		fewest, lost := len(nodes), 0
		for l := range m.Layers {
			n := 0
			for _, node := range nodes[2:] {
				if p.holds(node.ID, "m", l) {
					n++
				}
			}
			fewest = min(fewest, n)
			if n == 0 {
				lost++
			}
		}
		e := effects[0]
		said := 0
		for _, r := range e.Lost {
			said += r.Len()
		}
		if e.Holders != fewest || said != lost {
			t.Fatalf("case %d: %+v, counted %d holders and %d lost layers", i, e, fewest, lost)
		}
		for _, r := range e.By {
			for l := r.Layers.First; l <= r.Layers.Last; l++ {
				if slices.Contains(dead, r.By) || !p.holds(r.By, "m", l) {
					t.Fatalf("case %d: %v cannot take over layer %d", i, r, l)
				}
			}
		}
	}
}

func ExamplePlan_WhatIf() {
	nodes := []NodeProfile{
		{ID: "gpu", MemoryBytes: 9 << 30, Score: 10},
		{ID: "laptop", MemoryBytes: 9 << 30, Score: 3},
		{ID: "mini", MemoryBytes: 9 << 30, Score: 6},
	}
	model := ModelSpec{ID: "home", Layers: 12, LayerBytes: []int64{1 << 30}, Copies: 2}
	plan, err := Planner{}.Plan(nodes, []ModelSpec{model}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range nodes {
		effects, _ := plan.WhatIf(n.ID)
		fmt.Println("without", n.ID, effects[0])
	}
	// Output:
	// without gpu home: splice [{laptop 0-3}]
	// without laptop home: copy
	// without mini home: copy
}
