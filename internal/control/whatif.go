package control

import (
	"fmt"
	"slices"
	"strconv"

	"hecate/swarm"
)

// A Recovery says how long a model takes to answer again after a death.
type Recovery string

const (
	RecoveryNone    Recovery = "none"       // nothing happens to it
	RecoveryInstant Recovery = "instant"    // others hold the layers loaded
	RecoveryWarm    Recovery = "warm load"  // others load the layers from their disks
	RecoveryCold    Recovery = "cold fetch" // others fetch the layers first
	RecoveryNever   Recovery = "never"      // the others have no room for the layers
)

// A Prospect is what a node's death would mean for one model now: as planned,
// with those out of use that are dead or have not loaded yet.
type Prospect struct {
	swarm.Effect
	Recovery Recovery `json:"recovery"`
	// Already: the model cannot be asked as it is, whatever happens to the node.
	Already bool `json:"already,omitempty"`
}

// WhatIf looks ahead for every model that has a copy. A node that nobody knows
// is an error (ErrNotFound).
func WhatIf(doc *PlanDocument, view *View, node string) ([]Prospect, error) {
	if view.Member(node) == nil {
		return nil, fmt.Errorf("node %q: %w", node, ErrNotFound)
	}
	out := []Prospect{}
	if doc == nil {
		return out, nil
	}
	for i := range doc.Plan.Models {
		if m := &doc.Plan.Models[i]; len(doc.Plan.PipelinesOf(m.ID)) > 0 {
			p, err := prospect(doc, view, node, m)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func prospect(doc *PlanDocument, view *View, node string, m *swarm.ModelSpec) (Prospect, error) {
	absent := doc.absent(view, m.ID)
	before, err := effectOn(doc.Plan, m.ID, absent)
	if err != nil {
		return Prospect{}, err
	}
	after := before
	if _, planned := doc.Plan.Node(node); planned && !slices.Contains(absent, node) {
		if after, err = effectOn(doc.Plan, m.ID, append(absent, node)); err != nil {
			return Prospect{}, err
		}
	}
	p := Prospect{Effect: after, Already: before.Outcome == swarm.Down}
	if slices.Equal(after.Broken, before.Broken) && after.Outcome == before.Outcome && !replaces(before, node) {
		p.Outcome, p.By = swarm.Unaffected, nil
	}
	p.Recovery = doc.recovery(view, node, m, &p.Effect)
	return p, nil
}

func effectOn(plan *swarm.Plan, model string, dead []string) (swarm.Effect, error) {
	effects, err := plan.WhatIf(dead...)
	if err != nil {
		return swarm.Effect{}, err
	}
	i := slices.IndexFunc(effects, func(e swarm.Effect) bool { return e.Model == model })
	return effects[i], nil
}

// replaces says that a node stands in already.
func replaces(e swarm.Effect, node string) bool {
	return slices.ContainsFunc(e.By, func(r swarm.Replacement) bool { return r.By == node })
}

// absent lists the planned nodes that cannot serve a model as planned.
func (d *PlanDocument) absent(view *View, model string) (ids []string) {
	for _, n := range d.Plan.Nodes {
		m := view.Member(n.Profile.ID)
		lacks := func(f swarm.PlacedFragment) bool {
			for l := f.Layers.First; l <= f.Layers.Last; l++ {
				if f.Model == model && !m.holds(model, l) {
					return true
				}
			}
			return false
		}
		if m == nil || !m.Usable() || slices.ContainsFunc(n.Fragments, lacks) {
			ids = append(ids, n.Profile.ID)
		}
	}
	return ids
}

func (d *PlanDocument) recovery(view *View, node string, m *swarm.ModelSpec, e *swarm.Effect) Recovery {
	switch e.Outcome {
	case swarm.Unaffected:
		return RecoveryNone
	case swarm.Down:
	default:
		return RecoveryInstant
	}
	if !d.room(view, node, m) {
		return RecoveryNever
	}
	for _, r := range e.Lost {
		for l := r.First; l <= r.Last; l++ {
			if !storedElsewhere(view, node, d.Models[m.ID], l) {
				return RecoveryCold
			}
		}
	}
	return RecoveryWarm
}

// room says that one copy of a model would fit on the living nodes without
// another one, if all of them were there for it.
func (d *PlanDocument) room(view *View, node string, m *swarm.ModelSpec) bool {
	var rest []swarm.NodeProfile
	for i := range view.Members {
		other := &view.Members[i]
		if other.ID != node && other.Usable() && other.Record != nil && other.Record.Desired == DesiredActive {
			rest = append(rest, planned(other.Record))
		}
	}
	if len(rest) == 0 {
		return false
	}
	plan, err := swarm.Planner{Copies: 1}.Plan(rest, []swarm.ModelSpec{*m}, nil)
	return err == nil && len(plan.PipelinesOf(m.ID)) > 0
}

// storedElsewhere says that another living node has a layer on its disk.
func storedElsewhere(view *View, node, hash string, l int) bool {
	return slices.ContainsFunc(view.Members, func(m Member) bool {
		return m.ID != node && m.Usable() && slices.ContainsFunc(m.Health.Stored, func(s Stored) bool {
			return s.Hash == hash && s.Has(strconv.Itoa(l))
		})
	})
}
