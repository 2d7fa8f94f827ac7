//go:build !noengine && cgo

package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// The promise under test: with quantised weights, a row's result is the same
// to the last bit whatever else is going on. The reference is one session,
// alone, one token at a time, on one thread, over the whole model.

// subject is a model and a token sequence with the reference logits of every
// position.
type subject struct {
	name   string
	path   string
	layers int
	width  int
	tokens []int32
	want   [][]float32
}

func subjects(t *testing.T) []*subject {
	t.Helper()
	var out []*subject
	for i, c := range []randmodel.Config{
		randmodel.Tiny(gguf.Q8_0, 40), randmodel.Tiny(gguf.Q4_0, 41), randmodel.Tiny(gguf.Q4_K, 42), randmodel.Tiny(gguf.Q5_K, 43), randmodel.Tiny(gguf.Q6_K, 44),
		randmodel.Tiny(gguf.Q8_0, 45), randmodel.Tiny(gguf.Q4_0, 46), randmodel.Tiny(gguf.Q8_0, 47), randmodel.Tiny(gguf.Q4_0, 48),
	} {
		c.Tied, c.RopeFactors = i%2 == 1, i%2 == 0
		if i >= 5 {
			c.Arch, c.RopeFactors = map[int]string{5: "qwen2", 6: "qwen3", 7: "gemma3", 8: "mistral3"}[i], false
			c.HeadDim = 32
		}
		switch c.Arch {
		case "gemma3":
			c.Layers, c.Window = 6, 19 // the last layer is global
		case "mistral3":
			c.YaRN = true
		}
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := randmodel.WriteFile(path, c); err != nil {
			t.Fatal(err)
		}
		s := &subject{name: c.Arch + " " + c.Kind.String(), path: path, layers: c.Layers, width: c.Width}
		r := rand.New(rand.NewPCG(9, uint64(i)))
		for range 70 {
			s.tokens = append(s.tokens, int32(r.IntN(c.Vocab)))
		}
		out = append(out, s)
	}
	for _, s := range out {
		s.reference(t)
	}
	return out
}

func (s *subject) reference(t *testing.T) {
	e := newEngine(t, Options{})
	defer e.Close()
	load(t, e, "m", s.path, 0, s.layers-1)
	x := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
	for _, token := range s.tokens {
		s.want = append(s.want, feed(t, x, []int32{token}, nil, WantLast))
	}
}

// check compares logits of positions from..from+rows-1 with the reference.
func (s *subject) check(t *testing.T, what string, from int, logits []float32) {
	t.Helper()
	vocab := len(s.want[0])
	for i := range len(logits) / vocab {
		for j, got := range logits[i*vocab : (i+1)*vocab] {
			if want := s.want[from+i][j]; math.Float32bits(got) != math.Float32bits(want) {
				t.Fatalf("%s, %s: position %d, token %d: %v instead of %v", s.name, what, from+i, j, got, want)
			}
		}
	}
}

// chain is an answer's sessions on consecutive ranges.
type chain []Session

func openChain(t *testing.T, e Engine, model string, cuts []int, cells int) chain {
	var c chain
	for i := 1; i < len(cuts); i++ {
		c = append(c, open(t, e, model, Range{cuts[i-1], cuts[i] - 1}, cells))
	}
	return c
}

// feed runs tokens through all sessions and returns the logits of every row.
func (c chain) feed(t testing.TB, tokens []int32) []float32 {
	t.Helper()
	var hidden []float32
	for i, s := range c {
		if i == 0 {
			hidden = feed(t, s, tokens, nil, WantAll)
		} else {
			hidden = feed(t, s, nil, hidden, WantAll)
		}
	}
	return hidden
}

func (c chain) close() {
	for _, s := range c {
		s.Close()
	}
}

func TestSplitAtEveryBoundary(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{})
		load(t, e, "m", s.path, 0, s.layers-1)
		for mask := range 1 << (s.layers - 1) {
			cuts := []int{0}
			for b := 1; b < s.layers; b++ {
				if mask&(1<<(b-1)) != 0 {
					cuts = append(cuts, b)
				}
			}
			cuts = append(cuts, s.layers)
			c := openChain(t, e, "m", cuts, len(s.tokens))
			s.check(t, fmt.Sprint("cut at ", cuts, ", prompt"), 0, c.feed(t, s.tokens[:20]))
			for i := 20; i < 30; i++ {
				s.check(t, fmt.Sprint("cut at ", cuts, ", decode"), i, c.feed(t, s.tokens[i:i+1]))
			}
			c.close()
		}
		e.Close()
	}
}

func TestThreadsChunksAndReplay(t *testing.T) {
	for i, s := range subjects(t) {
		options := []Options{{MaxBatch: 1}, {MaxBatch: 3}, {MaxBatch: 16}, {MaxBatch: 256}}
		if i < 2 {
			// Few passes with more than one thread: the threads spin, which
			// takes very long on a machine that has other work.
			options = append(options, Options{MaxBatch: 40, Threads: 2})
		}
		for _, o := range options {
			e := newEngine(t, o)
			load(t, e, "m", s.path, 0, s.layers-1)
			x := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
			what := fmt.Sprintf("%d threads, chunks of %d", max(1, o.Threads), o.MaxBatch)
			s.check(t, what, 0, feed(t, x, s.tokens, nil, WantAll))
			if err := x.Truncate(11); err != nil {
				t.Fatal(err)
			}
			s.check(t, what+", truncated", 11, feed(t, x, s.tokens[11:40], nil, WantAll))
			e.Close()
		}
	}
}

