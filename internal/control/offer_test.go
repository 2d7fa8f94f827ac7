package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/swarm"
)

// viewOf is a view of living nodes that hold something.
func viewOf(have Holdings) *View {
	var members []Member
	for _, id := range []string{"a", "b", "c"} {
		h := &Health{Node: id, State: swarm.NodeState{ID: id, Fragments: have[id]}}
		for _, f := range have[id] {
			h.Held = append(h.Held, HeldFragment{Model: f.Model, Layers: f.Layers})
		}
		members = append(members, Member{ID: id, Status: StatusAlive, Health: h, Record: &NodeRecord{ID: id, Desired: DesiredActive}})
	}
	return newView(1, members)
}

func TestOffers(t *testing.T) {
	m := small("m", 4)
	all, front, back := []swarm.Fragment{frag("m", 0, 3)}, []swarm.Fragment{frag("m", 0, 1)}, []swarm.Fragment{frag("m", 2, 3)}
	nothing := []swarm.Fragment{}
	for name, c := range map[string]struct {
		want, have, keep Holdings
		desired          map[string]Desired
		offered          []swarm.Fragment // by a
		yields           bool             // a, what it has of m
	}{
		"what is planned is offered":                       {want: Holdings{"a": all}, have: Holdings{"a": all}, offered: all},
		"what the plan takes away is not":                  {want: Holdings{"a": front}, have: Holdings{"a": all}, offered: front, yields: true},
		"what is kept for now is":                          {want: Holdings{"a": front}, have: Holdings{"a": all}, keep: Holdings{"a": back}, offered: all},
		"a drained node offers nothing and lets run":       {want: Holdings{"a": all}, have: Holdings{"a": all}, desired: map[string]Desired{"a": DesiredDrained}, offered: nothing},
		"a drained node offers what it keeps":              {want: Holdings{}, have: Holdings{"a": all}, keep: Holdings{"a": back}, desired: map[string]Desired{"a": DesiredDrained}, offered: back},
		"an evacuated one yields what others have":         {want: Holdings{"b": front}, have: Holdings{"a": all, "b": front}, keep: Holdings{"a": all}, desired: map[string]Desired{"a": DesiredEvacuated}, offered: back, yields: true},
		"and what is kept for others that load, not":       {want: Holdings{"b": all}, have: Holdings{"a": all}, keep: Holdings{"a": all}, desired: map[string]Desired{"a": DesiredEvacuated}, offered: all},
		"another evacuated node is nobody to count on":     {want: Holdings{}, have: Holdings{"a": all, "b": all}, keep: Holdings{"a": all, "b": all}, desired: map[string]Desired{"a": DesiredEvacuated, "b": DesiredEvacuated}, offered: all},
		"a paused node offers to those who run already":    {want: Holdings{"a": all}, have: Holdings{"a": all}, desired: map[string]Desired{"a": DesiredPaused}, offered: all},
		"what is held and known to no plan is not offered": {want: Holdings{"b": all}, have: Holdings{"a": all}, offered: nothing, yields: true},
	} {
		t.Run(name, func(t *testing.T) {
			doc := &PlanDocument{Plan: planOf(m, 4, c.want), Desired: c.desired, Stage: Stage{Keep: c.keep}}
			view := viewOf(c.have)
			o := OfferOf(doc, view, nil)
			if diff := cmp.Diff(c.offered, o.View(view).Nodes["a"].Fragments); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
			if got := o.Yields("a", "m", swarm.Layers(0, 3)); got != c.yields {
				t.Errorf("yields: %v, want %v", got, c.yields)
			}
			again := OfferOf(doc, view, o)
			if diff := cmp.Diff(o.View(view).Nodes, again.View(view).Nodes); diff != "" {
				t.Errorf("the next offer of the same plan differs:\n%s", diff)
			}
		})
	}
}

func TestWithoutAPlanEverythingIsOffered(t *testing.T) {
	view := viewOf(Holdings{"a": {frag("m", 0, 3)}})
	o := OfferOf(nil, view, nil)
	if o.View(view) != view || o.Yields("a", "m", swarm.Layers(0, 3)) {
		t.Error("without a plan something is held back")
	}
}
