package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestSequencesDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := imitated(t, Options{Cells: 600, MaxBatch: 32}, &imitation{perRow: time.Millisecond})
		var wg sync.WaitGroup
		for worker := range 6 {
			r := rand.New(rand.NewPCG(5, uint64(worker)))
			wg.Go(func() {
				for range 10 {
					randomSequence(t, c, r)
				}
			})
		}
		wg.Wait()
		if n := c.Fragments()[0].CellsFree; n != 600 {
			t.Errorf("%d cells free at the end, want all 600", n)
		}
	})
}

// randomSequence runs tokens in random pieces, with truncations, and compares
// every value.
func randomSequence(t *testing.T, c *core, r *rand.Rand) {
	tokens := make([]int32, 1+r.IntN(80))
	for i := range tokens {
		tokens[i] = int32(r.IntN(300))
	}
	want := imitate(tokens, tinyLayers)
	s := mustOpen(t, c, Range{0, tinyLayers - 1}, len(tokens))
	defer s.Close()
	for at := 0; at < len(tokens); {
		n := 1 + r.IntN(len(tokens)-at)
		out, err := s.Step(t.Context(), Input{Position: at, Tokens: tokens[at : at+n], Want: WantAll})
		if err != nil {
			t.Error(err)
			return
		}
		vocab := len(out.Logits) / n
		for i := range n {
			if out.Logits[i*vocab] != want[at+i] {
				t.Errorf("position %d: %v, want %v", at+i, out.Logits[i*vocab], want[at+i])
				return
			}
		}
		at += n
		if r.IntN(4) == 0 {
			at = r.IntN(at)
			if err := s.Truncate(at); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestLongPromptDoesNotStallStreams: a stream's tokens come at a bounded pace
// while a prompt of thousands of rows is computed beside it.
func TestLongPromptDoesNotStallStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: 10 * time.Millisecond, perRow: 5 * time.Millisecond}
		c := imitated(t, Options{Cells: 8000, ContextTokens: 8000}, k)
		stream := mustOpen(t, c, Range{0, tinyLayers - 1}, 2000)
		reader := mustOpen(t, c, Range{0, tinyLayers - 1}, 3000)
		prompt := make(chan time.Duration, 1)
		begin := time.Now()
		pace(t, stream, 20) // the engine has seen how fast it is
		go func() {
			if _, err := reader.Step(t.Context(), Input{Tokens: make([]int32, 3000), Want: WantLast}); err != nil {
				t.Error(err)
			}
			prompt <- time.Since(begin)
		}()
		synctest.Wait()
		if worst := pace(t, stream, 200); worst > 200*time.Millisecond {
			t.Errorf("a token took %v beside a long prompt", worst)
		}
		took := <-prompt
		if alone := 3000 * k.perRow; took > 2*alone {
			t.Errorf("the prompt took %v, alone it would take about %v", took, alone)
		}
	})
}

// pace makes n steps of one token and returns how long the slowest took.
func pace(t *testing.T, s *session, n int) (worst time.Duration) {
	for range n {
		begin := time.Now()
		if _, err := s.Step(t.Context(), Input{Position: s.Held(), Tokens: []int32{1}, Want: WantLast}); err != nil {
			t.Fatal(err)
		}
		worst = max(worst, time.Since(begin))
	}
	return worst
}

// TestRangesTakeTurns: two ranges that both have work all the time get the
// same number of passes.
func TestRangesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: time.Millisecond}
		c := imitated(t, Options{Cells: 4000, ContextTokens: 4000, MaxBatch: 8}, k)
		var wg sync.WaitGroup
		for _, r := range []Range{{0, 1}, {0, 2}} {
			s := mustOpen(t, c, r, 1600)
			wg.Go(func() {
				if _, err := s.Step(t.Context(), Input{Tokens: make([]int32, 1600)}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		run, longest := 0, 0
		passes := k.passes[2*tinyLayers:] // after warming up and measuring
		for i := 1; i < len(passes)-2; i++ {
			if run++; passes[i].layers != passes[i-1].layers {
				run = 0
			}
			longest = max(longest, run)
		}
		if longest > 1 {
			t.Errorf("one range got %d passes in a row", longest+1)
		}
	})
}

// TestStreamsGather: streams whose next tokens come a little after each other
// are computed together.
func TestStreamsGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: 20 * time.Millisecond, perRow: time.Millisecond}
		c := imitated(t, Options{Cells: 4000}, k)
		var wg sync.WaitGroup
		for i := range 8 {
			s := mustOpen(t, c, Range{0, tinyLayers - 1}, 100)
			wg.Go(func() {
				for range 50 {
					if _, err := s.Step(t.Context(), Input{Position: s.Held(), Tokens: []int32{1}, Want: WantLast}); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(i) * 200 * time.Microsecond)
				}
			})
		}
		wg.Wait()
		if n := len(k.passes); n > 2*tinyLayers+70 {
			t.Errorf("%d passes for 50 tokens of 8 streams", n)
		}
	})
}

