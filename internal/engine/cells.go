package engine

import "slices"

// cells hands out runs of a layer's cache cells. A session has one run at a
// time: attention then reads its keys and values as one piece of memory, in the
// order of their positions, wherever the run lies. A run may grow.
type cells struct {
	total   int
	reserve int    // the last cells, for rescues only; 0 <= reserve < total
	used    []span // sorted, disjoint, none empty, all within 0..total
}

// span is a run of cells.
type span struct{ at, n int }

// newCells keeps the last 1/share cells for rescues; share <= 0 keeps none.
func newCells(total, share int) *cells {
	c := &cells{total: total}
	if share > 0 {
		c.reserve = total / share
	}
	return c
}

// take reserves n cells in the smallest gap they fit in. If there is none it
// returns the size of the largest gap instead.
func (c *cells) take(n int, rescue bool) (at, largest int, ok bool) {
	best, bestSize, bestIndex := -1, 0, 0
	c.gaps(rescue, func(i, gap, size int) {
		largest = max(largest, size)
		if size >= n && (best < 0 || size < bestSize) {
			best, bestSize, bestIndex = gap, size, i
		}
	})
	if best < 0 {
		return 0, largest, false
	}
	c.used = slices.Insert(c.used, bestIndex, span{best, n})
	return best, largest, true
}

// gaps calls f with each gap and the index in used at which it lies.
func (c *cells) gaps(rescue bool, f func(i, at, size int)) {
	end := c.total
	if !rescue {
		end -= c.reserve
	}
	at := 0
	for i, s := range c.used {
		if size := min(s.at, end) - at; size > 0 {
			f(i, at, size)
		}
		at = s.at + s.n
	}
	if end > at {
		f(len(c.used), at, end-at)
	}
}

// give returns the run that begins at a cell.
func (c *cells) give(at int) {
	i := c.index(at)
	c.used = slices.Delete(c.used, i, i+1)
}

// index finds the run that begins at a cell.
func (c *cells) index(at int) int {
	i := slices.IndexFunc(c.used, func(s span) bool { return s.at == at })
	if i < 0 {
		panic("BUG: a run of cells that nobody took")
	}
	return i
}

// room is how long the run that begins at a cell may become where it is.
func (c *cells) room(at int, rescue bool) int {
	i := c.index(at)
	_, end := c.bounds(i, i, rescue)
	return max(end-at, c.used[i].n)
}

// extend makes a run longer where it is; its room allows it.
func (c *cells) extend(at, n int) { c.used[c.index(at)].n = n }

// move is a run of cells that goes elsewhere.
type move struct{ from, to, n int }

// compact slides all runs down, so that the gaps become one, and returns the
// moves in an order in which each may overwrite only what moved before it.
func (c *cells) compact() []move { return c.pack(-1, 0) }

// widen makes the run that begins at a cell n cells long by sliding others out of
// its way: those between it and the nearest gaps that together are large enough, or
// all of them. There are enough free cells. The moves are in an order as compact's.
func (c *cells) widen(at, n int, rescue bool) []move {
	i := c.index(at)
	first, last, ok := c.nearest(i, n-c.used[i].n, rescue)
	if !ok {
		return c.pack(i, n)
	}
	var moves []move
	slide := func(k, to int) {
		if s := c.used[k]; s.at != to {
			moves = append(moves, move{s.at, to, s.n})
			c.used[k].at = to
		}
	}
	from, end := c.bounds(first, last, rescue)
	for k := first; k <= i; k++ { // down
		slide(k, from)
		from += c.used[k].n
	}
	for k := last; k > i; k-- { // up
		end -= c.used[k].n
		slide(k, end)
	}
	c.used[i].n = n
	return moves
}

// nearest finds the runs around one of them that have so many free cells between
// and beside them, and of which the fewest cells would move.
func (c *cells) nearest(i, more int, rescue bool) (first, last int, ok bool) {
	least := 0
	for l, left := i, 0; l >= 0; l-- {
		left += c.used[l].n
		for r, cells := i, left; r < len(c.used); r++ {
			if r > i {
				cells += c.used[r].n
			}
			from, end := c.bounds(l, r, rescue)
			if c.used[r].at+c.used[r].n > end || ok && cells >= least {
				break
			}
			if end-from-cells >= more {
				first, last, least, ok = l, r, cells, true
				break
			}
		}
	}
	return first, last, ok
}

// bounds is where a row of runs may lie: up to its neighbours, and the reserve.
func (c *cells) bounds(first, last int, rescue bool) (from, end int) {
	if first > 0 {
		from = c.used[first-1].at + c.used[first-1].n
	}
	end = c.total
	if !rescue {
		end -= c.reserve
	}
	if last+1 < len(c.used) {
		end = min(end, c.used[last+1].at)
	}
	return from, end
}

// pack lays the runs side by side in their order, one of them, if any, with a new
// length. Those that go down move first, from the lowest on; then those that go
// up, from the highest on.
func (c *cells) pack(wide, n int) []move {
	var down, up []move
	at := 0
	for i, s := range c.used {
		switch {
		case at < s.at:
			down = append(down, move{s.at, at, s.n})
		case at > s.at:
			up = append(up, move{s.at, at, s.n})
		}
		c.used[i].at = at
		if i == wide {
			c.used[i].n = n
		}
		at += c.used[i].n
	}
	slices.Reverse(up)
	return append(down, up...)
}

// open counts the free cells that a session may have after compaction.
func (c *cells) open(rescue bool) int {
	if rescue {
		return c.free()
	}
	return c.free() - c.reserve
}

// free counts the cells that are not taken, the reserve included.
func (c *cells) free() int {
	n := c.total
	for _, s := range c.used {
		n -= s.n
	}
	return n
}
