package swarm

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// replay executes a transition step by step with its own books and checks
// after each step that budgets hold and that no promise is broken but where
// the transition says so.
func replay(t *testing.T, from, to *Plan, tr TransitionPlan, dead map[string]bool) {
	t.Helper()
	have, want := map[spot]bool{}, map[spot]bool{}
	spotsOf(from, dead, have)
	spotsOf(to, dead, want)
	spec := func(id string) ModelSpec {
		if m, ok := to.Model(id); ok {
			return m
		}
		m, _ := from.Model(id)
		return m
	}
	budget := map[string]int64{}
	for _, p := range []*Plan{from, to} {
		for _, n := range p.Nodes {
			if !dead[n.Profile.ID] {
				budget[n.Profile.ID] = n.Profile.MemoryBytes - n.HeadroomBytes
			}
		}
	}
	thinnest := len(budget)
	check := func(step int) {
		used, holders := map[string]int64{}, map[layerKey]int{}
		for s := range have {
			m := spec(s.model)
			used[s.node] += m.LayerNeed(s.layer)
			holders[layerKey{s.model, s.layer}]++
		}
		for id, u := range used {
			if u > budget[id] {
				t.Fatalf("after step %d node %s holds %d of %d bytes", step, id, u, budget[id])
			}
		}
		for _, m := range to.Models {
			if len(from.PipelinesOf(m.ID)) == 0 || len(to.PipelinesOf(m.ID)) == 0 {
				continue
			}
			for l := range m.Layers {
				n := holders[layerKey{m.ID, l}]
				thinnest = min(thinnest, n)
				if n == 0 && !announced(tr, m.ID, l, step) {
					t.Fatalf("after step %d nobody holds layer %d of %s and the plan does not say so\n%v\n%v", step, l, m.ID, tr.Steps, tr.Interruptions)
				}
			}
		}
	}
	check(-1)
	serving := map[spot]bool{}
	for _, pl := range from.Pipelines {
		for _, st := range pl.Stages {
			for l := st.Layers.First; l <= st.Layers.Last; l++ {
				serving[spot{st.Node, pl.Model, l}] = true
			}
		}
	}
	for i, st := range tr.Steps {
		for l := st.Layers.First; l <= st.Layers.Last; l++ {
			s := spot{st.Node, st.Model, l}
			switch st.Kind {
			case StepLoad:
				if have[s] {
					t.Fatalf("step %d loads %v twice", i, s)
				}
				have[s] = true
			case StepUnload:
				if !have[s] || serving[s] {
					t.Fatalf("step %d unloads %v: there %v, serving %v", i, s, have[s], serving[s])
				}
				delete(have, s)
			case StepMove:
				if target := (spot{st.To, st.Model, l}); st.To != "" && !have[target] {
					t.Fatalf("step %d moves to %v, which is not loaded", i, target)
				}
				delete(serving, s)
			}
		}
		check(i)
	}
	for s := range want {
		if !have[s] {
			t.Fatalf("%v is not there at the end", s)
		}
	}
	if len(have) != len(want) {
		t.Fatalf("%d layers are left over", len(have)-len(want))
	}
	if len(tr.Interruptions) == 0 && tr.Thinnest != thinnest {
		t.Fatalf("thinnest %d, says %d", thinnest, tr.Thinnest)
	}
}

func announced(tr TransitionPlan, model string, layer, step int) bool {
	for _, x := range tr.Interruptions {
		if x.Model == model && x.Layers.Contains(layer) && x.From <= step && step < x.To {
			return true
		}
	}
	return false
}

func TestTransitionProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	quiet, interrupted := 0, 0
	for range 800 {
		m, e := randomModel(rng, "m"), randomModel(rng, "x")
		m.Copies, e.Expert = 1+rng.IntN(2), true
		models := []ModelSpec{m, e}
		nodes := randomNodes(rng, 3+rng.IntN(6), m.TotalBytes())
		from := mustPlan(t, Planner{}, nodes, models, nil)
		next, dead := nodes, map[string]bool{}
		var deaths []string
		switch rng.IntN(4) {
		case 0: // somebody leaves, still serving
			next = nodes[1:]
		case 1: // somebody dies
			next = nodes[1:]
			dead[nodes[0].ID] = true
			deaths = append(deaths, nodes[0].ID)
		case 2: // somebody joins
			joiner := randomNodes(rng, 1, m.TotalBytes()/3)[0]
			joiner.ID = "joiner"
			next = append([]NodeProfile{joiner}, nodes[1:]...)
		case 3: // the expert goes and everything may move
			models = models[:1]
		}
		previous := from
		if rng.IntN(2) == 0 {
			previous = nil // as if planned elsewhere: much moves
		}
		to := mustPlan(t, Planner{}, next, models, previous)
		tr := Transition(from, to, deaths...)
		replay(t, from, to, tr, dead)
		if len(tr.Interruptions) == 0 {
			quiet++
		} else {
			interrupted++
		}
		if again := Transition(from, to, deaths...); fmt.Sprint(tr) != fmt.Sprint(again) {
			t.Fatalf("the same transition twice differs\n%v\n%v", tr, again)
		}
	}
	t.Logf("%d quiet, %d interrupted", quiet, interrupted)
	if quiet < 400 {
		t.Errorf("only %d of 800 transitions are without interruption", quiet)
	}
}

// holding makes a plan of one-layer-unit placements for transitions alone.
func holding(budget int64, model ModelSpec, nodes map[string][]LayerRange, pipelines ...[]Stage) *Plan {
	p := &Plan{Generation: 1, Models: []ModelSpec{model}}
	for _, id := range []string{"a", "b", "c"} {
		rs, ok := nodes[id]
		if !ok {
			continue
		}
		n := NodePlan{Profile: NodeProfile{ID: id, MemoryBytes: budget}}
		for _, r := range rs {
			n.Fragments = append(n.Fragments, PlacedFragment{Model: model.ID, Layers: r})
		}
		p.Nodes = append(p.Nodes, n)
	}
	for i, st := range pipelines {
		p.Pipelines = append(p.Pipelines, Pipeline{ID: i, Model: model.ID, Stages: st})
	}
	return p
}

func TestTransitionThatMustInterrupt(t *testing.T) {
	m := flat("m", 4, 1)
	// Two full nodes change places and nobody has room to lend.
	from := holding(2, m, map[string][]LayerRange{"a": {{0, 1}}, "b": {{2, 3}}}, []Stage{{"a", LayerRange{0, 1}}, {"b", LayerRange{2, 3}}})
	to := holding(2, m, map[string][]LayerRange{"a": {{2, 3}}, "b": {{0, 1}}}, []Stage{{"b", LayerRange{0, 1}}, {"a", LayerRange{2, 3}}})
	tr := Transition(from, to)
	replay(t, from, to, tr, nil)
	if len(tr.Interruptions) == 0 || tr.Thinnest != 0 {
		t.Fatalf("no interruption in %v", tr)
	}
	// One layer at a time, and each is back before the next goes.
	for i, x := range tr.Interruptions {
		if x.Layers.Len() != 1 || i > 0 && x.From < tr.Interruptions[i-1].To {
			t.Errorf("interruptions %v", tr.Interruptions)
		}
	}
	// With a third node that has room for one layer, nothing needs to stop.
	from = holding(2, m, map[string][]LayerRange{"a": {{0, 1}}, "b": {{2, 3}}, "c": {}}, from.Pipelines[0].Stages)
	to = holding(2, m, map[string][]LayerRange{"a": {{2, 3}}, "b": {{0, 1}}, "c": {}}, to.Pipelines[0].Stages)
	tr = Transition(from, to)
	replay(t, from, to, tr, nil)
	if len(tr.Interruptions) != 0 {
		t.Errorf("interruptions %v in spite of room to lend\n%v", tr.Interruptions, tr.Steps)
	}
}

func TestTransitionToTheSamePlanIsEmpty(t *testing.T) {
	p := mustPlan(t, Planner{}, equalNodes(3, 100), []ModelSpec{flat("m", 12, 5)}, nil)
	if tr := Transition(p, p); len(tr.Steps) != 0 || tr.Thinnest < 1 {
		t.Errorf("%v", tr)
	}
}

func BenchmarkTransition(b *testing.B) {
	nodes, models := benchSwarm(1000)
	from, err := Planner{}.Plan(nodes, models, nil)
	if err != nil {
		b.Fatal(err)
	}
	to, err := Planner{}.Plan(nodes[5:], models, from)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		Transition(from, to)
	}
}
