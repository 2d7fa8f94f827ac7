//go:build !noengine && cgo

package engine

import (
	"context"
	"fmt"
	"math"
	"testing"
)

// Hidden states of the last layer are the same however the model is cut and the
// tokens are chunked, beside streams that want logits, and have the scale that
// the last norm gives them.
func TestStatesOfTheLastLayer(t *testing.T) {
	for _, s := range subjects(t) {
		e := newEngine(t, Options{})
		load(t, e, "m", s.path, 0, s.layers-1)
		states := func(cut, chunk int) (out []float32) {
			first := Range{0, s.layers - 1}
			if cut > 0 {
				first.Last = cut - 1
			}
			var ss []Session
			for _, r := range []Range{first, {cut, s.layers - 1}} {
				if len(ss) == 1 && cut == 0 {
					break
				}
				x, err := e.Open(context.Background(), SessionOptions{Model: "m", Layers: r, Cells: len(s.tokens), States: true})
				if err != nil {
					t.Fatal(err)
				}
				defer x.Close()
				ss = append(ss, x)
			}
			for at := 0; at < len(s.tokens); at += chunk {
				in := Input{Position: at, Tokens: s.tokens[at:min(at+chunk, len(s.tokens))], Want: WantAll}
				for _, x := range ss {
					o, err := x.Step(context.Background(), in)
					if err != nil {
						t.Fatal(err)
					}
					if o.Logits != nil {
						t.Fatalf("%s: logits, where states were wanted", s.name)
					}
					in.Tokens, in.Hidden = nil, o.Hidden
				}
				out = append(out, in.Hidden...)
			}
			return out
		}
		logits := open(t, e, "m", Range{0, s.layers - 1}, len(s.tokens))
		want := states(0, len(s.tokens))
		for cut := range s.layers {
			for _, chunk := range []int{1, 7, 30} {
				got := states(cut, chunk)
				for i := range want {
					if len(got) != len(want) || math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%s, cut at %d, chunks of %d: value %d differs", s.name, cut, chunk, i)
					}
				}
			}
			s.check(t, fmt.Sprint("logits beside states, cut ", cut), cut, feed(t, logits, s.tokens[cut:cut+1], nil, WantLast))
		}
		width := len(want) / len(s.tokens)
		for row := range s.tokens {
			sum := 0.0
			for _, x := range want[row*width : (row+1)*width] {
				sum += float64(x) * float64(x)
			}
			if rms := math.Sqrt(sum / float64(width)); rms < 0.2 || rms > 20 {
				t.Errorf("%s: row %d has the root mean square %g", s.name, row, rms)
			}
		}
		logits.Close()
		e.Close()
	}
}
