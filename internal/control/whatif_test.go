package control

import (
	"errors"
	"testing"

	"hecate/swarm"
)

// The prospects of a small swarm, as it loses and loads things.
func TestWhatIfNow(t *testing.T) {
	m := small("m", 4)
	hash := "00000000000000000000000000000000000000000000000000000000000000aa"
	profile := func(id string, memory int64) swarm.NodeProfile {
		return swarm.NodeProfile{ID: id, MemoryBytes: memory, Score: 1, Endpoints: []string{"127.0.0.1:1"}}
	}
	for name, c := range map[string]struct {
		memory   int64 // of each node
		copies   int
		change   func(v *View)
		node     string
		outcome  swarm.Outcome
		recovery Recovery
		already  bool
	}{
		"two whole copies":                 {memory: 100, copies: 2, node: "a", outcome: swarm.ByCopy, recovery: RecoveryInstant},
		"the other one is dead":            {memory: 100, copies: 2, node: "a", change: func(v *View) { v.Members[1].Status = StatusDead }, outcome: swarm.Down, recovery: RecoveryNever},
		"it is dead itself":                {memory: 100, copies: 2, node: "b", change: func(v *View) { v.Members[1].Status = StatusDead }, outcome: swarm.Unaffected, recovery: RecoveryNone},
		"the other one has not loaded yet": {memory: 100, copies: 2, node: "a", change: func(v *View) { v.Members[1].Health.Held = nil }, outcome: swarm.Down, recovery: RecoveryCold},
		"but has it on disk": {memory: 100, copies: 2, node: "a", change: func(v *View) {
			v.Members[1].Health.Held = nil
			v.Members[1].Health.Stored = []Stored{{Hash: hash, Layers: []swarm.LayerRange{{First: 0, Last: 3}}}}
		}, outcome: swarm.Down, recovery: RecoveryWarm},
		"nobody has loaded":               {memory: 100, copies: 2, node: "a", change: func(v *View) { v.Members[0].Health.Held, v.Members[1].Health.Held = nil, nil }, outcome: swarm.Unaffected, recovery: RecoveryNone, already: true},
		"a single copy over two, no room": {memory: 3, copies: 1, node: "a", outcome: swarm.Down, recovery: RecoveryNever},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := swarm.Planner{Copies: c.copies}.Plan([]swarm.NodeProfile{profile("a", c.memory), profile("b", c.memory)}, []swarm.ModelSpec{m}, nil)
			if err != nil {
				t.Fatal(err)
			}
			have := Holdings{}
			for _, n := range plan.Nodes {
				for _, f := range n.Fragments {
					have[n.Profile.ID] = append(have[n.Profile.ID], frag(f.Model, f.Layers.First, f.Layers.Last))
				}
			}
			view := viewOf(have)
			view.Members = view.Members[:2]
			for i := range view.Members {
				view.Members[i].Record.Profile = profile(view.Members[i].ID, c.memory)
			}
			if c.change != nil {
				c.change(view)
			}
			got, err := WhatIf(&PlanDocument{Plan: plan, Models: map[string]string{"m": hash}}, view, c.node)
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			if p := got[0]; p.Outcome != c.outcome || p.Recovery != c.recovery || p.Already != c.already {
				t.Errorf("%s, %s, already %v; want %s, %s, %v", p.Outcome, p.Recovery, p.Already, c.outcome, c.recovery, c.already)
			}
		})
	}
}

func TestWhatIfOfNobody(t *testing.T) {
	if _, err := WhatIf(nil, viewOf(nil), "nobody"); !errors.Is(err, ErrNotFound) {
		t.Errorf("%v, want not found", err)
	}
	if got, err := WhatIf(nil, viewOf(nil), "a"); err != nil || len(got) != 0 {
		t.Errorf("without a plan: %v, %v", got, err)
	}
}
