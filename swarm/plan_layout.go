package swarm

import (
	"slices"
	"sort"
)

// A piece is a run of layers on one seat.
type piece struct {
	seat        int
	first, last int
}

// A chain is one copy of a model: pieces in layer order.
type chain []piece

// A layout is where the copies of one model stand.
type layout []chain

// A merit is what makes one layout better than another. Read from the top:
// more copies, then fewer nodes that two copies share, then fewer stages, then
// the less loaded slowest node, then the cheaper sum of all stages and hops.
type merit struct {
	copies  int
	shared  int
	stages  int
	slowest Cost
	total   Cost
}

// better reports whether a is better than b.
func (a merit) better(b merit) bool {
	switch {
	case a.copies != b.copies:
		return a.copies > b.copies
	case a.shared != b.shared:
		return a.shared < b.shared
	case a.stages != b.stages:
		return a.stages < b.stages
	case a.slowest != b.slowest:
		return a.slowest < b.slowest
	}
	return a.total < b.total
}

// asGood reports whether a is worth keeping when b could be had by moving
// layers: it survives as much with as few stages, and its slowest node with
// its hop is at most a tenth slower. The tenth is hysteresis: moving gigabytes
// for a millisecond is no gain.
func (d *desk) asGood(a, b merit) bool {
	return a.copies >= b.copies && (a.copies > b.copies ||
		a.shared <= b.shared && a.stages <= b.stages && a.slowest <= b.slowest.Add(b.slowest.Add(d.hop)/10))
}

// merit judges a layout with everything placed before it booked and the layout
// itself not yet.
func (d *desk) merit(s *sheet, l layout) merit {
	m := merit{copies: len(l)}
	work := map[int]int64{}
	in := map[int]int{}
	for _, c := range l {
		m.stages += len(c)
		m.total = m.total.Add(d.hop.Times(len(c) - 1))
		seen := map[int]bool{}
		for _, p := range c {
			w := s.work[p.last+1] - s.work[p.first]
			m.total = m.total.Add(d.seats[p.seat].price(w))
			work[p.seat] += w
			if !seen[p.seat] {
				seen[p.seat] = true
				in[p.seat]++
			}
		}
	}
	for seat, w := range work {
		m.slowest = max(m.slowest, d.seats[seat].price(w))
		if in[seat] > 1 {
			m.shared++
		}
	}
	return m
}

// take books (sign 1) or gives back (sign -1) what a layout needs.
func (d *desk) take(s *sheet, l layout, sign int64) {
	for _, c := range l {
		for _, p := range c {
			t := &d.seats[p.seat]
			t.free -= sign * (s.need[p.last+1] - s.need[p.first])
			t.busy += Cost(sign * scale(int64(t.compute), s.work[p.last+1]-s.work[p.first], workUnits))
		}
	}
}

// sortLayout brings the copies of a model into the order in which they are
// numbered: cheapest first, then by their stages.
func (d *desk) sortLayout(s *sheet, l layout) {
	cost := make(map[*piece]Cost, len(l))
	for _, c := range l {
		cost[&c[0]] = d.merit(s, layout{c}).total
	}
	sort.SliceStable(l, func(i, j int) bool {
		if a, b := cost[&l[i][0]], cost[&l[j][0]]; a != b {
			return a < b
		}
		return slices.CompareFunc(l[i], l[j], comparePieces) < 0
	})
}

func comparePieces(a, b piece) int {
	return slices.Compare([]int{a.seat, a.first, a.last}, []int{b.seat, b.first, b.last})
}
