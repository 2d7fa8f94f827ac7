//go:build linux && amd64 && !noengine && cgo

package engine

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"hecate/internal/engine/avx2"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// logitsOf loads a model anew and gives the logits of every position, with
// prompts in chunks of so many rows.
func logitsOf(t *testing.T, path string, layers int, tokens []int32, chunk int) []float32 {
	t.Helper()
	e := newEngine(t, Options{})
	defer e.Close()
	load(t, e, "m", path, 0, layers-1)
	s := open(t, e, "m", Range{0, layers - 1}, len(tokens))
	var out []float32
	for at := 0; at < len(tokens); at += chunk {
		out = append(out, feed(t, s, tokens[at:min(at+chunk, len(tokens))], nil, WantAll)...)
	}
	return out
}

func someTokens(n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(5, 6))
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(r.IntN(vocab))
	}
	return out
}

// TestOwnProducts: they take the place of the kernels' when the program is
// linked, which could fail silently; they give what the kernels give, but for
// the order of sums (which may now and then round an activation the other way),
// and the same to the last bit for all processors and numbers of rows. The
// model's vocabulary leaves rows that fill no group.
func TestOwnProducts(t *testing.T) {
	if !FastKernels {
		t.Skip("only with AVX2")
	}
	best := avx2.Kernel()
	defer avx2.Choose(best)
	for _, kind := range []gguf.Kind{gguf.Q8_0, gguf.Q4_0} {
		c := randmodel.Tiny(kind, 7)
		c.Vocab += 5
		path := filepath.Join(t.TempDir(), "m.gguf")
		if err := randmodel.WriteFile(path, c); err != nil {
			t.Fatal(err)
		}
		tokens := someTokens(43, c.Vocab)
		ownProducts = false
		theirs := logitsOf(t, path, c.Layers, tokens, 8)
		ownProducts = true
		before := avx2.ProductCalls()
		ours := logitsOf(t, path, c.Layers, tokens, 1)
		if got, least := avx2.ProductCalls()-before, int64(43*(7*c.Layers+1)); got < least {
			t.Errorf("%s: %d products, want %d at least", kind, got, least)
		}
		if d, most := farthest(ours, theirs), farthest(theirs, make([]float32, len(theirs))); d > 0.05*most {
			t.Errorf("%s: logits of up to %g differ from the kernels' own by %g", kind, most, d)
		}
		for _, kernel := range []string{"avx2", "avxvnni", "avx512vnni"} {
			if !avx2.Choose(kernel) {
				continue
			}
			for _, chunk := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 43} {
				if got := logitsOf(t, path, c.Layers, tokens, chunk); farthest(got, ours) != 0 {
					t.Errorf("%s, %s: chunks of %d differ from single rows by %g", kind, kernel, chunk, farthest(got, ours))
				}
			}
		}
	}
}

// farthest is the largest difference; infinite if one is no number.
func farthest(a, b []float32) float64 {
	most := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		if math.IsNaN(d) {
			return math.Inf(1)
		}
		most = max(most, d)
	}
	return most
}
