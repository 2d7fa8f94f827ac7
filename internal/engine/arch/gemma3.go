package arch

import "math"

// Gemma 3's constants, which files do not state.
const (
	gemmaGlobalEvery = 6     // every sixth layer is global
	gemmaGlobalBase  = 1e6   // of the rotation in global layers
	gemmaLocalBase   = 10000 // of the rotation in the others
)

// Numbers of layers by which Gemma 3's sizes are told apart.
const (
	gemma1B  = 26
	gemma4B  = 34
	gemma12B = 48
	gemma27B = 62
)

// gemma3 describes Gemma 3's text model: embeddings scaled by the root of the
// width, norms before and after attention and feed-forward network and on each
// head of queries and keys, GELU, five layers with a sliding window for each one
// that sees everything. Files that were written before some of its options
// had a name get what the size of that number of layers is known to need.
func gemma3(r *reader) error {
	r.spec.Rope.NeoX, r.spec.Rope.Base = true, gemmaGlobalBase
	r.spec.GELU = true
	if err := inTurn(r.refuseGemma, r.attention, r.rope, r.gemmaWindow, r.gemmaScales, r.ends); err != nil {
		return err
	}
	m := r.spec.Info
	return r.layers(append(r.block(),
		r.vector(QueryNorm, r.spec.HeadDim, false), r.vector(KeyNorm, r.spec.HeadDim, false),
		r.vector(PostAttnNorm, m.Width, false), r.vector(PostFFNNorm, m.Width, false)))
}

func (r *reader) refuseGemma() error {
	if pattern := r.key("attention.sliding_window_pattern"); r.f.Has(pattern) && !r.everySixthGlobal(pattern) {
		v, _ := r.f.Uint(pattern)
		return r.unsupported(pattern, v, "only every sixth layer global is implemented")
	}
	return r.refuseOthers(
		variant{"attention.temperature_scale", 0, "a temperature of attention is not implemented here"},
		variant{"rope.scaling.attn_factor", 1, "yarn is not implemented here"},
	)
}

// everySixthGlobal reads a pattern: its period, or one entry per layer that
// says whether it is local.
func (r *reader) everySixthGlobal(key string) bool {
	if n, ok := r.f.Uint(key); ok {
		return n == gemmaGlobalEvery
	}
	local, ok := r.f.Flags(key)
	for i := range local {
		ok = ok && local[i] == (Window{Every: gemmaGlobalEvery}).Local(i)
	}
	return ok && len(local) == r.spec.Info.Layers
}

// gemmaWindow reads the sliding window; without one all layers see all, but
// still rotate in two ways.
func (r *reader) gemmaWindow() error {
	s := r.spec
	s.Window = Window{Every: gemmaGlobalEvery, Rope: s.Rope}
	s.Window.Rope.Scale = 1
	base := "rope.freq_base_swa"
	if !r.f.Has(r.key(base)) {
		base = "rope.local.freq_base"
	}
	var err error
	if s.Window.Rope.Base, err = r.float(base, gemmaLocalBase, 1, 1e12); err != nil {
		return err
	}
	key := r.key("attention.sliding_window")
	if !r.f.Has(key) {
		return nil
	}
	n, ok := r.f.Uint(key)
	if !ok || n < 1 || n > 1<<24 {
		return r.broken(key, n, "must be a number of tokens from 1 to %d", 1<<24)
	}
	s.Window.Size = int(n)
	return nil
}

// gemmaScales sets what is multiplied, and the soft cap of the logits.
func (r *reader) gemmaScales() error {
	s, m := r.spec, r.spec.Info
	s.EmbedScale = math.Sqrt(float64(m.Width))
	switch m.Layers {
	case gemma4B, gemma12B, gemma27B:
		if !r.f.Has(r.key("rope.scaling.factor")) {
			s.Rope.Scale = 1.0 / 8
		}
	}
	if m.Layers == gemma27B {
		s.Scale = 1 / math.Sqrt(float64(m.Width/m.Heads))
	}
	bound, err := r.optional("final_logit_softcapping", 0, 0, 1e6)
	if m.Layers != gemma1B { // early files of the 1 B model state one that it does not have
		s.SoftCap = float64(bound)
	}
	return err
}
