//go:build !noengine && cgo

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"hecate/internal/demomodel"
	"hecate/internal/engine/arch"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// TestLayersMoveUnderARunningSession loads and unloads other layers, from
// other files, while a session runs; its results do not change.
func TestLayersMoveUnderARunningSession(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{})
		load(t, e, "m", s.path, 0, s.layers-1)
		x := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
		done := make(chan struct{})
		go func() {
			defer close(done)
			for round := range 4 {
				name := fmt.Sprint("other", round)
				if err := e.LoadLayers(context.Background(), LoadRequest{Model: name, Path: s.path, Layers: Range{1, 2}}, nil); err != nil {
					t.Error(err)
				}
				if err := e.UnloadLayers(context.Background(), name, Range{1, 2}); err != nil {
					t.Error(err)
				}
			}
		}()
		for i := range s.tokens {
			s.check(t, "layers move", i, feed(t, x, s.tokens[i:i+1], nil, WantLast))
		}
		<-done
		e.Close()
	}
}

// TestShards loads a model from shard files, one per two layers, under one
// name; a tied head becomes a tensor of its own on the way.
func TestShards(t *testing.T) {
	for _, s := range subjects(t) {
		data, err := os.Open(s.path)
		if err != nil {
			t.Fatal(err)
		}
		defer data.Close()
		f, err := gguf.Open(s.path)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := arch.Describe(f)
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, Options{})
		for first := 0; first < s.layers; first += 2 {
			last := min(first+1, s.layers-1)
			var shard bytes.Buffer
			if err := gguf.WriteShard(&shard, f, data, first, last, spec.Explicit...); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), fmt.Sprint(first, ".gguf"))
			if err := os.WriteFile(path, shard.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			load(t, e, "m", path, first, last)
		}
		c := openChain(t, e, "m", []int{0, 1, s.layers}, len(s.tokens))
		s.check(t, "from shards", 0, c.feed(t, s.tokens))
		e.Close()
	}
}

// TestFloatWeights: F16 and F32 weights work, but neighbours in a batch may
// change the last bits.
func TestFloatWeights(t *testing.T) {
	const tolerance = 0.05
	for _, kind := range []gguf.Kind{gguf.F16, gguf.F32, gguf.BF16} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := randmodel.WriteFile(path, randmodel.Tiny(kind, 3)); err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, Options{})
		load(t, e, "m", path, 0, 3)
		tokens := []int32{1, 7, 90, 300, 12, 5}
		x := open(t, e, "m", Range{0, 3}, 10)
		all := feed(t, x, tokens, nil, WantAll)
		if err := x.Truncate(0); err != nil {
			t.Fatal(err)
		}
		for i, token := range tokens {
			one := feed(t, x, []int32{token}, nil, WantLast)
			for j := range one {
				if d := math.Abs(float64(one[j] - all[i*len(one)+j])); d > tolerance {
					t.Fatalf("%s: position %d differs by %v between prompt and decoding", kind, i, d)
				}
			}
		}
		e.Close()
	}
}

