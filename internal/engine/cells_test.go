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

// Runs that are taken, given back, made longer in place, moved and slid together:
// each keeps what was written into it, and none overlaps another.
func TestCellsKeepWhatTheyHoldWhileRunsGrow(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	ways := map[growth]int{}
	for range 100 {
		total := 20 + r.IntN(300)
		c := newCells(total, r.IntN(10))
		w := &written{cells: c, memory: make([]int, total), runs: map[int]*writtenRun{}}
		for id := 1; id < 300; id++ {
			rescue := r.IntN(4) == 0
			switch r.IntN(5) {
			case 0:
				w.giveOne()
			case 1, 2:
				w.take(id, 1+r.IntN(30), rescue)
			default:
				ways[w.growOne(1+r.IntN(30), rescue)]++
			}
			w.check(t)
		}
	}
	for _, w := range []growth{inPlace, toGap, slid} {
		if ways[w] < 100 {
			t.Errorf("only %d runs grew by way %d: %v", ways[w], w, ways)
		}
	}
}

// written is cells with something in them: each of a run's has the run's id.
type written struct {
	cells  *cells
	memory []int
	runs   map[int]*writtenRun
}

type writtenRun struct{ at, n int }

func (w *written) fill(id int) {
	for i := range w.runs[id].n {
		w.memory[w.runs[id].at+i] = 1000*id + i
	}
}

func (w *written) any() int {
	for id := range w.runs {
		return id
	}
	return 0
}

func (w *written) giveOne() {
	if id := w.any(); id > 0 {
		w.cells.give(w.runs[id].at)
		delete(w.runs, id)
	}
}

func (w *written) take(id, n int, rescue bool) {
	if at, _, ok := w.cells.take(n, rescue); ok {
		w.runs[id] = &writtenRun{at, n}
		w.fill(id)
	}
}

// growOne makes some run longer; -1 when there is no room.
func (w *written) growOne(by int, rescue bool) growth {
	id := w.any()
	if id == 0 {
		return -1
	}
	run := w.runs[id]
	n, way := run.n+by, growth(-1)
	largest := 0
	w.cells.gaps(rescue, func(_, _, size int) { largest = max(largest, size) })
	switch {
	case w.cells.room(run.at, rescue) >= n:
		way = inPlace
		w.cells.extend(run.at, n)
	case largest >= n:
		way = toGap
		to, _, _ := w.cells.take(n, rescue)
		w.move(move{run.at, to, run.n})
		w.cells.give(run.at)
		run.at = to
	case w.cells.open(rescue) >= by:
		way = slid
		owners := map[int]*writtenRun{}
		for _, o := range w.runs {
			owners[o.at] = o
		}
		for _, m := range w.cells.widen(run.at, n, rescue) {
			w.move(m)
			owners[m.from].at = m.to
		}
	default:
		return way
	}
	for i := run.n; i < n; i++ { // what it had must have come along
		w.memory[run.at+i] = 1000*id + i
	}
	run.n = n
	return way
}

func (w *written) move(m move) {
	copy(w.memory[m.to:m.to+m.n], w.memory[m.from:m.from+m.n])
}

func (w *written) check(t *testing.T) {
	t.Helper()
	free := w.cells.total
	for id, run := range w.runs {
		free -= run.n
		for i := range run.n {
			if got := w.memory[run.at+i]; got != 1000*id+i {
				t.Fatalf("cell %d of run %d at %d of %d holds %d", i, id, run.at, run.n, got)
			}
		}
	}
	if w.cells.free() != free {
		t.Fatalf("%d free, want %d", w.cells.free(), free)
	}
}
