package arch

import (
	"cmp"
	"fmt"
	"math"

	"hecate/internal/gguf"
)

// llama describes Llama 1 to 3 and what shares their architecture: pre-norm
// with RMS norms, rotary positions on neighbouring pairs, grouped-query
// attention, gated SiLU. Frequency factors (Llama 3.1) are supported, yarn and
// longrope scaling and mixtures of experts are not.
func llama(r *reader) error {
	if err := r.decoder(); err != nil {
		return err
	}
	return r.layers(append(r.block(),
		r.vector(QueryBias, r.queries(), true), r.vector(KeyBias, r.keys(), true), r.vector(ValueBias, r.keys(), true),
		r.vector(AttnOutBias, r.spec.Info.Width, true)))
}

// qwen2 is llama with biases on queries, keys and values, and rotation of pairs
// that are half a head apart.
func qwen2(r *reader) error {
	r.spec.Rope.NeoX = true
	if err := r.decoder(); err != nil {
		return err
	}
	return r.layers(append(r.block(),
		r.vector(QueryBias, r.queries(), false), r.vector(KeyBias, r.keys(), false), r.vector(ValueBias, r.keys(), false)))
}

// qwen3 is llama with norms on each head of queries and keys, and rotation of
// pairs that are half a head apart.
func qwen3(r *reader) error {
	r.spec.Rope.NeoX = true
	if err := r.decoder(); err != nil {
		return err
	}
	return r.layers(append(r.block(),
		r.vector(QueryNorm, r.spec.HeadDim, false), r.vector(KeyNorm, r.spec.HeadDim, false)))
}

// decoder reads what all these architectures have in common, but for the
// layers' tensors.
func (r *reader) decoder() error {
	return inTurn(r.refuseVariants, r.attention, r.rope, r.ends)
}

// inTurn stops at the first failure.
func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// block lists the tensors of a layer that all these architectures have.
func (r *reader) block() []want {
	m := r.spec.Info
	return []want{
		r.vector(AttnNorm, m.Width, false), r.vector(FFNNorm, m.Width, false),
		{role: Query, dims: []int{m.Width, r.queries()}},
		{role: Key, dims: []int{m.Width, r.keys()}},
		{role: Value, dims: []int{m.Width, r.keys()}},
		{role: AttnOut, dims: []int{r.queries(), m.Width}},
		{role: Gate, dims: []int{m.Width, m.FeedForward}},
		{role: Up, dims: []int{m.Width, m.FeedForward}},
		{role: Down, dims: []int{m.FeedForward, m.Width}},
	}
}

// queries is the number of values in a row of queries.
func (r *reader) queries() int { return r.spec.Info.Heads * r.spec.HeadDim }

// keys is the number of values in a row of keys, or of values.
func (r *reader) keys() int { return r.spec.Info.KVHeads * r.spec.HeadDim }

func (r *reader) vector(role Role, n int, optional bool) want {
	return want{role: role, dims: []int{n}, optional: optional}
}

// variant is an option that changes the arithmetic, unless it has its harmless
// value.
type variant struct {
	key      string
	harmless float64
	why      string
}

// refuseVariants refuses options that change a llama's arithmetic.
func (r *reader) refuseVariants() error {
	return r.refuseOthers(
		variant{"final_logit_softcapping", 0, "soft caps are not implemented here"},
		variant{"attention.sliding_window_pattern", 0, "sliding windows are not implemented here"},
		variant{"attention.temperature_scale", 0, "a temperature of attention is not implemented here"},
		variant{"rope.scaling.attn_factor", 1, "yarn is not implemented here"},
	)
}

// refuseOthers refuses the options given and those that no architecture here
// implements.
func (r *reader) refuseOthers(more ...variant) error {
	for _, v := range append(more, []variant{
		{"expert_count", 0, "mixtures of experts are not implemented"},
		{"logit_scale", 1, "logit scaling is not implemented"},
		{"residual_scale", 1, "residual scaling is not implemented"},
		{"embedding_scale", 1, "embedding scaling is not implemented"},
		{"attention.scale", 0, "a scale of its own for attention is not implemented"},
		{"attention.clamp_kqv", 0, "clamping is not implemented"},
		{"attention.max_alibi_bias", 0, "alibi is not implemented"},
		{"attn_logit_softcapping", 0, "soft caps are not implemented"},
		{"rope.scale_linear", 1, "write rope.scaling.type and rope.scaling.factor instead"},
	}...) {
		if err := r.refuse(v.key, v.harmless, v.why); err != nil {
			return err
		}
	}
	if causal, ok := r.f.Flag(r.key("attention.causal")); ok && !causal {
		return r.unsupported(r.key("attention.causal"), false, "only causal attention is implemented")
	}
	return nil
}