func TestStepRefusals(t *testing.T) {
	c := imitated(t, Options{Cells: 100}, &imitation{})
	first := mustOpen(t, c, Range{0, 1}, 10)
	second := mustOpen(t, c, Range{2, 3}, 10)
	width := c.Fragments()[0].Width
	for _, x := range []struct {
		name string
		s    *session
		in   Input
		want error
	}{
		{"no tokens", first, Input{}, ErrInput},
		{"hidden states for layer 0", first, Input{Hidden: make([]float32, width)}, ErrInput},
		{"a token beyond the vocabulary", first, Input{Tokens: []int32{320}}, ErrInput},
		{"a negative token", first, Input{Tokens: []int32{-1}}, ErrInput},
		{"a gap", first, Input{Position: 1, Tokens: []int32{1}}, ErrPosition},
		{"more than reserved", first, Input{Tokens: make([]int32, 11)}, ErrNoCells},
		{"tokens for a later range", second, Input{Tokens: []int32{1}}, ErrInput},
		{"part of a row", second, Input{Hidden: make([]float32, width+1)}, ErrInput},
	} {
		_, err := x.s.Step(t.Context(), x.in)
		wantError(t, x.name, err, x.want)
	}
	if _, err := first.Step(t.Context(), Input{Tokens: make([]int32, 10)}); err != nil {
		t.Errorf("a good step after bad ones: %v", err)
	}
}

func TestOpenRefusals(t *testing.T) {
	c := imitated(t, Options{Cells: 80, ContextTokens: 60}, &imitation{})
	for _, x := range []struct {
		name string
		o    SessionOptions
		want error
	}{
		{"unknown model", SessionOptions{Model: "x", Layers: Range{0, 1}, Cells: 5}, ErrLayerNotHeld},
		{"layer beyond the model", SessionOptions{Model: "m", Layers: Range{0, 4}, Cells: 5}, ErrLayerNotHeld},
		{"empty range", SessionOptions{Model: "m", Layers: Range{2, 1}, Cells: 5}, ErrLayerNotHeld},
		{"negative layer", SessionOptions{Model: "m", Layers: Range{-1, 1}, Cells: 5}, ErrLayerNotHeld},
		{"no cells", SessionOptions{Model: "m", Layers: Range{0, 1}}, ErrInput},
		{"longer than the context", SessionOptions{Model: "m", Layers: Range{0, 1}, Cells: 61}, ErrNoCells},
	} {
		_, err := c.Open(t.Context(), x.o)
		wantError(t, x.name, err, x.want)
	}
	mustOpen(t, c, Range{0, 1}, 50)
	_, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{1, 2}, Cells: 25})
	var short *CellsError
	if !errors.As(err, &short) || short.Need != 25 || short.Free != 20 || short.Layer != 1 {
		t.Errorf("the second session: %+v, want 20 of 25 free on layer 1", err)
	}
	if f := c.Fragments()[0]; f.CellsFree != 30 {
		t.Errorf("%d cells free after a refusal, want 30", f.CellsFree)
	}
	mustOpen(t, c, Range{2, 3}, 60) // other layers have their own cells
	if _, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{0, 1}, Cells: 30, Rescue: true}); err != nil {
		t.Errorf("a rescue may use the reserve: %v", err)
	}
}

func TestCancelWhileQueuedAndWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := imitated(t, Options{Cells: 400, MaxBatch: 8}, &imitation{perPass: 100 * time.Millisecond})
		a, b := mustOpen(t, c, Range{0, 3}, 100), mustOpen(t, c, Range{0, 2}, 100)
		ctxA, cancelA := context.WithCancel(t.Context())
		ctxB, cancelB := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var errA, errB error
		wg.Go(func() { _, errA = a.Step(ctxA, Input{Tokens: make([]int32, 20)}) })
		synctest.Wait()
		wg.Go(func() { _, errB = b.Step(ctxB, Input{Tokens: make([]int32, 20)}) })
		synctest.Wait()
		begin := time.Now()
		cancelB() // waits behind a's first pass
		synctest.Wait()
		if took := time.Since(begin); took != 0 {
			t.Errorf("a queued step needed %v to end", took)
		}
		cancelA() // in its first pass
		wg.Wait()
		wantError(t, "cancelled while running", errA, context.Canceled)
		wantError(t, "cancelled while queued", errB, context.Canceled)
		if a.Held() != 8 || b.Held() != 0 {
			t.Errorf("held %d and %d, want the computed chunk of 8, and 0", a.Held(), b.Held())
		}
		if _, err := a.Step(t.Context(), Input{Position: 8, Tokens: []int32{1}}); err != nil {
			t.Errorf("a step after a cancelled one: %v", err)
		}
	})
}

func TestCloseEndsWaitingSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := imitated(t, Options{Cells: 400}, &imitation{perPass: 100 * time.Millisecond})
		a, b := mustOpen(t, c, Range{0, 3}, 50), mustOpen(t, c, Range{0, 3}, 50)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, s := range []*session{a, b} {
			wg.Go(func() { _, errs[i] = s.Step(t.Context(), Input{Tokens: []int32{1}}) })
			synctest.Wait()
		}
		a.Close() // running
		b.Close() // queued
		b.Close()
		wg.Wait()
		for _, err := range errs {
			wantError(t, "closed under a step", err, ErrClosed)
		}
		if n := c.Fragments()[0].CellsFree; n != 400 {
			t.Errorf("%d cells free, want 400", n)
		}
		_, err := a.Step(t.Context(), Input{Tokens: []int32{1}})
		wantError(t, "step after close", err, ErrClosed)
	})
}

func TestEngineCloseEndsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: 100 * time.Millisecond}
		c := imitated(t, Options{Cells: 400}, k)
		var wg sync.WaitGroup
		for range 3 {
			s := mustOpen(t, c, Range{0, 3}, 50)
			wg.Go(func() {
				for i := 0; ; i++ {
					if _, err := s.Step(t.Context(), Input{Position: i, Tokens: []int32{1}}); err != nil {
						wantError(t, "step", err, ErrClosed)
						return
					}
				}
			})
		}
		time.Sleep(350 * time.Millisecond)
		c.Close()
		c.Close()
		wg.Wait()
		if k.loaded != 0 {
			t.Errorf("%d pieces still loaded", k.loaded)
		}
		_, err := c.Open(t.Context(), SessionOptions{Model: "m", Layers: Range{0, 1}, Cells: 5})
		wantError(t, "open", err, ErrClosed)
		wantError(t, "load", c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{0, 1}}, nil), ErrClosed)
	})
}

func TestNotFiniteEndsOneSession(t *testing.T) {
	k := &imitation{}
	c := imitated(t, Options{Cells: 400}, k)
	good, bad := mustOpen(t, c, Range{1, 2}, 50), mustOpen(t, c, Range{1, 2}, 50)
	width := c.Fragments()[0].Width
	row := make([]float32, width)
	row[0] = nan()
	_, err := bad.Step(t.Context(), Input{Hidden: row, Want: WantLast})
	wantError(t, "NaN", err, ErrNotFinite)
	_, err = bad.Step(t.Context(), Input{Hidden: make([]float32, width), Want: WantLast})
	wantError(t, "after NaN", err, ErrNotFinite)
	if _, err := good.Step(t.Context(), Input{Hidden: make([]float32, width), Want: WantLast}); err != nil {
		t.Errorf("another session: %v", err)
	}
	if err := bad.Close(); err != nil {
		t.Error(err)
	}
}

func TestPanicOfTheKernelsEndsTheStepOnly(t *testing.T) {
	k := &imitation{}
	c := imitated(t, Options{Cells: 400}, k)
	s := mustOpen(t, c, Range{0, 3}, 50)
	panicking := true
	k.before = func(*pass) {
		if panicking {
			panic("no memory")
		}
	}
	_, err := s.Step(t.Context(), Input{Tokens: []int32{1}})
	wantError(t, "panic", err, ErrKernel)
	panicking = false
	if _, err := s.Step(t.Context(), Input{Tokens: []int32{1}}); err != nil || s.Held() != 1 {
		t.Errorf("afterwards: %v, held %d", err, s.Held())
	}
}

func TestStats(t *testing.T) {
	c := imitated(t, Options{Cells: 400}, &imitation{})
	s := mustOpen(t, c, Range{0, 3}, 50)
	before := c.Stats()
	if _, err := s.Step(t.Context(), Input{Tokens: make([]int32, 7), Want: WantLast}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Step(t.Context(), Input{Position: 7, Tokens: []int32{1}, Want: WantLast}); err != nil {
		t.Fatal(err)
	}
	after := c.Stats()
	if after.Rows-before.Rows != 8 || after.Steps-before.Steps != 2 || after.Sessions != 1 {
		t.Errorf("rows %d, steps %d, sessions %d; want 8, 2, 1", after.Rows-before.Rows, after.Steps-before.Steps, after.Sessions)
	}
	if len(after.Ranges) != 1 || after.Ranges[0].Layers != (Range{0, 3}) || after.Ranges[0].Rows != 8 {
		t.Errorf("ranges %+v", after.Ranges)
	}
}
