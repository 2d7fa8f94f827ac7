package answer

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"hecate/swarm"
)

// manyAnswers are enough for a leak of a hundred bytes in each to show.
const manyAnswers = 3000

// Thousands of answers, of which many are rescued, some are lost and all have
// shadows, leave nothing behind: no memory, goroutine, reservation or state.
func TestMemoryIsFlat(t *testing.T) {
	f := threeStages()
	f.copies = true
	p := newPlaces(map[string][]swarm.Stage{"a": {on("x", 0, 5), on("y", 6, 11)}, "b": {on("b2", 4, 7)}, "c": {on("c2", 8, 11)}})
	r := f.runner(Limits{ShadeFrom: 10, Chunk: 4, RescueTime: time.Nanosecond})
	r.Standbys, r.Events, r.Budget = p, nil, NewBudget(1<<20)
	run := func(answers int) {
		for i := range answers {
			j := job(10, 12)
			j.ID = "job" + string(rune('a'+i%26))
			_, _, _ = generate(t, r, j, func(token int) {
				if token == 6 && i%4 == 0 {
					f.kill([]string{"a", "b", "c"}[i/4%3])
				}
				if token == 9 && i%20 == 0 { // the end of this one
					f.kill("x")
					f.kill("a")
				}
			})
			f.mu.Lock()
			for _, n := range []string{"a", "b", "c", "x"} {
				if f.nodes[n].down {
					f.raise(n)
				}
			}
			f.mu.Unlock()
		}
	}
	run(manyAnswers / 10) // warm up: maps and pools grow once
	heap, goroutines := settledHeap(), runtime.NumGoroutine()
	run(manyAnswers)
	if grown := int64(settledHeap()) - int64(heap); grown > 100*manyAnswers {
		t.Errorf("%d answers left %d bytes", manyAnswers, grown)
	}
	if n := runtime.NumGoroutine(); n > goroutines {
		t.Errorf("%d goroutines, %d before", n, goroutines)
	}
	if len(f.grants) != 0 || len(p.taken) != 0 || r.Budget.Used() != 0 {
		t.Errorf("%d grants, %d places, %d bytes of boundary states are left", len(f.grants), len(p.taken), r.Budget.Used())
	}
	for name, n := range f.nodes {
		if len(n.kept) != 0 {
			t.Errorf("%s keeps %d states", name, len(n.kept))
		}
	}
}

func settledHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The budget of all answers together is held to like that of one: whoever is over
// it keeps no states, and a rescue computes from the tokens again.
func TestTheTotalBudgetIsHeldTo(t *testing.T) {
	j := job(40, 24)
	want := whole(t, j)
	once := len(j.Prompt) + j.MaxTokens - 1
	for _, c := range []struct {
		budget  int64
		prefill bool
	}{{1 << 20, false}, {1, true}, {100, true}} {
		f := threeStages()
		r := f.runner(Limits{Chunk: 16})
		r.Budget = NewBudget(c.budget)
		most := int64(0)
		got, _, err := generate(t, r, j, func(i int) {
			if i > 0 {
				most = max(most, r.Budget.Used())
			}
			if i == 10 {
				f.kill("b")
			}
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("budget of %d bytes: %v, got %v, want %v", c.budget, err, got, want)
		}
		if again := f.rowsOf("a") > once; again != c.prefill {
			t.Errorf("budget of %d bytes: the survivor computed %d rows, once is %d", c.budget, f.rowsOf("a"), once)
		}
		if most > c.budget {
			t.Errorf("budget of %d bytes: %d were kept between two tokens", c.budget, most)
		}
	}
}
