package swarm

import "math/bits"

// together deals k copies where they cannot be apart: the slots of all copies
// form one row, and each seat takes a run of it. A run that spans the end of a
// copy makes its node part of two copies, which the plan then says aloud; each
// layer still lies on k distinct nodes, so any k-1 of them may die.
//
// Sizes that differ from layer to layer may make a row fit that begins in the
// middle of the model and not one that begins at layer 0; so every beginning
// is tried before giving up.
func (d *dealer) together(seats []int, k int) (layout, bool) {
	if len(seats) < k || !d.enough(seats, k) {
		return nil, false
	}
	for from := range beginnings(d.s.layers, len(seats), k) {
		if l, ok := d.togetherFrom(seats, from, k); ok {
			return l, true
		}
	}
	return nil, false
}

// enough is the quick answer to whether k copies may fit at all: a seat is of
// use for at most one copy's worth of bytes.
func (d *dealer) enough(seats []int, k int) bool {
	var sum int64
	for _, i := range seats {
		sum = addBytes(sum, min(d.seats[i].free, d.s.total()))
	}
	return sum >= mulBytes(d.s.total(), int64(k))
}

// beginnings is how many first slots are worth trying: a single copy begins
// at layer 0, and where many seats meet many layers a wasted layer no longer
// decides what fits.
func beginnings(layers, seats, k int) int {
	if k == 1 || layers*seats > 1<<13 {
		return 1
	}
	return layers
}

func (d *dealer) togetherFrom(seats []int, from, k int) (layout, bool) {
	if len(seats) <= smallSwarm {
		return d.togetherSmall(d.byMemory(seats), from, k)
	}
	to := from + k*d.s.layers
	var best layout
	for _, order := range [][]int{d.byMemory(seats), reversed(d.byMemory(seats)), d.bySpeed(seats)} {
		runs, end := d.fill(order, from, to, Infinite, false)
		if end < to {
			continue
		}
		// Only the seats that were needed take part in the balancing.
		used := make([]int, len(runs))
		for i, r := range runs {
			used[i] = r.seat
		}
		if l, ok := d.balanced(used, from, k); ok && (best == nil || d.merit(d.s, l).better(d.merit(d.s, best))) {
			best = l
		}
	}
	return best, best != nil
}

func reversed(in []int) []int {
	out := make([]int, len(in))
	for i, v := range in {
		out[len(in)-1-i] = v
	}
	return out
}

// togetherSmall uses the fewest seats that reach the end of the row; of the
// sets of that size, the one with the best layout.
func (d *dealer) togetherSmall(seats []int, from, k int) (layout, bool) {
	to := from + k*d.s.layers
	reach, order := d.frontier(seats, from, to)
	least := len(seats) + 1
	for mask, r := range reach {
		if r == to {
			least = min(least, bits.OnesCount(uint(mask)))
		}
	}
	var options []layout
	for mask, r := range reach {
		if r < to || bits.OnesCount(uint(mask)) != least {
			continue
		}
		for _, o := range d.orders(order(mask)) {
			if l, ok := d.balanced(o, from, k); ok {
				options = append(options, l)
			}
		}
	}
	if len(options) == 0 {
		return nil, false
	}
	return d.leastMoved(options), true
}

// furthest is how many slots of k copies find room at all, and so what is
// missing: the bytes of the slots that nobody can take.
func (d *dealer) shortfall(seats []int, k int) int64 {
	to := k * d.s.layers
	end := 0
	if len(seats) <= smallSwarm {
		reach, _ := d.frontier(seats, 0, to)
		end = reach[len(reach)-1]
	} else {
		for _, order := range [][]int{d.byMemory(seats), reversed(d.byMemory(seats))} {
			_, e := d.fill(order, 0, to, Infinite, false)
			end = max(end, e)
		}
	}
	whole, rest := int64((to-end)/d.s.layers), (to-end)%d.s.layers
	return whole*d.s.total() + d.s.total() - d.s.need[d.s.layers-rest]
}
