package engine

import (
	"math/rand/v2"
	"testing"
)

func TestCellsReserveForRescues(t *testing.T) {
	c := newCells(80, 8)
	if _, largest, ok := c.take(71, false); ok || largest != 70 {
		t.Errorf("71 of 70 open cells: ok %v, largest gap %d", ok, largest)
	}
	at, _, ok := c.take(70, false)
	if !ok || at != 0 {
		t.Errorf("70 of 70: at %d, ok %v", at, ok)
	}
	if _, largest, ok := c.take(1, false); ok || largest != 0 {
		t.Errorf("a cell of the reserve was given to a session that is no rescue (largest gap %d)", largest)
	}
	if at, _, ok := c.take(10, true); !ok || at != 70 {
		t.Errorf("a rescue got %d, %v", at, ok)
	}
	c.give(0)
	if c.free() != 70 {
		t.Errorf("%d free, want 70", c.free())
	}
}

func TestCellsNeverOverlap(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		total := 1 + r.IntN(300)
		c := newCells(total, r.IntN(10))
		owner := make([]int, total)
		runs := map[int]span{}
		for id := 1; id < 200; id++ {
			if len(runs) > 0 && r.IntN(2) == 0 {
				for k, s := range runs {
					c.give(s.at)
					clear(owner[s.at : s.at+s.n])
					delete(runs, k)
					break
				}
			}
			n, rescue := 1+r.IntN(40), r.IntN(3) == 0
			at, largest, ok := c.take(n, rescue)
			if !ok {
				if largest >= n {
					t.Fatalf("refused %d although a gap has %d", n, largest)
				}
				continue
			}
			if !rescue && at+n > total-c.reserve {
				t.Fatalf("%d cells at %d of %d reach into the reserve of %d", n, at, total, c.reserve)
			}
			for i := at; i < at+n; i++ {
				if owner[i] != 0 {
					t.Fatalf("cell %d given to %d and %d", i, owner[i], id)
				}
				owner[i] = id
			}
			runs[id] = span{at, n}
		}
		used := 0
		for _, o := range owner {
			if o != 0 {
				used++
			}
		}
		if c.free() != total-used {
			t.Fatalf("%d free, want %d", c.free(), total-used)
		}
	}
}