// TestKindsAgree: the same random weights in four kinds of storage give nearly
// the same logits, so each kind is unpacked right.
func TestKindsAgree(t *testing.T) {
	logits := map[gguf.Kind][]float32{}
	for _, kind := range []gguf.Kind{gguf.F32, gguf.F16, gguf.Q8_0, gguf.Q4_0} {
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := randmodel.WriteFile(path, randmodel.Tiny(kind, 3)); err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, Options{})
		load(t, e, "m", path, 0, 3)
		logits[kind] = feed(t, open(t, e, "m", Range{0, 3}, 10), []int32{1, 7, 90, 300, 12, 5}, nil, WantLast)
		e.Close()
	}
	for kind, least := range map[gguf.Kind]float64{gguf.F16: 0.99999, gguf.Q8_0: 0.999, gguf.Q4_0: 0.85} {
		if c := cosine(logits[kind], logits[gguf.F32]); c < least {
			t.Errorf("%s: cosine with F32 %v, want at least %v", kind, c, least)
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// TestNotFiniteWeights: a model that yields NaN ends its session, not the
// engine.
func TestNotFiniteWeights(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := randmodel.WriteFile(path, randmodel.Tiny(gguf.Q8_0, 3)); err != nil {
		t.Fatal(err)
	}
	spoil(t, path, "blk.2.ffn_down.weight")
	e := newEngine(t, Options{})
	load(t, e, "m", path, 0, 3)
	s := open(t, e, "m", Range{0, 3}, 10)
	_, err := s.Step(t.Context(), Input{Tokens: []int32{1}, Want: WantLast})
	wantError(t, "NaN weight", err, ErrNotFinite)
	_, err = open(t, e, "m", Range{0, 2}, 10).Step(t.Context(), Input{Tokens: []int32{1}, Want: WantLast})
	wantError(t, "NaN weight, hidden states", err, ErrNotFinite)
	healthy := open(t, e, "m", Range{0, 1}, 10)
	feed(t, healthy, []int32{1}, nil, WantLast)
}

// spoil makes the scale of a Q8_0 tensor's first block NaN.
func spoil(t *testing.T, path, tensor string) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	x, ok := f.Tensor(tensor)
	if !ok {
		t.Fatal("no tensor", tensor)
	}
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.WriteAt([]byte{0, 0x7e}, f.DataOffset+x.Offset); err != nil {
		t.Fatal(err)
	}
}

// TestManySessions: more sessions than fit into one pass's graph.
func TestManySessions(t *testing.T) {
	s := subjects(t)[0]
	e := newEngine(t, Options{Cells: 5000, MaxBatch: 1000})
	load(t, e, "m", s.path, 0, s.layers-1)
	var sessions []Session
	for range 300 {
		sessions = append(sessions, open(t, e, "m", Range{0, s.layers - 1}, 10))
	}
	for i := range 2 {
		for _, out := range together(t, e, sessions, Input{Position: i, Tokens: s.tokens[i : i+1], Want: WantLast}) {
			s.check(t, "many sessions", i, out.Logits)
		}
	}
}

// TestMemoryAgainstResidentSet compares the account with what the system says.
func TestMemoryAgainstResidentSet(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	c := randmodel.Tiny(gguf.Q8_0, 3)
	c.Width, c.Inner, c.Heads, c.Layers, c.Vocab = 512, 2048, 8, 12, 8000
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, Options{Cells: 4096, MaxBatch: 64})
	before := residentSet(t)
	load(t, e, "m", path, 0, 11)
	s := open(t, e, "m", Range{0, 11}, 512)
	feed(t, s, make([]int32, 300), nil, WantLast)
	runtime.GC()
	got, want := residentSet(t)-before, e.Memory().Used()
	t.Logf("account %d, resident set grew by %d: %+.1f%%", want, got, 100*float64(got-want)/float64(want))
	const slack = 12 << 20 // Go's own heap and what malloc keeps
	if got > want+want/20+slack {
		t.Errorf("resident set grew by %d, the account says %d", got, want)
	}
	s.Close()
	if err := e.UnloadLayers(t.Context(), "m", Range{0, 11}); err != nil {
		t.Fatal(err)
	}
	if left := residentSet(t) - before; left > e.Memory().Used()+slack {
		t.Errorf("%d bytes stayed after unloading", left)
	}
}

// residentSet is the anonymous memory of this process, in bytes.
func residentSet(t *testing.T) int64 {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		var kb int64
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			return kb << 10
		}
	}
	t.Fatal("no RssAnon")
	return 0
}

func TestClassNamesTheKernelsOfGoMod(t *testing.T) {
	raw, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(raw), "github.com/ollama/ollama "+kernelVersion) {
		t.Errorf("go.mod does not have the kernels in version %s", kernelVersion)
	}
	t.Log(Class())
}

// TestLogsAreQuiet: the kernels' Go code logs to the default logger; the
// lines are dropped, those of others are not, and the logger is put back.
func TestLogsAreQuiet(t *testing.T) {
	if os.Getenv("HECATE_QUIET_TEST") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestLogsAreQuiet$", "-test.v")
		cmd.Env = append(os.Environ(), "HECATE_QUIET_TEST=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "level=INFO") || strings.Contains(line, " INFO ") {
				t.Errorf("logged: %s", line)
			}
		}
		return
	}
	before := slog.Default()
	newDemo(t, Options{}, 0, 11)
	if slog.Default() != before || log.Writer() != os.Stderr {
		t.Error("the default logger was not put back")
	}
	var b bytes.Buffer
	slog.New(QuietHandler(slog.NewTextHandler(&b, nil))).Info("ours")
	if !strings.Contains(b.String(), "ours") {
		t.Error("a line of ours was dropped")
	}
}

// TestScratchFilesAreGone: loading leaves nothing behind.
func TestScratchFilesAreGone(t *testing.T) {
	dir := t.TempDir()
	e, err := New(Options{ScratchDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	path := filepath.Join(t.TempDir(), "demo.gguf")
	if err := os.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		t.Fatal(err)
	}
	load(t, e, "demo", path, 3, 5)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestScratchFolderMustExist(t *testing.T) {
	_, err := New(Options{ScratchDir: filepath.Join(t.TempDir(), "none")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestStepsOfOneSessionAreRefusedAtOnce: the contract says one at a time.
func TestStepsOfOneSessionAreRefusedAtOnce(t *testing.T) {
	e := newDemo(t, Options{}, 0, 11)
	s := open(t, e, "demo", Range{0, 11}, 500)
	c := e.(*core)
	var wg sync.WaitGroup
	err := c.do(t.Context(), func() error {
		wg.Go(func() {
			if _, err := s.Step(t.Context(), Input{Tokens: []int32{1}}); err != nil {
				t.Error(err)
			}
		})
		for c.Stats().Waiting == 0 {
			runtime.Gosched()
		}
		_, err := s.Step(t.Context(), Input{Tokens: []int32{1}})
		wantError(t, "second step", err, ErrInput)
		return nil
	})
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
}
