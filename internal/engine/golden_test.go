//go:build !noengine && cgo

package engine

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"hecate/internal/demomodel"
)

// goldenFile was made with llama.cpp; see its own notes.
const goldenFile = "../demomodel/golden.json"

type golden struct {
	Cases []struct {
		Name      string  `json:"name"`
		PromptIDs []int32 `json:"prompt_ids"`
		Runs      map[string]struct {
			Top5 [][2]float64 `json:"top5"`
			IDs  []int32      `json:"ids"`
			Gaps []float64    `json:"gaps"`
		} `json:"runs"`
	} `json:"cases"`
}

// TestAgainstLlamaCpp compares greedy continuations and the first top logits
// with llama.cpp's. Its kernels round differently: another token is right only
// where its two best logits are close.
func TestAgainstLlamaCpp(t *testing.T) {
	const tolerance = 0.2
	raw, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	e := newDemo(t, Options{}, 0, 11)
	same, worst := 0, 0.0
	for _, c := range g.Cases {
		run := c.Runs["demo-q8_0.gguf"]
		s := open(t, e, "demo", Range{0, 11}, 512)
		logits := feed(t, s, c.PromptIDs, nil, WantLast)
		for _, top := range run.Top5 {
			d := math.Abs(float64(logits[int(top[0])]) - top[1])
			worst = max(worst, d)
			if d > tolerance {
				t.Errorf("%s: logit of token %v is %v, llama.cpp's is %v", c.Name, top[0], logits[int(top[0])], top[1])
			}
		}
		equal := true
		for i, want := range run.IDs {
			got := argmax(logits)
			if got != want {
				equal = false
				if run.Gaps[i] > tolerance {
					t.Errorf("%s: token %d is %d, llama.cpp's is %d with a lead of %v", c.Name, i, got, want, run.Gaps[i])
				}
				break
			}
			if i+1 < len(run.IDs) {
				logits = feed(t, s, []int32{want}, nil, WantLast)
			}
		}
		if equal {
			same++
		}
		s.Close()
	}
	t.Logf("%d of %d continuations equal, largest difference of a top logit %.4f", same, len(g.Cases), worst)
}

func newDemo(t testing.TB, o Options, first, last int) Engine {
	t.Helper()
	path := filepath.Join(t.TempDir(), "demo.gguf")
	if err := os.WriteFile(path, demomodel.GGUF(), 0o600); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, o)
	load(t, e, "demo", path, first, last)
	return e
}

func newEngine(t testing.TB, o Options) Engine {
	t.Helper()
	o.ScratchDir = t.TempDir()
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

func load(t testing.TB, e Engine, model, path string, first, last int) {
	t.Helper()
	if err := e.LoadLayers(context.Background(), LoadRequest{Model: model, Path: path, Layers: Range{first, last}}, nil); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, e Engine, model string, r Range, cells int) Session {
	t.Helper()
	s, err := e.Open(context.Background(), SessionOptions{Model: model, Layers: r, Cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// feed runs tokens or hidden states at the session's end and returns logits or
// hidden states.
func feed(t testing.TB, s Session, tokens []int32, hidden []float32, want Want) []float32 {
	t.Helper()
	out, err := s.Step(context.Background(), Input{Position: s.Held(), Tokens: tokens, Hidden: hidden, Want: want})
	if err != nil {
		t.Fatal(err)
	}
	if out.Logits != nil {
		return out.Logits
	}
	return out.Hidden
}

func argmax(v []float32) int32 {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return int32(best)
}
