package engine

import "slices"

// cells hands out runs of a layer's cache cells. A session keeps one run for
// its whole life: attention then reads its keys and values as one piece of
// memory, in the order of their positions, wherever the run lies.
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
	i := slices.IndexFunc(c.used, func(s span) bool { return s.at == at })
	if i < 0 {
		panic("BUG: cells given back that nobody took")
	}
	c.used = slices.Delete(c.used, i, i+1)
}

// move is a run of cells that goes elsewhere.
type move struct{ from, to, n int }

// compact slides all runs down, so that the gaps become one, and returns the
// moves in an order in which each may overwrite only what moved before it.
func (c *cells) compact() []move {
	var moves []move
	at := 0
	for i, s := range c.used {
		if s.at != at {
			moves = append(moves, move{s.at, at, s.n})
			c.used[i].at = at
		}
		at += s.n
	}
	return moves
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
