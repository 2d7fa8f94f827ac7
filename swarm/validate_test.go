package swarm

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func tightPlan(t *testing.T) *Plan {
	t.Helper()
	m := flat("m", 12, 10)
	e := ModelSpec{ID: "e", Layers: 2, LayerBytes: []int64{5}, Expert: true}
	nodes := []NodeProfile{
		{ID: "a", MemoryBytes: 90, Score: 1}, {ID: "b", MemoryBytes: 90, Score: 1},
		{ID: "c", MemoryBytes: 90, Score: 1}, {ID: "d", MemoryBytes: 2, Score: 1},
	}
	p := mustPlan(t, bare, nodes, []ModelSpec{m, e}, nil)
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return p
}

func clone(t *testing.T, p *Plan) *Plan {
	t.Helper()
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var q Plan
	if err := json.Unmarshal(b, &q); err != nil {
		t.Fatal(err)
	}
	return &q
}

func TestPlanSurvivesJSON(t *testing.T) {
	p := tightPlan(t)
	q := clone(t, p)
	if dump(p) != dump(q) {
		t.Errorf("differs:\n%s\n%s", dump(p), dump(q))
	}
	if err := q.Validate(); err != nil {
		t.Error(err)
	}
}

// Every kind of lie must be found. The hash is made right again, so that it is
// not the hash that finds it.
func TestValidateFindsEveryFault(t *testing.T) {
	for _, c := range []struct {
		name string
		lie  func(*Plan)
		want string
	}{
		{"generation", func(p *Plan) { p.Generation = 0 }, "generation 0"},
		{"over budget", func(p *Plan) { p.Nodes[0].Profile.MemoryBytes = 79 }, `node "a" is over its budget`},
		{"headroom eaten", func(p *Plan) { p.Nodes[0].HeadroomBytes = 60 }, `node "a" is over its budget`},
		{"negative headroom", func(p *Plan) { p.Nodes[0].HeadroomBytes = -1 }, `node "a" is over its budget`},
		{"used bytes", func(p *Plan) { p.Nodes[1].UsedBytes++ }, `node "b" uses`},
		{"share", func(p *Plan) { p.Nodes[1].Share = 0.1 }, `node "b" states a share`},
		{"unknown model held", func(p *Plan) { p.Nodes[0].Fragments[0].Model = "x" }, `unknown model "x"`},
		{"layers beyond the model", func(p *Plan) { p.Nodes[0].Fragments[0].Layers.Last = 99 }, "which has"},
		{"a fragment taken away", func(p *Plan) { p.Nodes[0].Fragments = nil }, "does not hold layers"},
		{"a layer held twice", func(p *Plan) {
			p.Nodes[0].Fragments = append(p.Nodes[0].Fragments, p.Nodes[0].Fragments[0])
		}, "twice"},
		{"serving from a spare", func(p *Plan) {
			for i := range p.Nodes[0].Fragments {
				p.Nodes[0].Fragments[i].Spare = true
			}
		}, "for serving"},
		{"a gap in a pipeline", func(p *Plan) { p.Pipelines[0].Stages[1].Layers.First++ }, "does not continue at layer"},
		{"a pipeline that ends early", func(p *Plan) { p.Pipelines[0].Stages = p.Pipelines[0].Stages[:1] }, "ends at layer"},
		{"a stage on an unknown node", func(p *Plan) { p.Pipelines[0].Stages[0].Node = "x" }, `node "x" does not hold`},
		{"a pipeline of an unknown model", func(p *Plan) { p.Pipelines[0].Model = "x" }, `unknown model "x"`},
		{"one id for two pipelines", func(p *Plan) { p.Pipelines[1].ID = 0 }, "pipeline 0 exists twice"},
		{"two copies on the same nodes", func(p *Plan) { p.Pipelines[1].Stages = p.Pipelines[0].Stages }, "shared nodes"},
		{"a copy dropped in silence", func(p *Plan) { p.Pipelines = p.Pipelines[1:] }, "copies placed"},
		{"redundancy that is not there", func(p *Plan) { p.Redundancy["m"][3] = []string{"a", "b", "c"} }, "redundancy"},
		{"shared nodes kept quiet", func(p *Plan) { p.SharedNodes = nil }, "shared nodes"},
		{"hurting deaths kept quiet", func(p *Plan) { p.Hurting = []HurtingDeath{{"a", "m", []LayerRange{{0, 1}}}} }, "deaths that hurt"},
		{"idle without a reason", func(p *Plan) { p.Idle = nil }, "idle without a reason"},
		{"called idle and serving", func(p *Plan) { p.Idle = append(p.Idle, IdleNode{"a", "tired"}) }, "called idle and serves"},
		{"nodes out of order", func(p *Plan) { p.Nodes[0], p.Nodes[1] = p.Nodes[1], p.Nodes[0] }, "nodes are not in id order"},
		{"models out of order", func(p *Plan) { p.Models[0], p.Models[1] = p.Models[1], p.Models[0] }, "models are not in id order"},
		{"a model without layers", func(p *Plan) { p.Models[1].Layers = 0 }, "0 layers"},
		{"negative memory", func(p *Plan) { p.Nodes[3].Profile.MemoryBytes = -5 }, "is negative"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := clone(t, tightPlan(t))
			c.lie(p)
			p.Hash = p.contentHash()
			err := p.Validate()
			if !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	p := clone(t, tightPlan(t))
	p.Notes = append(p.Notes, "one more word")
	if err := p.Validate(); !errors.Is(err, ErrUnsound) || !strings.Contains(err.Error(), "hash") {
		t.Errorf("changed content under an old hash: %v", err)
	}
}

func TestValidateTellsShortFromUnsound(t *testing.T) {
	p := mustPlan(t, bare, []NodeProfile{{ID: "a", MemoryBytes: 12}}, []ModelSpec{flat("m", 12, 1)}, nil)
	err := p.Validate()
	if !errors.Is(err, ErrShort) || errors.Is(err, ErrUnsound) || p.Sound() != nil {
		t.Errorf("%v", err)
	}
	if !strings.Contains(err.Error(), "distinct nodes") {
		t.Errorf("no reason in %v", err)
	}
	if len(p.Hurting) != 1 || p.Hurting[0].Node != "a" {
		t.Errorf("hurting %v", p.Hurting)
	}
}

// All faults are told at once, and a hostile plan does not make a long error.
func TestValidateListsAllFaults(t *testing.T) {
	p := clone(t, tightPlan(t))
	for i := range p.Nodes {
		p.Nodes[i].UsedBytes += 3
	}
	p.Hash = p.contentHash()
	var e *PlanError
	if !errors.As(p.Validate(), &e) || len(e.Faults) < 4 {
		t.Fatalf("%v", e)
	}
	for range 1000 {
		e.Faults = append(e.Faults, "again")
	}
	if len(e.Error()) > 4000 || !strings.Contains(e.Error(), "more") {
		t.Errorf("%d bytes", len(e.Error()))
	}
}

// A plan out of a store that somebody else wrote: checking it never panics,
// and one that passes can be asked, left and planned on from.
func FuzzPlanFromAStore(f *testing.F) {
	m := flat("m", 4, 10)
	for _, n := range []int{1, 3} {
		p, err := bare.Plan(equalNodes(n, 30), []ModelSpec{m}, nil)
		if err != nil {
			f.Fatal(err)
		}
		b, err := json.Marshal(p)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var p Plan
		if json.Unmarshal(data, &p) != nil {
			return
		}
		p.Hash = p.contentHash() // else nothing but the hash would be tried
		sound := p.Sound() == nil
		next, err := Planner{}.Plan(equalNodes(3, 50), []ModelSpec{m}, &p)
		if err != nil || next.Sound() != nil {
			t.Fatalf("planning on from it: %v, %v", err, next.Sound())
		}
		if !sound {
			return
		}
		for i := range p.Nodes {
			if _, err := p.WhatIf(p.Nodes[i].Profile.ID); err != nil {
				t.Fatal(err)
			}
		}
		if tr := Transition(&p, &p); len(tr.Steps) != 0 {
			t.Fatalf("a way from a plan to itself: %v", tr)
		}
	})
}
