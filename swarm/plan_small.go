package swarm

import (
	"math/bits"
	"slices"
	"sort"
)

// smallSwarm is how many seats are searched exhaustively: every set of seats
// is looked at, 2^9 of them. Larger swarms are dealt greedily, where a few
// wasted layers no longer decide what fits.
const smallSwarm = 9

// apart deals k copies that share no seat, with as few stages as possible.
func (d *dealer) apart(seats []int, k int) (layout, bool) {
	if len(seats) < k || !d.enough(seats, k) {
		return nil, false
	}
	if len(seats) <= smallSwarm {
		return d.apartSmall(d.byMemory(seats), k)
	}
	return d.apartLarge(seats, k)
}

// A team is a set of seats, none of them dispensable, that can hold one copy.
type team struct {
	mask  int
	chain chain
	merit merit
}

// apartSmall finds, over all ways to form k disjoint teams, the one with the
// fewest stages, then the fastest slowest seat, then the least total.
func (d *dealer) apartSmall(seats []int, k int) (layout, bool) {
	teams := d.teams(seats)
	type entry struct {
		merit merit
		team  int
		known bool
	}
	full := 1 << len(seats)
	table := make([][]entry, k+1)
	for c := range table {
		table[c] = make([]entry, full)
	}
	table[0][0].known = true
	for c := range k {
		for mask := range full {
			if !table[c][mask].known {
				continue
			}
			for t := range teams {
				if mask&teams[t].mask != 0 {
					continue
				}
				sum := joined(table[c][mask].merit, teams[t].merit)
				at := &table[c+1][mask|teams[t].mask]
				if !at.known || sum.better(at.merit) {
					*at = entry{sum, t, true}
				}
			}
		}
	}
	best := -1
	for mask, e := range table[k] {
		if e.known && (best < 0 || e.merit.better(table[k][best].merit)) {
			best = mask
		}
	}
	if best < 0 {
		return nil, false
	}
	var out layout
	for c, mask := k, best; c > 0; c-- {
		t := table[c][mask].team
		out = append(out, teams[t].chain)
		mask &^= teams[t].mask
	}
	return out, true
}

func joined(a, b merit) merit {
	return merit{
		copies: a.copies + b.copies, shared: a.shared + b.shared, stages: a.stages + b.stages,
		slowest: max(a.slowest, b.slowest), total: a.total.Add(b.total),
	}
}

// teams lists every team with its best chain, in a fixed order.
func (d *dealer) teams(seats []int) []team {
	reach, order := d.frontier(seats, 0, d.s.layers)
	var out []team
	for mask, r := range reach {
		if r < d.s.layers || !indispensable(reach, mask, d.s.layers) {
			continue
		}
		c := d.bestChain(order(mask))
		out = append(out, team{mask, c, d.merit(d.s, layout{c})})
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].merit.better(out[j].merit) })
	return out
}

func indispensable(reach []int, mask, goal int) bool {
	for rest := mask; rest != 0; rest &= rest - 1 {
		if reach[mask&^(rest&-rest)] >= goal {
			return false
		}
	}
	return true
}

// frontier computes for every set of seats the furthest slot that it reaches
// from slot from, over all orders. Going further is never worse, so the best
// of a set is the best of the sets with one seat less, plus that seat. The
// returned function names an order that gets there.
func (d *dealer) frontier(seats []int, from, to int) ([]int, func(mask int) []int) {
	reach := make([]int, 1<<len(seats))
	last := make([]int8, len(reach))
	reach[0] = from
	for mask := 1; mask < len(reach); mask++ {
		reach[mask] = -1
		for rest := mask; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros(uint(rest))
			if r := d.reachSlots(seats[b], reach[mask&^(1<<b)], to, Infinite); r > reach[mask] {
				reach[mask], last[mask] = r, int8(b)
			}
		}
	}
	return reach, func(mask int) []int {
		var out []int
		for ; mask != 0; mask &^= 1 << last[mask] {
			out = append(out, seats[last[mask]])
		}
		slices.Reverse(out)
		return out
	}
}

// bestChain deals one copy over exactly these seats; order is one that works.
// Among the orders whose slowest seat is as good as any, the one that moves
// the fewest bytes wins.
func (d *dealer) bestChain(order []int) chain {
	var options []layout
	for _, o := range d.orders(order) {
		if l, ok := d.balanced(o, 0, 1); ok {
			options = append(options, l)
		}
		if d.held == nil {
			continue
		}
		if c, ok := d.balancedBack(o); ok {
			options = append(options, layout{c})
		}
	}
	return d.leastMoved(options)[0]
}

// orders are the orders of a chain that are tried: all of a short one, since
// embedding and head make a difference; of a longer one by speed, the reverse,
// and the one that is known to work. Where something is held already, it is
// worth looking at more.
func (d *dealer) orders(order []int) [][]int {
	short := 3
	if d.held != nil {
		short = 4
	}
	if len(order) <= short {
		return permutations(d.bySpeed(order))
	}
	return [][]int{d.bySpeed(order), reversed(d.bySpeed(order)), order}
}

func permutations(in []int) [][]int {
	if len(in) <= 1 {
		return [][]int{slices.Clone(in)}
	}
	var out [][]int
	for i := range in {
		rest := slices.Concat(in[:i], in[i+1:])
		for _, p := range permutations(rest) {
			out = append(out, append([]int{in[i]}, p...))
		}
	}
	return out
}

// leastMoved picks, among the options that are as good as the best, the one
// that moves the fewest bytes; then the better one, then the first.
func (d *dealer) leastMoved(options []layout) layout {
	merits := make([]merit, len(options))
	best := 0
	for i, l := range options {
		merits[i] = d.merit(d.s, l)
		if merits[i].better(merits[best]) {
			best = i
		}
	}
	if d.held == nil {
		return options[best]
	}
	pick, least := best, d.moved(options[best])
	for i, l := range options {
		if !d.asGood(merits[i], merits[best]) {
			continue
		}
		if m := d.moved(l); m < least || m == least && merits[i].better(merits[pick]) {
			pick, least = i, m
		}
	}
	return options[pick]
}

// balancedBack is balanced for one copy, dealt from the last layer down: it
// leaves what the last seats hold where it is.
func (d *dealer) balancedBack(order []int) (chain, bool) {
	c, ok := d.fillBack(order, Infinite)
	if !ok {
		return nil, false
	}
	high := d.merit(d.s, layout{c}).slowest
	cap := lowestCap(high, func(limit Cost) bool {
		_, ok := d.fillBack(order, limit)
		return ok
	})
	if tight, ok := d.fillBack(order, cap); ok {
		c = tight
	}
	return c, true
}

func (d *dealer) fillBack(order []int, cap Cost) (chain, bool) {
	var c chain
	pos := d.s.layers
	for k := len(order) - 1; k >= 0 && pos > 0; k-- {
		t := &d.seats[order[k]]
		start := d.s.back(pos, t.free, t.workFor(cap))
		if start < pos {
			c = append(c, piece{order[k], start, pos - 1})
			pos = start
		}
	}
	slices.Reverse(c)
	return c, pos == 0
}
