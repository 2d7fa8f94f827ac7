package engine

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hecate/internal/engine/arch"
	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// imitation computes nothing like a model, but like one its rows depend on all
// earlier positions of their sequence, through what it keeps in cells. It
// takes time: perPass and perRow.
type imitation struct {
	perPass, perRow time.Duration
	perFill         time.Duration
	workBytes       int64
	loadError       error // of the next load
	moveError       error // of every move
	before          func(p *pass)

	mu     sync.Mutex
	loaded int // pieces
	passes []passRecord
}

type passRecord struct {
	layers Range
	rows   int
	segs   int
}

type imitationUnit struct {
	k     *imitation
	cells []float32
	freed bool
}

func (k *imitation) load(spec *arch.Spec, piece, cells int) (unit, error) {
	if err := k.loadError; err != nil {
		k.loadError = nil
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.loaded++
	return &imitationUnit{k: k, cells: make([]float32, cells)}, nil
}

func (u *imitationUnit) fill(int, int64, []byte) error {
	time.Sleep(u.k.perFill)
	return nil
}

func (u *imitationUnit) free() {
	u.k.mu.Lock()
	defer u.k.mu.Unlock()
	if u.freed {
		panic("freed twice")
	}
	u.freed = true
	u.k.loaded--
}

func (k *imitation) move(u unit, m move) error {
	if k.moveError != nil {
		return k.moveError
	}
	cells := u.(*imitationUnit).cells
	copy(cells[m.to:m.to+m.n], cells[m.from:m.from+m.n])
	return nil
}

func (k *imitation) close()           {}
func (k *imitation) tidy()            {}
func (k *imitation) segments(int) int { return 0 }

func (k *imitation) measure(p *pass) (int64, error) { return k.workBytes, nil }

func (k *imitation) run(p *pass) error {
	if k.before != nil {
		k.before(p)
	}
	time.Sleep(k.perPass + time.Duration(p.rows())*k.perRow)
	k.mu.Lock()
	k.passes = append(k.passes, passRecord{p.layers, p.rows(), len(p.segs)})
	k.mu.Unlock()
	width := p.spec.Info.Width
	x := make([]float32, p.rows())
	for i := range x {
		if p.embed != nil {
			x[i] = float32(p.tokens[i]) / 1000
		} else {
			x[i] = p.hidden[i*width]
		}
	}
	for l, u := range p.units {
		imitateLayer(u.(*imitationUnit), l, p, x)
	}
	for _, row := range p.wanted {
		out := make([]float32, p.outWidth())
		out[0] = x[row]
		p.out = append(p.out, out...)
	}
	return nil
}

// imitateLayer replaces each row by the sum of what the sequence's cells hold,
// older ones counting less.
func imitateLayer(u *imitationUnit, l int, p *pass, x []float32) {
	for _, s := range p.segs {
		for i := range s.n {
			u.cells[s.cells[l]+s.start+i] = x[s.row+i]
		}
		for i := range s.n {
			var sum float32
			for at := range s.start + i + 1 {
				sum = sum*0.75 + u.cells[s.cells[l]+at]
			}
			x[s.row+i] = sum
		}
	}
}

// imitate returns what a sequence gives after so many layers at each position.
func imitate(tokens []int32, layers int) []float32 {
	x := make([]float32, len(tokens))
	for i, t := range tokens {
		x[i] = float32(t) / 1000
	}
	for range layers {
		y := make([]float32, len(x))
		var sum float32
		for i := range x {
			sum = sum*0.75 + x[i]
			y[i] = sum
		}
		x = y
	}
	return x
}

const tinyLayers = 4

func tinyFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := randmodel.WriteFile(path, randmodel.Tiny(gguf.Q8_0, 1)); err != nil {
		t.Fatal(err)
	}
	return path
}

// imitated is a core on an imitation, with the tiny model loaded as "m".
func imitated(t *testing.T, o Options, k *imitation) *core {
	t.Helper()
	c := newCore(o, k)
	t.Cleanup(func() { c.Close() })
	loadTiny(t, c, "m", 0, tinyLayers-1)
	return c
}

func loadTiny(t *testing.T, c *core, model string, first, last int) {
	t.Helper()
	err := c.LoadLayers(context.Background(), LoadRequest{Model: model, Path: tinyFile(t), Layers: Range{first, last}}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, c *core, r Range, cells int) *session {
	t.Helper()
	s, err := c.Open(context.Background(), SessionOptions{Model: "m", Layers: r, Cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	return s.(*session)
}

func wantError(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want %v", what, err, target)
	}
}

func nan() float32 { return float32(math.NaN()) }
