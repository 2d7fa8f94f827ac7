package swarm

import (
	"fmt"
	"slices"
)

// A GrowthPolicy decides which experts of the catalogue run in what the base
// models leave. It is asked whenever a swarm plans: at its start, when a node
// joins, and when one leaves. So experts also go first when room shrinks.
//
// Choose returns ids of the catalogue. What does not fit after all is left out
// by the planner, which places by Priority; the base models never give way.
type GrowthPolicy interface {
	Choose(room *Room) []string
}

// PriorityGrowth is the default policy: it walks the catalogue from the
// highest Priority down, ties by id, and takes every expert of which a whole
// pipeline fits into what is left. A large one that does not fit does not
// keep smaller ones after it out.
type PriorityGrowth struct{}

// Choose implements GrowthPolicy.
func (PriorityGrowth) Choose(room *Room) []string {
	var out []string
	for _, m := range room.Catalogue() {
		if room.Place(m.ID) {
			out = append(out, m.ID)
		}
	}
	return out
}

// A Room is what a growth policy may look at and try out. Trying changes
// nothing but the room itself.
type Room struct {
	planner   Planner
	nodes     []NodeProfile
	base      []ModelSpec
	catalogue []ModelSpec
	previous  *Plan
	placed    []ModelSpec // experts that were tried and fit
	plan      *Plan       // base models and placed experts
}

// Catalogue lists the experts by falling Priority, ties by id.
func (r *Room) Catalogue() []ModelSpec { return slices.Clone(r.catalogue) }

// Plan is the plan with the base models and what Place has placed so far.
func (r *Room) Plan() *Plan { return r.plan }

// Free is the bytes per node that neither headroom nor a pipeline takes. Warm
// spares do not count: they give way.
func (r *Room) Free() map[string]int64 {
	free := make(map[string]int64, len(r.plan.Nodes))
	for i := range r.plan.Nodes {
		n := &r.plan.Nodes[i]
		left := n.Profile.MemoryBytes - n.HeadroomBytes
		for _, f := range n.Fragments {
			if m, ok := r.plan.Model(f.Model); ok && !f.Spare {
				left -= m.RangeNeed(f.Layers)
			}
		}
		free[n.Profile.ID] = left
	}
	return free
}

// Place tries to put whole pipelines of one more expert into what is left, and
// reports whether all its copies fit. If not, the room is as before.
func (r *Room) Place(id string) bool {
	i := slices.IndexFunc(r.catalogue, func(m ModelSpec) bool { return m.ID == id })
	if i < 0 || slices.ContainsFunc(r.placed, func(m ModelSpec) bool { return m.ID == id }) {
		return false
	}
	with := append(slices.Clone(r.placed), r.catalogue[i])
	plan, err := r.planner.Plan(r.nodes, slices.Concat(r.base, with), r.previous)
	if err != nil {
		return false
	}
	for _, m := range with {
		if plan.unplaced(m.ID) != nil {
			return false
		}
	}
	r.placed, r.plan = with, plan
	return true
}

// planFor plans the base models over the nodes and lets the growth policy fill
// what they leave.
func (s *Swarm) planFor(nodes []NodeProfile, previous *Plan) (*Plan, error) {
	c := &s.config
	base, err := c.Planner.Plan(nodes, c.Models, previous)
	if err != nil || len(c.Catalogue) == 0 {
		return base, err
	}
	catalogue := slices.Clone(c.Catalogue)
	slices.SortFunc(catalogue, func(a, b ModelSpec) int {
		if placedBefore(&a, &b) {
			return -1
		}
		return 1
	})
	room := &Room{planner: c.Planner, nodes: nodes, base: c.Models, catalogue: catalogue, previous: previous, plan: base}
	var experts []ModelSpec
	for _, id := range c.Growth.Choose(room) {
		i := slices.IndexFunc(catalogue, func(m ModelSpec) bool { return m.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("growth policy chose %q, which is not in the catalogue: %w", id, ErrInvalid)
		}
		if slices.ContainsFunc(experts, func(m ModelSpec) bool { return m.ID == id }) {
			return nil, fmt.Errorf("growth policy chose %q twice: %w", id, ErrInvalid)
		}
		experts = append(experts, catalogue[i])
	}
	return c.Planner.Plan(nodes, slices.Concat(c.Models, experts), previous)
}