// attention reads the shape of attention and the norms' epsilon.
func (r *reader) attention() error {
	m := r.spec.Info
	if m.KeyDim != m.ValueDim {
		return r.unsupported(r.key("attention.value_length"), m.ValueDim, fmt.Sprintf("keys have %d; different lengths are not implemented", m.KeyDim))
	}
	if m.FeedForward == 0 {
		return r.broken(r.key("feed_forward_length"), "absent", "required")
	}
	if !r.f.Has(r.key("attention.key_length")) && m.Width%m.Heads != 0 {
		return r.broken(r.key("attention.head_count"), m.Heads, "does not divide the width %d", m.Width)
	}
	if m.KeyDim%8 != 0 {
		return r.unsupported("size of a head", m.KeyDim, "must be a multiple of 8")
	}
	r.spec.HeadDim = m.KeyDim
	r.spec.Scale = 1 / math.Sqrt(float64(m.KeyDim))
	key := r.key("attention.layer_norm_rms_epsilon")
	if !r.f.Has(key) {
		return r.broken(key, "absent", "required")
	}
	var err error
	r.spec.Eps, err = r.float("attention.layer_norm_rms_epsilon", 0, 1e-12, 1)
	return err
}

// rope reads the position embedding.
func (r *reader) rope() error {
	err := r.ropeShape()
	if err == nil {
		r.spec.Rope.Scale, err = r.linearScaling()
	}
	return err
}

// ropeShape reads what is rotated, and how fast. The base's default is
// llama.cpp's, unless the architecture has set its own.
func (r *reader) ropeShape() error {
	s := r.spec
	s.Rope.Dim = s.HeadDim
	if key := r.key("rope.dimension_count"); r.f.Has(key) {
		n, ok := r.f.Uint(key)
		if !ok || n < 2 || n > uint64(s.HeadDim) || n%2 != 0 {
			return r.broken(key, n, "must be even and at most the head's %d", s.HeadDim)
		}
		s.Rope.Dim = int(n)
	}
	var err error
	s.Rope.Base, err = r.float("rope.freq_base", cmp.Or(float64(s.Rope.Base), 10000), 1, 1e12)
	return err
}

// linearScaling returns 1 over the factor by which positions are stretched.
// Writers that give a factor without a type mean linear scaling.
func (r *reader) linearScaling() (float32, error) {
	kind, _ := r.f.Text(r.key("rope.scaling.type"))
	factor := "rope.scaling.factor"
	switch {
	case kind != "" && kind != "none" && kind != "linear":
		return 0, r.unsupported(r.key("rope.scaling.type"), kind, "only linear scaling and frequency factors are implemented")
	case kind == "none" || !r.f.Has(r.key(factor)):
		return 1, nil
	}
	v, err := r.float(factor, 1, 1e-3, 1e6)
	return 1 / v, err
}

// ends reads embedding and head.
func (r *reader) ends() error {
	m := r.spec.Info
	table := []int{m.Width, m.Vocab}
	if err := r.piece(gguf.PieceEmbedding, "", []want{{role: TokenEmbedding, dims: table}}); err != nil {
		return err
	}
	if m.HeadBytes == 0 {
		return nil
	}
	head := []want{{role: OutputNorm, dims: []int{m.Width}}, {role: Output, dims: table}}
	if !m.TiedHead {
		return r.piece(gguf.PieceHead, "", head)
	}
	if err := r.piece(gguf.PieceHead, "", head[:1]); err != nil {
		return err
	}
	e, _ := r.f.Tensor(string(TokenEmbedding))
	r.spec.tensors[gguf.PieceHead] = append(r.spec.tensors[gguf.PieceHead], Tensor{Output, e})
	return nil
}

// layers reads all layers, each with the shared frequency factors.
func (r *reader) layers(wants []want) error {
	factors, ok := r.f.Tensor(string(RopeFreqs))
	if ok {
		if err := r.fits(factors, []int{r.spec.Rope.Dim / 2}); err != nil {
			return err
		}
		r.spec.Rope.Factors = true
	}
	for i := range r.spec.Info.Layers {
		if err := r.piece(i, fmt.Sprintf("blk.%d.", i), wants); err != nil {
			return err
		}
		if ok && r.spec.tensors[i] != nil {
			r.spec.tensors[i] = append(r.spec.tensors[i], Tensor{RopeFreqs, factors})
		}
	}
	return r.nothingElse()
}
