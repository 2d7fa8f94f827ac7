package dispatch

import (
	"slices"

	"hecate/swarm"
)

// keepStagesLocked lets survivors keep their own stages of a broken route where they
// take lost layers over beside them. As one stage, which is what swarm makes of
// layers that follow one another on one node, they would begin anew and compute again
// what they hold. Two stages cost a round trip more with every further token, so a
// short context with much to come is not worth it.
func (d *Dispatcher) keepStagesLocked(old, next swarm.Route, tokens, left int) swarm.Route {
	var out []swarm.Stage
	for _, s := range next.Stages {
		for _, o := range old.Stages {
			if o.Node != s.Node || o == s || !s.Layers.Covers(o.Layers) {
				continue
			}
			if before := (swarm.LayerRange{First: s.Layers.First, Last: o.Layers.First - 1}); before.Valid() {
				out = append(out, swarm.Stage{Node: s.Node, Layers: before})
			}
			out = append(out, o)
			s.Layers.First = o.Layers.Last + 1
		}
		if s.Layers.Valid() {
			out = append(out, s)
		}
	}
	if len(out) > len(next.Stages) && d.worthKeepingLocked(old, next, out, tokens, left) {
		next.Stages = out
	}
	return next
}

// worthKeepingLocked compares the round trips of further stages with what would be
// computed again without them. What was not measured is not held against them.
func (d *Dispatcher) worthKeepingLocked(old, merged swarm.Route, apart []swarm.Stage, tokens, left int) bool {
	trips, again := 0., 0. // milliseconds
	for _, s := range apart {
		if slices.Contains(merged.Stages, s) {
			continue
		}
		m := &d.bookLocked(s.Node).measures
		if !m.link.Known || !m.prefill.Known {
			return true
		}
		trips += m.link.Value * float64(left)
		if slices.Contains(old.Stages, s) {
			again += m.prefill.Value * float64(s.Layers.Last-s.Layers.First+1) * float64(tokens) / 1024
		}
	}
	for _, s := range merged.Stages {
		if !slices.Contains(apart, s) {
			trips -= d.bookLocked(s.Node).measures.link.Value * float64(left)
		}
	}
	return again > trips
}
