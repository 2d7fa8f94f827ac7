package control

import (
	"slices"

	"hecate/swarm"
)

// An Offer is what answers may use of what nodes hold: a node that is to give
// layers up serves nobody new with them, though it still has them, and who uses
// them moves. It is a value of one plan and one view.
type Offer struct {
	doc    *PlanDocument // nil: there is no plan, and everything held is offered
	wanted map[string][]swarm.Fragment
	spared map[string][]swarm.Fragment // of evacuated nodes: what others hold as well
}

// OfferOf reads an offer. last (may be nil) is the offer before this one: of the
// same plan, it spares some work.
func OfferOf(doc *PlanDocument, view *View, last *Offer) *Offer {
	o := &Offer{doc: doc}
	if doc == nil {
		return o
	}
	if last != nil && last.doc == doc {
		o.wanted = last.wanted
	} else {
		o.wanted = map[string][]swarm.Fragment{}
		for _, node := range doc.mentioned() {
			o.wanted[node] = doc.Wanted(node)
		}
	}
	for id, want := range doc.Desired {
		if want == DesiredEvacuated {
			if o.spared == nil {
				o.spared = map[string][]swarm.Fragment{}
			}
			o.spared[id] = o.elsewhere(id, view)
		}
	}
	return o
}

// mentioned lists the nodes that a plan or its stage gives something.
func (d *PlanDocument) mentioned() (ids []string) {
	for _, n := range d.Plan.Nodes {
		ids = append(ids, n.Profile.ID)
	}
	for id := range d.Stage.Keep {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// elsewhere is what an evacuated node is wanted to hold, and others that stay
// hold as well.
func (o *Offer) elsewhere(node string, view *View) []swarm.Fragment {
	set := map[layer]bool{}
	for _, w := range o.wanted[node] {
		for l := w.Layers.First; l <= w.Layers.Last; l++ {
			for i := range view.Members {
				m := &view.Members[i]
				if m.ID != node && m.Usable() && o.doc.DesiredOf(m.ID) != DesiredEvacuated &&
					m.holds(w.Model, l) && holdsLayer(o.wanted[m.ID], w.Model, l) {
					set[layer{w.Model, l}] = true
					break
				}
			}
		}
	}
	return fragments(set)
}

func (m *Member) holds(model string, index int) bool {
	return slices.ContainsFunc(m.Health.Held, func(f HeldFragment) bool {
		return f.Model == model && f.Layers.Contains(index)
	})
}

func holdsLayer(fs []swarm.Fragment, model string, index int) bool {
	return slices.ContainsFunc(fs, func(f swarm.Fragment) bool { return f.Model == model && f.Layers.Contains(index) })
}

// View is a view in which nodes hold only what they offer.
func (o *Offer) View(v *View) *View {
	if o.doc == nil {
		return v
	}
	out := *v
	out.Nodes = make(map[string]swarm.NodeState, len(v.Nodes))
	for id, state := range v.Nodes {
		state.Fragments = o.clip(id, state.Fragments)
		out.Nodes[id] = state
	}
	return &out
}

// clip leaves of some fragments what a node offers; the same slice when that is
// all of them, as it nearly always is.
func (o *Offer) clip(node string, held []swarm.Fragment) []swarm.Fragment {
	if !slices.ContainsFunc(held, func(f swarm.Fragment) bool { return !o.offers(node, f.Model, f.Layers) }) {
		return held
	}
	set := map[layer]bool{}
	for _, f := range held {
		for l := f.Layers.First; l <= f.Layers.Last; l++ {
			if o.offers(node, f.Model, swarm.Layers(l, l)) {
				set[layer{f.Model, l}] = true
			}
		}
	}
	if left := fragments(set); left != nil {
		return left
	}
	return []swarm.Fragment{} // it says that it has nothing: not the same as saying nothing
}

func (o *Offer) offers(node, model string, r swarm.LayerRange) bool {
	covered := slices.ContainsFunc(o.wanted[node], func(f swarm.Fragment) bool {
		return f.Model == model && f.Layers.Covers(r)
	})
	return covered && !slices.ContainsFunc(o.spared[node], func(f swarm.Fragment) bool {
		return f.Model == model && f.Layers.Overlaps(r)
	})
}

// Yields reports whether an answer that runs on these layers of a node is to go
// on elsewhere: the node gives them up. Nodes that are paused, drained or leave
// in peace let run what runs.
func (o *Offer) Yields(node, model string, r swarm.LayerRange) bool {
	if o.doc == nil {
		return false
	}
	switch o.doc.DesiredOf(node) {
	case DesiredActive, DesiredEvacuated:
		return !o.offers(node, model, r)
	}
	return false
}
