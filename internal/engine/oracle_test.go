//go:build !noengine && cgo

package engine

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// oracleDir is where to write the models for testdata/oracle.mjs, which makes
// testdata/oracle.json anew with llama.cpp.
var oracleDir = flag.String("oracle", "", "write the oracle's models to this folder and stop")

// oracleModels are random models of every architecture and kind; their names
// say which.
func oracleModels() map[string]randmodel.Config {
	models := map[string]randmodel.Config{}
	add := func(c randmodel.Config, note string) {
		models[strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Arch, c.Kind, note))] = c
	}
	for _, architecture := range []string{"llama", "qwen2", "qwen3", "gemma3", "mistral3"} {
		for _, kind := range []gguf.Kind{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K} {
			c := randmodel.Tiny(kind, 3)
			c.Arch = architecture
			add(c, "")
		}
		c := randmodel.Tiny(gguf.Q8_0, 5)
		c.Arch, c.Tied, c.RopeBase = architecture, true, 500000
		switch architecture {
		case "llama":
			c.RopeFactors = true
			add(c, "tied, with frequency factors")
		case "qwen3":
			c.HeadDim = 32
			add(c, "tied, long heads")
		case "gemma3":
			c.Kind, c.Layers, c.Window = gguf.F32, 7, 16 // a tighter tolerance
			add(c, "tied, sliding window")
		case "mistral3":
			c.Kind, c.YaRN = gguf.F32, true
			add(c, "tied, stretched")
		default:
			add(c, "tied")
		}
	}
	return models
}

func oracleTokens() []int32 {
	tokens := []int32{1}
	for i := range 60 {
		tokens = append(tokens, int32(3+i*37%300))
	}
	return tokens
}

// TestAgainstOracle compares the probabilities of the next token with
// llama.cpp's.
func TestAgainstOracle(t *testing.T) {
	if *oracleDir != "" {
		writeOracleModels(t, *oracleDir)
		return
	}
	raw, err := os.ReadFile("testdata/oracle.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string][][2]float64 // token and natural logarithm of its probability
	if err := json.Unmarshal(raw, &golden); err != nil {
		t.Fatal(err)
	}
	for name, c := range oracleModels() {
		tolerance := 0.15 // activations are rounded to the weights' kind
		if c.Kind == gguf.F32 || c.Kind == gguf.F16 {
			tolerance = 0.02
		}
		if len(golden[name]) == 0 {
			t.Errorf("%s: not in the golden file", name)
			continue
		}
		got := logProbabilities(oracleLogits(t, c))
		for _, want := range golden[name] {
			if d := math.Abs(got[int(want[0])] - want[1]); d > tolerance {
				t.Errorf("%s: log probability of token %v is %.4f, llama.cpp's is %.4f", name, want[0], got[int(want[0])], want[1])
			}
		}
	}
}

func oracleLogits(t *testing.T, c randmodel.Config) []float32 {
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := randmodel.WriteFile(path, c); err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, Options{})
	defer e.Close()
	load(t, e, "m", path, 0, c.Layers-1)
	return feed(t, open(t, e, "m", Range{0, c.Layers - 1}, 100), oracleTokens(), nil, WantLast)
}

func logProbabilities(logits []float32) []float64 {
	most := float64(logits[argmax(logits)])
	var sum float64
	for _, x := range logits {
		sum += math.Exp(float64(x) - most)
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i] = float64(x) - most - math.Log(sum)
	}
	return out
}

func writeOracleModels(t *testing.T, dir string) {
	list := map[string]string{}
	for name, c := range oracleModels() {
		file := strings.NewReplacer(" ", "-", ",", "").Replace(name) + ".gguf"
		if err := randmodel.WriteFile(filepath.Join(dir, file), c); err != nil {
			t.Fatal(err)
		}
		list[name] = file
	}
	raw, err := json.Marshal(map[string]any{"models": list, "tokens": oracleTokens()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "list.json"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
}
