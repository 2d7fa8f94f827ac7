package control

import (
	"testing"
	"time"

	"hecate/swarm"
)

// leaverAtAStart is what a gateway sees that has just been started and leads: the
// node a is on its way out and the last one that holds the model's layers, b is to
// take over, and a has not reported to this gateway yet.
func leaverAtAStart(t *testing.T, want Desired) planning {
	t.Helper()
	began := time.Now()
	m := small("m", 4)
	plan, err := swarm.Planner{Copies: 1}.Plan([]swarm.NodeProfile{{ID: "b", MemoryBytes: 100, Score: 1}}, []swarm.ModelSpec{m}, nil)
	if err != nil {
		t.Fatal(err)
	}
	record := func(id string, want Desired) *NodeRecord {
		return &NodeRecord{ID: id, Incarnation: 1, Desired: want, Profile: swarm.NodeProfile{ID: id, MemoryBytes: 100, Score: 1}}
	}
	nodes := map[string]*NodeRecord{"a": record("a", want), "b": record("b", DesiredActive)}
	return planning{
		now: began.Add(100 * time.Millisecond), began: began, epoch: 2, patience: Patience{}.withDefaults(), generation: 7,
		nodes: nodes, models: map[string]*ModelRecord{"m": {ID: "m", Spec: m}},
		view: newView(1, []Member{
			{ID: "a", Status: StatusUnheard, Record: nodes["a"]},
			{ID: "b", Status: StatusAlive, Record: nodes["b"], Health: &Health{Node: "b"}},
		}),
		previous: &PlanDocument{
			Generation: 7, Epoch: 1, Hash: plan.Hash, Plan: plan, Desired: map[string]Desired{"a": want},
			Stage: Stage{Keep: Holdings{"a": {frag("m", 0, 3)}}},
		},
	}
}

func TestANewLeaderHearsWhoIsOnItsWayOutBeforeItTakesItsLayersAway(t *testing.T) {
	for _, want := range []Desired{DesiredLeaving, DesiredDrained, DesiredEvacuated} {
		p := leaverAtAStart(t, want)
		what, err := p.decide(swarm.Planner{Copies: 1}.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if what.document != nil {
			t.Errorf("%s: a plan that keeps %v, before the last holder was heard", want, what.document.Stage.Keep)
		}
		if gone := p.departed(); len(gone) > 0 {
			t.Errorf("%s: %v is removed before it could say what it holds", want, gone)
		}
		if !what.recheck.Equal(p.began.Add(hearWithin)) {
			t.Errorf("%s: it looks again at %v", want, what.recheck)
		}
	}
}

func TestWhoNeverReportsIsNotWaitedForLong(t *testing.T) {
	p := leaverAtAStart(t, DesiredLeaving)
	p.now = p.began.Add(hearWithin)
	what, err := p.decide(swarm.Planner{Copies: 1}.Plan)
	if err != nil || what.document == nil || len(p.departed()) != 1 {
		t.Errorf("%+v, %v, departed %v", what, err, p.departed())
	}
}
