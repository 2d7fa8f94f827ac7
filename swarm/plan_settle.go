package swarm

import "slices"

// settle chooses between the placing from scratch and ones that move less:
// the previous plan as it stands, if it is as good; else what keeps as many of
// its chains as possible, if that is as good; else the one from scratch, with
// equal nodes exchanged so that they keep what they have.
//
// The first question does not depend on how the previous plan came about, so
// planning again with the same input changes nothing.
func (w *work) settle(scratch placing, previous *Plan) placing {
	if p, ok := w.standing(previous); ok && w.keeps(p, scratch) {
		return p
	}
	exchanged := w.exchange(scratch, previous)
	kept := w.deal(previous)
	if w.keeps(kept, scratch) && w.movedBy(kept, previous) <= w.movedBy(exchanged, previous) {
		return kept
	}
	return exchanged
}

// standing is the previous plan read as a placing, if it still fits.
func (w *work) standing(previous *Plan) (placing, bool) {
	w.clear()
	var p placing
	for i := range w.specs {
		d := w.dealer(i, previous)
		l := d.chainsOf(previous)
		if len(l) > w.specs[i].Copies {
			return p, false
		}
		for _, c := range l {
			for _, pc := range c {
				if pc.seat < 0 {
					return p, false
				}
			}
		}
		p.add(d, l)
	}
	for i := range w.seats {
		if w.seats[i].free < 0 {
			return p, false
		}
	}
	return p, true
}

func (w *work) movedBy(p placing, previous *Plan) int64 {
	var sum int64
	for i := range w.specs {
		sum += w.dealer(i, previous).moved(p.layouts[i])
	}
	return sum
}

// exchange renames seats within groups of equal ones: whoever holds most of
// what a seat is to hold takes its part.
func (w *work) exchange(p placing, previous *Plan) placing {
	dealers := make([]*dealer, len(w.specs))
	for i := range w.specs {
		dealers[i] = w.dealer(i, previous)
	}
	parts := make([][]placedPiece, len(w.seats))
	for m, l := range p.layouts {
		for _, c := range l {
			for _, pc := range c {
				parts[pc.seat] = append(parts[pc.seat], placedPiece{m, pc})
			}
		}
	}
	as := make([]int, len(w.seats))
	for _, group := range w.equals() {
		busy := func(part int) bool { return len(parts[part]) > 0 }
		assign(group, as, busy, func(part, seat int) int64 {
			var missing int64
			for _, pp := range parts[part] {
				missing += dealers[pp.model].missing(seat, pp.first, pp.last)
			}
			return missing
		})
	}
	return w.renamed(p, as, previous)
}

type placedPiece struct {
	model int
	piece
}

// equals groups the seats that differ in nothing but their names, in id order.
func (w *work) equals() [][]int {
	type kind struct {
		usable           int64
		latency, compute Cost
	}
	at := map[kind]int{}
	var out [][]int
	for i := range w.seats {
		t := &w.seats[i]
		k := kind{t.usable, t.latency, t.compute}
		g, ok := at[k]
		if !ok {
			g = len(out)
			at[k] = g
			out = append(out, nil)
		}
		out[g] = append(out[g], i)
	}
	return out
}

// assign gives every part of a group to a seat of the group, each part in turn
// to the free seat that misses the least of it; parts with nothing in them
// take what is left.
func assign(group, as []int, busy func(part int) bool, missing func(part, seat int) int64) {
	used := make(map[int]bool, len(group))
	parts := slices.Clone(group)
	slices.SortStableFunc(parts, func(a, b int) int {
		switch {
		case busy(a) == busy(b):
			return 0
		case busy(a):
			return -1
		}
		return 1
	})
	for _, part := range parts {
		best, least := -1, int64(0)
		for _, seat := range group {
			if used[seat] {
				continue
			}
			if m := missing(part, seat); best < 0 || m < least {
				best, least = seat, m
			}
		}
		used[best] = true
		as[part] = best
	}
}

func (w *work) renamed(p placing, as []int, previous *Plan) placing {
	w.clear()
	var out placing
	for m, l := range p.layouts {
		renamed := make(layout, len(l))
		for i, c := range l {
			renamed[i] = make(chain, len(c))
			for k, pc := range c {
				renamed[i][k] = piece{as[pc.seat], pc.first, pc.last}
			}
		}
		out.add(w.dealer(m, previous), renamed)
	}
	return out
}
