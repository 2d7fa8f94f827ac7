package arch

import "math"

// mistral3 describes Ministral and Mistral 3's text model: llama with YaRN and
// queries that grow with the position.
func mistral3(r *reader) error {
	if err := inTurn(r.refuseMistral, r.attention, r.stretchedRope, r.temperature, r.ends); err != nil {
		return err
	}
	return r.layers(r.block())
}

func (r *reader) refuseMistral() error {
	return r.refuseOthers(
		variant{"final_logit_softcapping", 0, "soft caps are not implemented here"},
		variant{"attention.sliding_window_pattern", 0, "sliding windows are not implemented here"},
	)
}

// stretchedRope reads a rotation that may be stretched by YaRN.
func (r *reader) stretchedRope() error {
	kind, _ := r.f.Text(r.key("rope.scaling.type"))
	if kind != "yarn" {
		return r.rope()
	}
	if err := r.ropeShape(); err != nil {
		return err
	}
	factor, err := r.float("rope.scaling.factor", 1, 1, 1e6)
	if err != nil {
		return err
	}
	r.spec.Rope.Scale = 1 / factor
	return r.yarn(float64(factor))
}

// yarn reads the rest of YaRN's parameters; the defaults are llama.cpp's.
func (r *reader) yarn(factor float64) error {
	y := &r.spec.Rope.YaRN
	var err error
	if y.Original, err = r.original(); err != nil {
		return err
	}
	for _, o := range []struct {
		to          *float32
		name, other string // there are two customs
		missing     float64
	}{
		{&y.Extrapolation, "rope.scaling.yarn_ext_factor", "rope.scaling.extrapolation_factor", 1},
		{&y.BetaFast, "rope.scaling.yarn_beta_fast", "rope.scaling.beta_fast", 32},
		{&y.BetaSlow, "rope.scaling.yarn_beta_slow", "rope.scaling.beta_slow", 1},
	} {
		if *o.to, err = r.either(o.name, o.other, o.missing, 0, 1e4); err != nil {
			return err
		}
	}
	y.Attention, err = r.yarnAttention(factor)
	return err
}

// yarnAttention is what the kernels multiply by, besides 1 + 0.1 ln(factor).
// YaRN for models whose files state a multiplier m divides one temperature,
// 1 + 0.1 ln(factor), by another, 1 + 0.1 m ln(factor).
func (r *reader) yarnAttention(factor float64) (float32, error) {
	multiplier, err := r.either("rope.scaling.yarn_log_multiplier", "rope.scaling.mscale_all_dim", 0, 0, 100)
	if err != nil {
		return 0, err
	}
	scale, err := r.either("rope.scaling.yarn_attn_factor", "rope.scaling.attn_factor", 1, 1e-3, 1e3)
	return scale / float32(1+0.1*float64(multiplier)*math.Log(factor)), err
}

// original is the context that the model was trained with before stretching.
func (r *reader) original() (int, error) {
	key := r.key("rope.scaling.original_context_length")
	n, ok := r.f.Uint(key)
	if !ok || n < 1 || n > 1<<31 {
		return 0, r.broken(key, n, "must be a number of tokens: yarn needs it")
	}
	return int(n), nil
}

// temperature reads how queries grow with the position.
func (r *reader) temperature() error {
	scale, err := r.either("attention.temperature_scale", "rope.scaling_beta", 0, 0, 100)
	if err != nil || scale == 0 {
		return err
	}
	every, err := r.original()
	r.spec.Temperature = Temperature{Scale: float64(scale), Every: every}
	return err
}
