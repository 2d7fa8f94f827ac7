package swarm

import (
	"math/bits"
	"slices"
	"sort"
)

// bridge builds one more copy around copies that stay: any seat may take a run
// of layers that it does not hold for another copy, as far as its free bytes
// go. It is how a broken copy is mended without touching the others.
func (d *dealer) bridge(seats []int, around layout) (chain, bool) {
	owned := d.ownedBy(around)
	if len(seats) <= smallSwarm {
		return d.bridgeSmall(d.byMemory(seats), owned)
	}
	return d.bridgeLarge(seats, owned)
}

// ownedBy lists, per seat, the layers it holds for the given copies.
func (d *dealer) ownedBy(l layout) map[int][]LayerRange {
	owned := map[int][]LayerRange{}
	for _, c := range l {
		for _, p := range c {
			owned[p.seat] = append(owned[p.seat], LayerRange{p.first, p.last})
		}
	}
	return owned
}

// reachAround is how far seat i gets from layer p without touching what it
// owns already.
func (d *dealer) reachAround(i, p int, owned []LayerRange) int {
	limit := d.s.layers
	for _, r := range owned {
		if r.Last >= p {
			limit = min(limit, max(p, r.First))
		}
	}
	return d.s.reach(p, limit, d.seats[i].free, workUnits)
}

func (d *dealer) bridgeSmall(seats []int, owned map[int][]LayerRange) (chain, bool) {
	reach := make([]int, 1<<len(seats))
	last := make([]int, len(reach))
	best := -1
	for mask := 1; mask < len(reach); mask++ {
		reach[mask] = -1
		for rest := mask; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros(uint(rest))
			if r := d.reachAround(seats[b], reach[mask&^(1<<b)], owned[seats[b]]); r > reach[mask] {
				reach[mask], last[mask] = r, b
			}
		}
		if reach[mask] == d.s.layers && (best < 0 || bits.OnesCount(uint(mask)) < bits.OnesCount(uint(best))) {
			best = mask
		}
	}
	if best < 0 {
		return nil, false
	}
	var c chain
	for mask := best; mask != 0; {
		b := last[mask]
		from := reach[mask&^(1<<b)]
		if reach[mask] > from {
			c = append(c, piece{seats[b], from, reach[mask] - 1})
		}
		mask &^= 1 << b
	}
	slices.Reverse(c)
	return c, true
}

func (d *dealer) bridgeLarge(seats []int, owned map[int][]LayerRange) (chain, bool) {
	used := make(map[int]bool)
	var c chain
	for pos := 0; pos < d.s.layers; {
		pick, end := -1, pos
		for _, i := range seats {
			if used[i] {
				continue
			}
			e := d.reachAround(i, pos, owned[i])
			if e > end || e == end && pick >= 0 && d.seats[i].free < d.seats[pick].free {
				pick, end = i, e
			}
		}
		if pick < 0 {
			return nil, false
		}
		used[pick] = true
		c = append(c, piece{pick, pos, end - 1})
		pos = end
	}
	return c, true
}

// patch mends a chain stage by stage: for every stage that is gone, the seat
// that can take exactly its layers, moves the fewest bytes and is quickest.
// Seats in taken are left alone.
func (d *dealer) patch(c chain, gone func(piece) bool, taken map[int]bool) (chain, bool) {
	out := slices.Clone(c)
	own := map[int]bool{}
	for _, p := range c {
		if !gone(p) {
			own[p.seat] = true
		}
	}
	for k, p := range out {
		if !gone(p) {
			continue
		}
		pick := d.substitute(p, func(i int) bool { return taken[i] || own[i] })
		if pick < 0 {
			return nil, false
		}
		own[pick] = true
		out[k].seat = pick
	}
	return out, true
}

func (d *dealer) substitute(p piece, excluded func(int) bool) int {
	need := d.s.need[p.last+1] - d.s.need[p.first]
	work := d.s.work[p.last+1] - d.s.work[p.first]
	var fit []int
	for i := range d.seats {
		if d.seats[i].free >= need && !excluded(i) {
			fit = append(fit, i)
		}
	}
	if len(fit) == 0 {
		return -1
	}
	sort.SliceStable(fit, func(a, b int) bool {
		i, j := fit[a], fit[b]
		if x, y := d.missing(i, p.first, p.last), d.missing(j, p.first, p.last); x != y {
			return x < y
		}
		return d.seats[i].price(work) < d.seats[j].price(work)
	})
	return fit[0]
}
