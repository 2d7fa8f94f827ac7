package swarm

import (
	"fmt"
	"slices"
	"strings"
)

// explain writes, for people, why a model stands where it stands. It is called
// before the model is booked.
func (w *planWriter) explain(d *dealer, l layout) {
	spec := d.s.spec
	if len(l) == 0 {
		w.note("%s: no complete copy fits; see unplaced", spec.ID)
		return
	}
	m := d.merit(d.s, l)
	w.note("%s: %d of %d copies in %d stages, as few as fit; the most loaded node counts %s per pass",
		spec.ID, m.copies, spec.Copies, m.stages, brief(m.slowest))
	for _, c := range l {
		if len(c) == 1 {
			w.explainWhole(d, l, c[0].seat)
		}
	}
	if m.shared > 0 {
		w.note("%s: too little memory for copies that share no node; each layer lies on %d distinct nodes, so any %s may die, and a splice mends what a shared node breaks",
			spec.ID, m.copies, countNodes(m.copies-1))
	}
}

// explainWhole compares a model that is whole on one node with the best split
// over two nodes that have no part in it.
func (w *planWriter) explainWhole(d *dealer, l layout, seat int) {
	whole := d.seats[seat].price(workUnits)
	var others []int
	for i := range d.seats {
		if !slices.ContainsFunc(l, func(c chain) bool {
			return slices.ContainsFunc(c, func(p piece) bool { return p.seat == i })
		}) && d.fits(i) {
			others = append(others, i)
		}
	}
	pair := d.quickestPair(others)
	if pair == nil {
		return
	}
	split := d.merit(d.s, layout{pair}).total
	names := d.name(pair[0].seat) + " and " + d.name(pair[1].seat)
	switch {
	case whole <= split:
		w.note("%s: whole on %s at %s; split over %s it would cost %s, because a hop (%s) and a second node cost more than they gain",
			d.s.spec.ID, d.name(seat), brief(whole), names, brief(split), d.hop)
	default:
		w.note("%s: whole on %s at %s; split over %s it would cost %s, but a model that fits on one node is not split: the hop would be paid for every token",
			d.s.spec.ID, d.name(seat), brief(whole), names, brief(split))
	}
}

// quickestPair splits one copy over the two seats that are quickest at half a
// model each, where the cut makes the slower of them quickest; nil when those
// two cannot hold it.
func (d *dealer) quickestPair(seats []int) chain {
	half := func(i int) Cost { return d.seats[i].price(workUnits / 2) }
	a, b := -1, -1
	for _, i := range seats {
		switch {
		case a < 0 || half(i) < half(a):
			a, b = i, a
		case b < 0 || half(i) < half(b):
			b = i
		}
	}
	if b < 0 {
		return nil
	}
	var best chain
	var slowest Cost
	const cuts = 256 // as many are looked at; a note need not be finer
	for cut := 1; cut < d.s.layers; cut += max(1, d.s.layers/cuts) {
		for _, c := range []chain{{{a, 0, cut - 1}, {b, cut, d.s.layers - 1}}, {{b, 0, cut - 1}, {a, cut, d.s.layers - 1}}} {
			if !d.holds(c) {
				continue
			}
			if m := d.merit(d.s, layout{c}).slowest; best == nil || m < slowest {
				best, slowest = c, m
			}
		}
	}
	return best
}

// holds reports whether each piece of a chain fits its seat.
func (d *dealer) holds(c chain) bool {
	return !slices.ContainsFunc(c, func(p piece) bool {
		return d.s.need[p.last+1]-d.s.need[p.first] > d.seats[p.seat].free
	})
}

func (w *planWriter) note(format string, args ...any) {
	w.plan.Notes = append(w.plan.Notes, fmt.Sprintf(format, args...))
}

// brief prints a price to a tenth of a millisecond: these are estimates.
func brief(c Cost) string { return fmt.Sprintf("%.1fms", c.Milliseconds()) }

func countNodes(n int) string {
	if n == 1 {
		return "one node"
	}
	return fmt.Sprintf("%d nodes", n)
}

// writeIdle names every node without a part in a pipeline and says why.
func (w *planWriter) writeIdle() {
	for i := range w.seats {
		if !w.serving[i] {
			w.plan.Idle = append(w.plan.Idle, IdleNode{w.name(i), w.idleReason(i)})
		}
	}
}

func (w *planWriter) idleReason(i int) string {
	var spares []string
	placed := false
	for m := range w.specs {
		placed = placed || len(w.placing.layouts[m]) > 0
		for _, h := range w.held[i][m] {
			spares = append(spares, w.specs[m].ID+" "+h.String())
		}
	}
	usable := FormatBytes(w.seats[i].usable)
	switch {
	case len(w.specs) == 0:
		return "there is no model to place"
	case !placed:
		return fmt.Sprintf("no complete copy of any model fits into the swarm; %s stay unused here", usable)
	case len(spares) > 0:
		return fmt.Sprintf("all copies that fit stand without it and a further stage would cost a hop (%s) per token; it keeps warm spares: %s",
			w.hop, strings.Join(spares, ", "))
	}
	return fmt.Sprintf("%s of usable memory are too little for any layer", usable)
}
