//go:build !noengine && cgo

package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// A session that grows in the middle, however it comes by the cells, goes on to
// the last bit as one that had them from the beginning; so do its neighbours, also
// those that had to move out of its way.
func TestGrowingIsExact(t *testing.T) {
	for _, s := range subjects(t) {
		whole := Range{0, s.layers - 1}
		for _, c := range []struct {
			name  string
			cells int
			then  func(e Engine) []Session // opened behind the session that grows
		}{
			{"in place", 200, func(Engine) []Session { return nil }},
			{"into a gap", 200, func(e Engine) []Session { return []Session{open(t, e, "m", whole, 70)} }},
			{"by sliding", 160, func(e Engine) []Session {
				gap := open(t, e, "m", whole, 20)
				x := open(t, e, "m", whole, 70)
				gap.Close()
				return []Session{x}
			}},
		} {
			e := newEngine(t, Options{Cells: c.cells, RescueShare: -1})
			load(t, e, "m", s.path, 0, s.layers-1)
			x := open(t, e, "m", whole, 30)
			others := c.then(e)
			for _, o := range others {
				s.check(t, c.name+", neighbour", 0, feed(t, o, s.tokens[:40], nil, WantAll))
			}
			s.check(t, c.name+", before", 0, feed(t, x, s.tokens[:30], nil, WantAll))
			for i := 30; i < 70; i += 20 {
				if err := x.Grow(t.Context(), i+20); err != nil {
					t.Fatal(s.name, c.name, err)
				}
				s.check(t, c.name+", at once", i, feed(t, x, s.tokens[i:i+1], nil, WantAll))
				s.check(t, c.name+", after", i+1, feed(t, x, s.tokens[i+1:i+20], nil, WantAll))
			}
			for _, o := range others {
				s.check(t, c.name+", neighbour after", 40, feed(t, o, s.tokens[40:], nil, WantAll))
			}
			e.Close()
		}
	}
}

// A run that is longer than what is copied at a time moves up by less than its
// own length.
func TestALongRunMovesUp(t *testing.T) {
	s := subjects(t)[0]
	long := &subject{name: s.name, path: s.path, layers: s.layers, width: s.width}
	r := rand.New(rand.NewPCG(5, 6))
	for range moveRows + 90 {
		long.tokens = append(long.tokens, int32(r.IntN(200)))
	}
	e := newEngine(t, Options{Cells: len(long.tokens) + 60, ContextTokens: len(long.tokens), RescueShare: -1})
	defer e.Close()
	load(t, e, "m", s.path, 0, s.layers-1)
	x := open(t, e, "m", Range{0, s.layers - 1}, len(long.tokens))
	want := feed(t, x, long.tokens, nil, WantAll)
	x.Close()

	small := open(t, e, "m", Range{0, s.layers - 1}, 10)
	x = open(t, e, "m", Range{0, s.layers - 1}, len(long.tokens))
	half := len(long.tokens) - 20
	feed(t, x, long.tokens[:half], nil, WantNone)
	if err := small.Grow(t.Context(), 55); err != nil {
		t.Fatal(err)
	}
	feed(t, small, s.tokens[:55], nil, WantNone)
	got := feed(t, x, long.tokens[half:], nil, WantAll)
	if rest := want[len(want)-len(got):]; !equalBits(got, rest) {
		t.Error(fmt.Sprint("the moved session's results differ"))
	}
}
