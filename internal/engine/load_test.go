package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/engine/arch"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

func TestLayersComeAndGoOneByOne(t *testing.T) {
	k := &imitation{}
	c := newCore(Options{Cells: 100}, k)
	defer c.Close()
	loadTiny(t, c, "m", 0, 0)
	loadTiny(t, c, "m", 2, 3)
	ranges := func() (out []Range) {
		for _, f := range c.Fragments() {
			out = append(out, f.Layers)
		}
		return out
	}
	if got, want := ranges(), []Range{{0, 0}, {2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("fragments %v, want %v", got, want)
	}
	s := mustOpen(t, c, Range{2, 2}, 10)
	loadTiny(t, c, "m", 0, 3) // loads layer 1 only
	if k.loaded != 4+2 {
		t.Errorf("%d pieces loaded, want 4 layers, embedding and head", k.loaded)
	}
	if got, want := ranges(), []Range{{0, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("fragments %v, want %v", got, want)
	}
	wantError(t, "unload under a session", c.UnloadLayers(t.Context(), "m", Range{0, 3}), ErrInUse)
	if err := c.UnloadLayers(t.Context(), "m", Range{3, 9}); err != nil {
		t.Errorf("unload another layer: %v", err)
	}
	if k.loaded != 4 {
		t.Errorf("%d pieces loaded, want layers 0 to 2 and the embedding", k.loaded)
	}
	s.Close()
	if err := c.UnloadLayers(t.Context(), "m", Range{0, 3}); err != nil {
		t.Error(err)
	}
	m := c.Memory()
	if k.loaded != 0 || m.Weights != 0 || m.Cache != 0 || len(c.Fragments()) != 0 {
		t.Errorf("after unloading all: %d pieces, memory %+v", k.loaded, m)
	}
}

func TestOverBudgetIsRefusedBeforeLoading(t *testing.T) {
	k := &imitation{}
	free := newCore(Options{Cells: 100, ContextTokens: 100}, &imitation{})
	defer free.Close()
	loadTiny(t, free, "m", 0, 1)
	need := free.Memory().Used()

	c := newCore(Options{Cells: 100, ContextTokens: 100, MemoryBudget: need - 7}, k)
	defer c.Close()
	err := c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{0, 1}}, nil)
	var over *BudgetError
	if !errors.As(err, &over) || over.Missing() != 7 || !errors.Is(err, ErrOverBudget) {
		t.Errorf("%v, want 7 missing bytes", err)
	}
	if k.loaded != 0 || c.Memory().Used() != 0 {
		t.Errorf("a refused load left %d pieces and %+v", k.loaded, c.Memory())
	}
	loadTiny(t, c, "m", 1, 1)
	if c.Memory().Free() < 0 {
		t.Errorf("%+v", c.Memory())
	}
}

func TestFailedLoadGivesItsMemoryBack(t *testing.T) {
	k := &imitation{loadError: errors.New("no memory")}
	c := newCore(Options{Cells: 100}, k)
	defer c.Close()
	err := c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{0, 3}}, nil)
	if err == nil || c.Memory().Weights != 0 || c.Memory().Cache != 0 || k.loaded != 0 || len(c.Fragments()) != 0 {
		t.Errorf("%v: %+v, %d pieces", err, c.Memory(), k.loaded)
	}
}

func TestCancelledLoadKeepsFinishedLayers(t *testing.T) {
	k := &imitation{}
	c := newCore(Options{Cells: 100}, k)
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	err := c.LoadLayers(ctx, LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{0, 3}}, func(p Progress) {
		if p.Layer == 2 {
			cancel()
		}
	})
	wantError(t, "cancelled", err, context.Canceled)
	f := c.Fragments()
	if len(f) != 1 || f[0].Layers != (Range{0, 1}) {
		t.Errorf("fragments %+v, want layers 0 and 1", f)
	}
	if m := c.Memory(); m.Weights != f[0].WeightBytes || m.Cache != f[0].CacheBytes {
		t.Errorf("memory %+v for %+v", m, f[0])
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	c := newCore(Options{Cells: 100}, &imitation{})
	defer c.Close()
	var last Progress
	err := c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{0, 3}}, func(p Progress) {
		if p.Done <= last.Done {
			t.Errorf("went from %+v to %+v", last, p)
		}
		last = p
	})
	if err != nil || last.Done != last.Total || last.Total == 0 {
		t.Errorf("%v, ended at %+v", err, last)
	}
}

