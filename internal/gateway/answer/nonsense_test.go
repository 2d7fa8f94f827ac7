package answer

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
)

// forged makes nodes say what a changed opening or result says.
func forged(liars []string, opened func(*stage.Opened), result func(*stage.Result)) func(string, []byte) []byte {
	return func(node string, b []byte) []byte {
		switch {
		case !slices.Contains(liars, node):
		case stage.KindOf(b) == stage.KindOpened && opened != nil:
			o, _ := stage.DecodeOpened(b)
			opened(&o)
			b, _ = o.Encode()
		case result != nil && stage.KindOf(b) != stage.KindOpened:
			r, err := stage.DecodeResult(b)
			if err == nil {
				result(&r)
				b = r.Append(nil)
			}
		}
		return b
	}
}

func hidden(change func(*stage.Result)) func(*stage.Result) {
	return func(r *stage.Result) {
		if r.Kind == stage.KindHidden {
			change(r)
		}
	}
}

func drawn(change func(*stage.Result)) func(*stage.Result) {
	return func(r *stage.Result) {
		if r.Kind == stage.KindToken {
			change(r)
		}
	}
}

// A node that talks nonsense, broken or hostile, neither takes the gateway with it
// nor an answer that another node can compute; and it is not asked again and again.
func TestNonsenseIsRoutedAround(t *testing.T) {
	nan := float32(math.NaN())
	for name, lie := range map[string]func(string, []byte) []byte{
		"rows without width": forged([]string{"b"}, nil, hidden(func(r *stage.Result) { r.Width, r.Hidden = 0, nil })),
		"rows twice as wide": forged([]string{"b"}, nil, hidden(func(r *stage.Result) { r.Width, r.Hidden = 2, append(r.Hidden, r.Hidden...) })),
		"another position":   forged([]string{"b"}, nil, func(r *stage.Result) { r.Position++ }),
		"fewer rows":         forged([]string{"b"}, nil, hidden(func(r *stage.Result) { r.Rows, r.Hidden = r.Rows-1, r.Hidden[1:] })),
		"a short message": func(n string, b []byte) []byte {
			if n == "b" {
				return b[:1]
			}
			return b
		},
		"no message": func(n string, b []byte) []byte {
			if n == "b" {
				return nil
			}
			return b
		},
		"steps of no rows":         forged([]string{"b"}, func(o *stage.Opened) { o.MaxRows = 0 }, nil),
		"steps of less":            forged([]string{"a"}, func(o *stage.Opened) { o.MaxRows = -5 }, nil),
		"less than nothing":        forged([]string{"a"}, func(o *stage.Opened) { o.Held = -7 }, nil),
		"no width":                 forged([]string{"b"}, func(o *stage.Opened) { o.Width = -1 }, nil),
		"another width":            forged([]string{"b"}, func(o *stage.Opened) { o.Width = 2 }, nil),
		"a token below zero":       forged([]string{"c"}, nil, drawn(func(r *stage.Result) { r.Token.ID = -1 })),
		"rows that are no numbers": forged([]string{"b"}, nil, hidden(func(r *stage.Result) { r.Hidden[0] = nan })),
		"no number":                forged([]string{"c"}, nil, drawn(func(r *stage.Result) { r.Token.Logprob = nan })),
		"no number beside it":      forged([]string{"c"}, nil, drawn(func(r *stage.Result) { r.Token.Top = []stage.Alternative{{ID: 1, Logprob: nan}} })),
		"an impossible chance":     forged([]string{"c"}, nil, drawn(func(r *stage.Result) { r.Token.Logprob = float32(math.Inf(-1)) })),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, j := threeStages(), job(100, 8)
				j.Width = 1
				f.forge = lie
				began := time.Now()
				got, a, err := generate(t, f.runner(Limits{}), j, nil)
				if err != nil || !slices.Equal(got, whole(t, j)) {
					t.Fatalf("%v, got %v", err, got)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("%s passed", took)
				}
				if a.Rescues() != 1 {
					t.Errorf("%d rescues", a.Rescues())
				}
				synctest.Wait()
				for name, n := range f.nodes {
					if len(n.kept) != 0 {
						t.Errorf("%s keeps %d states", name, len(n.kept))
					}
				}
			})
		})
	}
}
