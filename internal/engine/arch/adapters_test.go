package arch

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// written is the header of a random model of an architecture.
func written(t *testing.T, c randmodel.Config) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := randmodel.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	return parse(t, b.Bytes())
}

func TestGemma3(t *testing.T) {
	c := randmodel.Tiny(gguf.Q8_0, 1)
	c.Arch, c.Layers, c.Window, c.RopeBase = "gemma3", 13, 24, 2e6
	s, err := Describe(written(t, c))
	if err != nil {
		t.Fatal(err)
	}
	if s.EmbedScale != 8 || !s.GELU || !s.Rope.NeoX || s.SoftCap != 0 || s.Scale != 0.25 {
		t.Errorf("%+v", s)
	}
	for layer := range c.Layers {
		span, base := 24, float32(10000)
		if layer == 5 || layer == 11 {
			span, base = 0, 2e6
		}
		if s.SpanOf(layer) != span || s.RopeOf(layer).Base != base {
			t.Errorf("layer %d sees %d and rotates with %v", layer, s.SpanOf(layer), s.RopeOf(layer).Base)
		}
	}
	if n := len(s.Tensors(3)); n != 13 {
		t.Errorf("a layer has %d tensors", n)
	}
}

// Sizes of Gemma 3 whose first files lack what they need, or state what they
// do not have.
func TestGemma3KnownSizes(t *testing.T) {
	for _, c := range []struct {
		layers int
		bound  float64 // of the logits
		scale  float32 // of global rotations
		score  float64
	}{
		{4, 30, 1, 0.25}, {26, 0, 1, 0.25}, {34, 30, 0.125, 0.25}, {48, 30, 0.125, 0.25}, {62, 30, 0.125, 1 / math.Sqrt(16)},
	} {
		m := randmodel.Tiny(gguf.Q8_0, 1)
		m.Arch, m.Layers, m.Window = "gemma3", c.layers, 24
		s, err := Describe(changed(t, m, gguf.Entry{Key: "gemma3.final_logit_softcapping", Value: float32(30)}))
		if err != nil {
			t.Fatal(err)
		}
		if s.SoftCap != c.bound || s.Rope.Scale != c.scale || s.Scale != c.score || s.Window.Rope.Scale != 1 {
			t.Errorf("%d layers: bound %v, scale %v, scores %v", c.layers, s.SoftCap, s.Rope.Scale, s.Scale)
		}
	}
}

func TestGemma3Pattern(t *testing.T) {
	m := randmodel.Tiny(gguf.Q8_0, 1)
	m.Arch, m.Layers = "gemma3", 7
	for _, v := range []any{uint32(6), []bool{true, true, true, true, true, false, true}} {
		if _, err := Describe(changed(t, m, gguf.Entry{Key: "gemma3.attention.sliding_window_pattern", Value: v})); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
}

func TestMistral3(t *testing.T) {
	c := randmodel.Tiny(gguf.Q8_0, 1)
	c.Arch, c.YaRN = "mistral3", true
	s, err := Describe(written(t, c))
	if err != nil {
		t.Fatal(err)
	}
	want := YaRN{Original: 32, Extrapolation: 1, Attention: float32(1 / (1 + 0.1*math.Log(4))), BetaFast: 32, BetaSlow: 1}
	if s.Rope.YaRN != want || s.Rope.Scale != 0.25 || s.Rope.NeoX {
		t.Errorf("%+v", s.Rope)
	}
	for position, by := range map[int]float64{0: 1, 31: 1, 32: 1 + 0.1*math.Log(2), 100: 1 + 0.1*math.Log(4)} {
		if got := s.Temperature.At(position); math.Abs(float64(got)-by) > 1e-6 {
			t.Errorf("position %d: %v instead of %v", position, got, by)
		}
	}
	c.YaRN = false
	if s, err = Describe(written(t, c)); err != nil || s.Rope.YaRN != (YaRN{}) || s.Temperature.At(1000) != 1 {
		t.Errorf("plain: %+v, %v", s, err)
	}
}

// changed is a model's header with an entry more, or another value of one.
func changed(t *testing.T, c randmodel.Config, e gguf.Entry) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := randmodel.Write(&b, c); err != nil {
		t.Fatal(err)
	}
	f := parse(t, b.Bytes())
	entries := []gguf.Entry{e}
	for _, kv := range f.KVs {
		if kv.Key != e.Key {
			entries = append(entries, gguf.Entry{Key: kv.Key, Value: gguf.Raw(b.Bytes()[f.Span(kv)[0]:f.Span(kv)[1]])})
		}
	}
	var items []gguf.Item
	for _, x := range f.Tensors {
		items = append(items, gguf.Item{Name: x.Name, Kind: x.Kind, Dims: x.Dims})
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, entries, items); err != nil {
		t.Fatal(err)
	}
	return parse(t, out.Bytes())
}

func TestAdaptersRefuse(t *testing.T) {
	for _, c := range []struct {
		arch  string
		key   string
		value any
	}{
		{"gemma3", "attention.sliding_window_pattern", uint32(4)},
		{"gemma3", "attention.sliding_window_pattern", []bool{true, false}},
		{"gemma3", "attn_logit_softcapping", float32(50)},
		{"gemma3", "rope.scaling.type", "yarn"},
		{"gemma3", "attention.temperature_scale", float32(0.1)},
		{"mistral3", "attention.sliding_window_pattern", uint32(4)},
		{"mistral3", "rope.scaling.type", "longrope"},
		{"mistral3", "final_logit_softcapping", float32(30)},
		{"mistral3", "expert_count", uint32(8)},
		{"qwen2", "rope.scaling.type", "yarn"},
		{"qwen3", "final_logit_softcapping", float32(30)},
		{"llama", "attention.sliding_window_pattern", uint32(6)},
		{"llama", "attention.temperature_scale", float32(0.1)},
	} {
		m := randmodel.Tiny(gguf.Q8_0, 1)
		m.Arch = c.arch
		_, err := Describe(changed(t, m, gguf.Entry{Key: c.arch + "." + c.key, Value: c.value}))
		var e *Unsupported
		if !errors.As(err, &e) || e.Field != c.arch+"."+c.key {
			t.Errorf("%s with %s = %v: %v", c.arch, c.key, c.value, err)
		}
	}
}

func TestAdaptersFindContradictions(t *testing.T) {
	for _, c := range []struct {
		arch, key string
		value     any
	}{
		{"gemma3", "attention.sliding_window", uint32(0)},
		{"gemma3", "attention.sliding_window", "many"},
		{"gemma3", "rope.freq_base_swa", float32(-1)},
		{"gemma3", "final_logit_softcapping", "loud"},
		{"mistral3", "rope.scaling.original_context_length", uint32(0)},
		{"mistral3", "rope.scaling.yarn_beta_fast", float32(-1)},
		{"mistral3", "rope.scaling.factor", float32(0.5)},
		{"mistral3", "attention.temperature_scale", float32(1e9)},
	} {
		m := randmodel.Tiny(gguf.Q8_0, 1)
		m.Arch, m.YaRN = c.arch, c.arch == "mistral3"
		_, err := Describe(changed(t, m, gguf.Entry{Key: c.arch + "." + c.key, Value: c.value}))
		var e *gguf.FormatError
		if !errors.As(err, &e) || e.Field != c.arch+"."+c.key {
			t.Errorf("%s with %s = %v: %v", c.arch, c.key, c.value, err)
		}
	}
}