// TestTwoEnginesTwoModels computes two models with different numbers of
// threads at once: they share the kernels' work memory.
func TestTwoEnginesTwoModels(t *testing.T) {
	subs := subjects(t)[:2]
	var wg sync.WaitGroup
	for i, s := range subs {
		e := newEngine(t, Options{Threads: i + 1})
		load(t, e, "m", s.path, 0, s.layers-1)
		for range 2 {
			x := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
			wg.Go(func() {
				for i := range s.tokens[:6] {
					out, err := x.Step(context.Background(), Input{Position: i, Tokens: s.tokens[i : i+1], Want: WantLast})
					if err != nil {
						t.Error(err)
						return
					}
					if !equalBits(out.Logits, s.want[i]) {
						t.Errorf("%s: position %d differs", s.name, i)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

func equalBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// TestCrowd runs many sessions over different cuts at once, opened and closed
// in random order, so that batches, cells and neighbours vary all the time.
func TestCrowd(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{MaxBatch: 24, Cells: 1024})
		load(t, e, "m", s.path, 0, s.layers-1)
		var wg sync.WaitGroup
		for worker := range 8 {
			r := rand.New(rand.NewPCG(77, uint64(worker)))
			wg.Go(func() {
				for range 6 {
					if !s.someAnswer(t, e, r) {
						return
					}
				}
			})
		}
		wg.Wait()
		e.Close()
	}
}

// someAnswer runs the tokens in random pieces over random cuts. It reports
// failures by returning false: it does not run on the test's goroutine.
func (s *subject) someAnswer(t *testing.T, e Engine, r *rand.Rand) bool {
	cuts := []int{0}
	for b := 1; b < s.layers; b++ {
		if r.IntN(3) == 0 {
			cuts = append(cuts, b)
		}
	}
	cuts = append(cuts, s.layers)
	var sessions []Session
	defer func() {
		for _, x := range sessions {
			x.Close()
		}
	}()
	for i := 1; i < len(cuts); i++ {
		x, err := e.Open(context.Background(), SessionOptions{Model: "m", Layers: Range{cuts[i-1], cuts[i] - 1}, Cells: 1 + r.IntN(len(s.tokens))})
		if err != nil {
			t.Error(err)
			return false
		}
		sessions = append(sessions, x)
	}
	for at := 0; at < len(s.tokens); {
		n := 1
		if r.IntN(3) == 0 {
			n = min(1+r.IntN(30), len(s.tokens)-at)
		}
		var hidden []float32
		for i, x := range sessions {
			if err := x.Grow(context.Background(), at+n); err != nil {
				t.Error(err)
				return false
			}
			in := Input{Position: at, Hidden: hidden, Want: WantAll}
			if i == 0 {
				in.Tokens = s.tokens[at : at+n]
			}
			out, err := x.Step(context.Background(), in)
			if err != nil {
				t.Error(err)
				return false
			}
			hidden = out.Hidden
			if out.Logits != nil {
				for j := range n {
					w := len(s.want[0])
					if !equalBits(out.Logits[j*w:(j+1)*w], s.want[at+j]) {
						t.Errorf("%s, cut at %v: position %d differs (rows %d, batch %d)", s.name, cuts, at+j, n, out.Batch)
						return false
					}
				}
			}
		}
		at += n
	}
	return true
}

// TestBatchOfEight computes eight sessions' tokens in passes of eight rows.
func TestBatchOfEight(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{})
		load(t, e, "m", s.path, 0, s.layers-1)
		var sessions []Session
		for range 8 {
			sessions = append(sessions, open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens)))
		}
		for i := range s.tokens {
			outs := together(t, e, sessions, Input{Position: i, Tokens: s.tokens[i : i+1], Want: WantLast})
			for _, out := range outs {
				s.check(t, "batch of eight", i, out.Logits)
				if out.Batch != 8 {
					t.Fatalf("batch of %d rows; nothing was proved", out.Batch)
				}
			}
		}
		e.Close()
	}
}

// together makes a step on every session, all of which are queued before the
// next pass begins.
func together(t *testing.T, e Engine, sessions []Session, in Input) []Output {
	t.Helper()
	outs := make([]Output, len(sessions))
	errs := make([]error, len(sessions))
	c := e.(*core)
	var wg sync.WaitGroup
	err := c.do(context.Background(), func() error {
		for i, x := range sessions {
			wg.Go(func() { outs[i], errs[i] = x.Step(context.Background(), in) })
		}
		for queued := 0; queued < len(sessions); runtime.Gosched() {
			queued = c.Stats().Waiting
		}
		return nil
	})
	wg.Wait()
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Fatal(err)
	}
	return outs
}

// TestMovedCells: a session whose cells are moved, over a distance shorter than
// they are long, goes on exactly.
func TestMovedCells(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{Cells: 160, RescueShare: -1})
		load(t, e, "m", s.path, 0, s.layers-1)
		first := open(t, e, "m", Range{0, s.layers - 1}, 20)
		x := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
		feed(t, x, s.tokens[:50], nil, WantNone)
		first.Close()
		other := open(t, e, "m", Range{0, s.layers - 1}, 80) // fits only after moving
		feed(t, other, s.tokens[:50], nil, WantNone)
		s.check(t, "moved", 50, feed(t, x, s.tokens[50:], nil, WantAll))
		s.check(t, "opened after moving", 50, feed(t, other, s.tokens[50:], nil, WantAll))
		e.Close()
	}
}
