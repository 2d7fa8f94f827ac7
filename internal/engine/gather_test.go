package engine

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
)

// Streams whose other half is computed elsewhere come back in waves, a little
// apart from each other. A wave must not be split into its first step and the
// rest.
func TestWavesOfStreamsAreNotSplit(t *testing.T) {
	for _, c := range []struct {
		streams int
		least   float64 // rows in each pass
	}{{2, 1}, {4, 1.9}, {8, 3.6}} {
		synctest.Test(t, func(t *testing.T) {
			k := &imitation{perPass: 8 * time.Millisecond, perRow: time.Millisecond / 2}
			core := imitated(t, Options{Cells: 2000, MaxBatch: 32}, k)
			const steps = 80
			var wg sync.WaitGroup
			for i := range c.streams {
				s := mustOpen(t, core, Range{0, tinyLayers - 2}, 150)
				r := rand.New(rand.NewPCG(3, uint64(i)))
				wg.Go(func() {
					time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
					for at := range steps {
						out, err := s.Step(t.Context(), Input{Position: at, Tokens: []int32{1}, Want: WantAll})
						if err != nil {
							t.Error(err)
							return
						}
						// The other stage takes as long; the way is not quite the same for all.
						elsewhere := 8*time.Millisecond + time.Duration(out.Batch)*time.Millisecond/2
						time.Sleep(elsewhere + time.Duration(r.IntN(500))*time.Microsecond)
					}
				})
			}
			wg.Wait()
			rows, passes := 0, k.passes[len(k.passes)/2:]
			for _, p := range passes {
				rows += p.rows
			}
			if mean := float64(rows) / float64(len(passes)); mean < c.least {
				t.Errorf("%d streams: %.2f rows in each pass, want %.1f", c.streams, mean, c.least)
			}
		})
	}
}

func TestGatheringWaitsNoLongerThanItPays(t *testing.T) {
	start := time.Now()
	at := func(us int) time.Time { return start.Add(time.Duration(us) * time.Microsecond) }
	whole, part := Range{0, 3}, Range{0, 1}
	for _, c := range []struct {
		name     string
		layers   Range
		users    int
		partners int
		ended    int   // the last pass, in microseconds
		queue    []int // when the steps came
		now      int
		want     int // to wait, in microseconds; decoding takes 8 ms
	}{
		{"a stream alone", whole, 1, 1, 0, []int{500}, 500, 0},
		{"of two streams the first", whole, 2, 2, 0, []int{500}, 500, 1000},
		{"of two streams both", whole, 2, 2, 0, []int{500, 900}, 900, 0},
		{"another stream is busy elsewhere", whole, 2, 1, 0, []int{500}, 500, 0},
		{"came during the pass", whole, 8, 8, 0, []int{-5000}, 0, 1000},
		{"each may take its time", whole, 8, 8, 0, []int{100, 800}, 800, 1000},
		{"but not all together", whole, 8, 8, 0, []int{100, 1000, 1900}, 1900, 200},
		{"a stage has half of the streams", part, 8, 1, 0, []int{500, 600, 700, 800}, 800, 0},
		{"or waits for them", part, 8, 1, 0, []int{500, 600, 700}, 700, 1000},
		{"a stage with one of two", part, 2, 2, 0, []int{500}, 500, 0},
		{"nobody came", part, 8, 1, 0, []int{500}, 1500, 0},
	} {
		g := &group{model: &model{spec: &arch.Spec{Info: gguf.ModelInfo{Layers: 4}}}, layers: c.layers, users: c.users}
		g.timing.decode = 8 * time.Millisecond
		g.gathering.ended(at(c.ended), c.partners, 0)
		for _, us := range c.queue {
			g.push(&step{rows: 1, enqueued: at(us)})
		}
		if got := max(0, g.gather(at(c.now))); got != time.Duration(c.want)*time.Microsecond {
			t.Errorf("%s: %v, want %d µs", c.name, got, c.want)
		}
	}
}