func TestFilesOfAnotherModelAreRefused(t *testing.T) {
	c := newCore(Options{Cells: 100}, &imitation{})
	defer c.Close()
	loadTiny(t, c, "m", 0, 1)
	other := randmodel.Tiny(gguf.Q8_0, 1)
	other.Inner = 128
	path := filepath.Join(t.TempDir(), "other.gguf")
	if err := randmodel.WriteFile(path, other); err != nil {
		t.Fatal(err)
	}
	wantError(t, "another width inside", c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: path, Layers: Range{2, 3}}, nil), ErrModelMismatch)
	wantError(t, "other cells", c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{2, 3}, Cells: 50}, nil), ErrModelMismatch)
}

func TestLoadRefusals(t *testing.T) {
	c := newCore(Options{Cells: 100}, &imitation{})
	defer c.Close()
	dir := t.TempDir()
	whole, err := os.ReadFile(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, data []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var format *gguf.FormatError
	for name, path := range map[string]string{
		"not GGUF":  write("a", []byte("This is no model at all.")),
		"truncated": write("b", whole[:len(whole)-100]),
		"empty":     write("c", nil),
		"a folder":  dir,
	} {
		err := c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: path, Layers: Range{0, 1}}, nil)
		if !errors.As(err, &format) || format.File != path {
			t.Errorf("%s: %v", name, err)
		}
	}
	err = c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: tinyFile(t), Layers: Range{2, 4}}, nil)
	if !errors.As(err, &format) {
		t.Errorf("a layer too many: %v", err)
	}
	err = c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: filepath.Join(dir, "none"), Layers: Range{0, 1}}, nil)
	wantError(t, "no file", err, os.ErrNotExist)
}

// TestLoadingTakesTurnsWithPasses: a load of many chunks does not stop a
// stream, and a stream does not stop a load.
func TestLoadingTakesTurnsWithPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &imitation{perPass: time.Millisecond, perFill: time.Millisecond}
		c := newCore(Options{Cells: 1000, ContextTokens: 1000, RescueShare: -1}, k)
		defer c.Close()
		loadTiny(t, c, "m", 0, 1)
		s := mustOpen(t, c, Range{0, 1}, 1000)
		done := make(chan struct{})
		path := tinyFile(t)
		go func() {
			defer close(done)
			if err := c.LoadLayers(t.Context(), LoadRequest{Model: "m", Path: path, Layers: Range{2, 3}}, nil); err != nil {
				t.Error(err)
			}
		}()
		steps := 0
		for loaded := false; !loaded; steps++ {
			pace(t, s, 1)
			select {
			case <-done:
				loaded = true
			default:
			}
			if steps > 500 {
				t.Fatal("the load got no turn")
			}
		}
		if steps < 10 {
			t.Errorf("only %d steps during the load", steps)
		}
	})
}

func TestWorkIsEstimatedFromAbove(t *testing.T) {
	f, err := gguf.Open(tinyFile(t))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := arch.Describe(f)
	if err != nil {
		t.Fatal(err)
	}
	small := workBytes(spec, Options{MaxBatch: 8}.defaults(), 100)
	large := workBytes(spec, Options{MaxBatch: 256}.defaults(), 100)
	if small >= large || small <= 0 {
		t.Errorf("work memory %d for 8 rows, %d for 256", small, large)
	}
	if long := workBytes(spec, Options{}.defaults(), 100_000); long <= large {
		t.Errorf("work memory %d for long sequences, %d for short ones", long, large)
	}
	k := &imitation{workBytes: large + 1000}
	c := newCore(Options{Cells: 100}, k)
	defer c.Close()
	loadTiny(t, c, "m", 0, 1)
	if got := c.Memory().Work; got != large+1000 {
		t.Errorf("work memory %d, but %d was measured", got, large+1000)
	}
}
