package engine

import (
	"cmp"
	"fmt"
	"slices"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
)

// model is what is loaded of one model.
type model struct {
	name   string
	spec   *arch.Spec // of the file loaded first; its tensors may be only a shard's
	cells  int        // of each layer
	layers []*layer   // nil where not loaded
	embed  unit
	head   unit
}

// layer is a loaded layer.
type layer struct {
	unit        unit
	cells       *cells
	weightBytes int64 // embedding and head included where they belong
	cacheBytes  int64
	sessions    int // open sessions that use it
}

func newModel(name string, spec *arch.Spec, cells int) *model {
	return &model{name: name, spec: spec, cells: cells, layers: make([]*layer, spec.Info.Layers)}
}

// matches checks that a file is of the same model, as far as computing is
// concerned.
func (m *model) matches(spec *arch.Spec) error {
	a, b := m.spec.Info, spec.Info
	type shape struct {
		arch, name                                  string
		layers, width, heads, kvHeads, inner, vocab int
		headDim                                     int
		eps                                         float32
		rope                                        arch.Rope
		window                                      arch.Window
		heat                                        arch.Temperature
		scale, embed, bound                         float64
	}
	of := func(s *arch.Spec, i gguf.ModelInfo) shape {
		return shape{i.Architecture, i.Name, i.Layers, i.Width, i.Heads, i.KVHeads, i.FeedForward, i.Vocab, s.HeadDim, s.Eps, s.Rope,
			s.Window, s.Temperature, s.Scale, s.EmbedScale, s.SoftCap}
	}
	if x, y := of(m.spec, a), of(spec, b); x != y {
		return fmt.Errorf("%w: %s has %+v, %s was loaded with %+v", ErrModelMismatch, b.File, y, m.name, x)
	}
	return nil
}

// held returns the first layer of a range that is not loaded.
func (m *model) missing(r Range) (int, bool) {
	for i := r.First; i <= r.Last; i++ {
		if i < 0 || i >= len(m.layers) || m.layers[i] == nil {
			return i, true
		}
	}
	return 0, r.First > r.Last
}

func (m *model) empty() bool {
	return !slices.ContainsFunc(m.layers, func(l *layer) bool { return l != nil })
}

// fragments lists the runs of loaded layers.
func (m *model) fragments() []Fragment {
	var out []Fragment
	for i, l := range m.layers {
		if l == nil {
			continue
		}
		if n := len(out); n == 0 || out[n-1].Layers.Last != i-1 {
			out = append(out, Fragment{
				Model: m.name, Layers: Range{i, i}, ModelLayers: len(m.layers),
				Width: m.spec.Info.Width, Vocab: m.spec.Info.Vocab,
				Cells: l.cells.total, CellsFree: l.cells.total, Embedding: i == 0, Class: Class(),
			})
		}
		f := &out[len(out)-1]
		f.Layers.Last = i
		f.Head = i == len(m.layers)-1
		f.WeightBytes += l.weightBytes
		f.CacheBytes += l.cacheBytes
		f.CellsFree = min(f.CellsFree, l.cells.free())
	}
	return out
}

// Fragments implements Engine.
func (c *core) Fragments() []Fragment {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Fragment
	for _, m := range c.models {
		for _, f := range m.fragments() {
			for s := range c.sessions {
				if s.model == m && s.layers.First <= f.Layers.Last && f.Layers.First <= s.layers.Last {
					f.Sessions++
				}
			}
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Fragment) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.Layers.First, b.Layers.First))
	})
	return out
}
