//go:build !noengine && cgo

package engine

import (
	"encoding/binary"
	"slices"

	"github.com/ollama/ollama/ml"
)

// sight is what the rows of a segment see of their session's history.
type sight struct {
	from int       // the first position that any of them sees
	mask ml.Tensor // what each of them does not see from there on; nil: all see all
}

// sightStep: histories begin at multiples of it. Attention takes so many
// positions at a time, or a divisor of it, counted from the first; where the
// blocks lie must not depend on what else is computed in a pass.
const sightStep = 32

// sight of the n-th segment in layers whose rows see so many positions (0: all).
// All layers of one kind share it.
func (g *graph) sight(span, n int) sight {
	if g.sights == nil {
		g.sights = map[int][]sight{}
	}
	if g.sights[span] == nil {
		for _, s := range g.p.segs {
			g.sights[span] = append(g.sights[span], g.look(s, span))
		}
	}
	return g.sights[span][n]
}

// look makes the mask of a segment: a row sees the positions up to its own, but
// no more than span of them. A single row that sees all that is left of the
// history needs none.
func (g *graph) look(s segment, span int) sight {
	first := func(position int) int { // that a row sees
		if span == 0 {
			return 0
		}
		return max(0, position-span+1)
	}
	from := first(s.start) / sightStep * sightStep
	if s.n == 1 && first(s.start) == from {
		return sight{from: from}
	}
	const hidden = 0xfc00 // minus infinity in half precision
	held := s.start + s.n - from
	g.mask = slices.Grow(g.mask[:0], 2*held*s.n)[:2*held*s.n]
	clear(g.mask)
	for r := range s.n {
		row, own := g.mask[2*held*r:2*held*(r+1)], s.start+r
		for c := range held {
			if p := from + c; p > own || p < first(own) {
				binary.LittleEndian.PutUint16(row[2*c:], hidden)
			}
		}
	}
	return sight{from, g.in.FromBytes(ml.DTypeF16, g.mask, held, s.n)}
}
