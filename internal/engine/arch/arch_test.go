package arch

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"hecate/internal/engine/randmodel"
	"hecate/internal/gguf"
)

// tiny is a valid model's header with changes.
func tiny(t *testing.T, change func(*gguf.File) ([]gguf.Entry, []gguf.Item)) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	if err := randmodel.Write(&b, randmodel.Tiny(gguf.Q8_0, 1)); err != nil {
		t.Fatal(err)
	}
	f := parse(t, b.Bytes())
	if change == nil {
		return f
	}
	extra, items := change(f)
	all, old := []gguf.Entry{}, map[string]bool{}
	for _, e := range extra {
		old[e.Key] = true
	}
	for _, kv := range f.KVs {
		if !old[kv.Key] {
			all = append(all, gguf.Entry{Key: kv.Key, Value: gguf.Raw(b.Bytes()[f.Span(kv)[0]:f.Span(kv)[1]])})
		}
	}
	for _, e := range extra {
		if e.Value != nil {
			all = append(all, e)
		}
	}
	replaced := map[string]bool{}
	for _, it := range items {
		replaced[it.Name] = true
	}
	for _, x := range f.Tensors {
		if !replaced[x.Name] {
			items = append(items, gguf.Item{Name: x.Name, Kind: x.Kind, Dims: x.Dims})
		}
	}
	var out bytes.Buffer
	if err := gguf.Write(&out, all, items); err != nil {
		t.Fatal(err)
	}
	return parse(t, out.Bytes())
}

func parse(t *testing.T, data []byte) *gguf.File {
	t.Helper()
	f, err := gguf.Read(bytes.NewReader(data), int64(len(data)), "test.gguf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestDescribe(t *testing.T) {
	s, err := Describe(tiny(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if s.HeadDim != 16 || s.Eps != 1e-5 || s.Scale != 0.25 || s.Rope.Base != 10000 || s.Rope.Dim != 16 || s.Rope.Scale != 1 {
		t.Errorf("%+v", s)
	}
	if len(s.Explicit) != 1 || s.Explicit[0].Key != "llama.rope.freq_base" || s.Explicit[0].Value != float32(10000) {
		t.Errorf("explicit %+v, want the base of the rotation, which the file leaves out", s.Explicit)
	}
	if n := len(s.Tensors(0)); n != 9 {
		t.Errorf("layer 0 has %d tensors", n)
	}
	if !s.Exact() {
		t.Error("Q8_0 is exact")
	}
	if s.Bytes(1) != s.Info.LayerBytes[1] || s.Bytes(gguf.PieceHead) != s.Info.HeadBytes || s.Bytes(gguf.PieceEmbedding) != s.Info.EmbeddingBytes {
		t.Error("the sizes of pieces differ from what Inspect says")
	}
}

// TestRefusals: what would change the arithmetic is refused, by name.
func TestRefusals(t *testing.T) {
	key := func(k string, v any) func(*gguf.File) ([]gguf.Entry, []gguf.Item) {
		return func(*gguf.File) ([]gguf.Entry, []gguf.Item) { return []gguf.Entry{{Key: k, Value: v}}, nil }
	}
	item := func(it gguf.Item) func(*gguf.File) ([]gguf.Entry, []gguf.Item) {
		return func(*gguf.File) ([]gguf.Entry, []gguf.Item) { return nil, []gguf.Item{it} }
	}
	for _, c := range []struct {
		name   string
		change func(*gguf.File) ([]gguf.Entry, []gguf.Item)
		field  string
	}{
		{"mixture of experts", key("llama.expert_count", uint32(8)), "llama.expert_count"},
		{"yarn", key("llama.rope.scaling.type", "yarn"), "llama.rope.scaling.type"},
		{"longrope", key("llama.rope.scaling.type", "longrope"), "llama.rope.scaling.type"},
		{"not causal", key("llama.attention.causal", false), "llama.attention.causal"},
		{"scaled logits", key("llama.logit_scale", float32(8)), "llama.logit_scale"},
		{"keys and values of different lengths", key("llama.attention.value_length", uint32(8)), "llama.attention.value_length"},
		{"a norm on queries", item(gguf.Floats("blk.2.attn_q_norm.weight", make([]float32, 16), 16)), "tensor blk.2.attn_q_norm.weight"},
		{"experts' tensors", item(gguf.Item{Name: "blk.0.ffn_gate_exps.weight", Kind: gguf.Q8_0, Dims: []int64{64, 96, 4}}), "tensor blk.0.ffn_gate_exps.weight"},
		{"bias of the head", item(gguf.Floats("output.bias", make([]float32, 320), 320)), "tensor output.bias"},
		{"long rope factors", item(gguf.Floats("rope_factors_long.weight", make([]float32, 8), 8)), "tensor rope_factors_long.weight"},
		{"a kind nobody tried", item(gguf.Item{Name: "blk.1.ffn_up.weight", Kind: 6, Dims: []int64{64, 96}}), "tensor blk.1.ffn_up.weight"},
		{"a norm in half precision", item(gguf.Item{Name: "blk.1.ffn_norm.weight", Kind: gguf.F16, Dims: []int64{64}}), "tensor blk.1.ffn_norm.weight"},
	} {
		_, err := Describe(tiny(t, c.change))
		var e *Unsupported
		if !errors.As(err, &e) || e.Field != c.field || e.File != "test.gguf" || !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v, want a refusal of %s", c.name, err, c.field)
		}
	}
	if err := refusal("qwen9"); !strings.Contains(err.Error(), "qwen9") || !strings.Contains(err.Error(), "llama") {
		t.Errorf("unknown architecture: %v", err)
	}
}

func refusal(architecture string) error {
	var b bytes.Buffer
	err := gguf.Write(&b, []gguf.Entry{
		{Key: "general.architecture", Value: architecture},
		{Key: architecture + ".block_count", Value: uint32(1)},
		{Key: architecture + ".embedding_length", Value: uint32(32)},
		{Key: architecture + ".attention.head_count", Value: uint32(4)},
		{Key: "tokenizer.ggml.tokens", Value: []string{"a"}},
	}, nil)
	if err != nil {
		return err
	}
	f, err := gguf.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), "test.gguf")
	if err != nil {
		return err
	}
	_, err = Describe(f)
	return err
}

// TestContradictions: shapes that do not fit would make the kernels abort the
// process.
func TestContradictions(t *testing.T) {
	entries := func(e ...gguf.Entry) func(*gguf.File) ([]gguf.Entry, []gguf.Item) {
		return func(*gguf.File) ([]gguf.Entry, []gguf.Item) { return e, nil }
	}
	items := func(it ...gguf.Item) func(*gguf.File) ([]gguf.Entry, []gguf.Item) {
		return func(*gguf.File) ([]gguf.Entry, []gguf.Item) { return nil, it }
	}
	for _, c := range []struct {
		name   string
		change func(*gguf.File) ([]gguf.Entry, []gguf.Item)
		field  string
	}{
		{"another inner width", entries(gguf.Entry{Key: "llama.feed_forward_length", Value: uint32(128)}), "tensor blk.0.ffn_gate.weight"},
		{"another number of heads", entries(gguf.Entry{Key: "llama.attention.head_count", Value: uint32(8)}), "tensor blk.0.attn_q.weight"},
		{"transposed", items(gguf.Item{Name: "blk.3.ffn_down.weight", Kind: gguf.Q8_0, Dims: []int64{64, 96}}), "tensor blk.3.ffn_down.weight"},
		{"a third dimension", items(gguf.Item{Name: "blk.3.attn_q.weight", Kind: gguf.Q8_0, Dims: []int64{64, 64, 2}}), "tensor blk.3.attn_q.weight"},
		{"a short norm", items(gguf.Floats("output_norm.weight", make([]float32, 32), 32)), "tensor output_norm.weight"},
		{"head of another vocabulary", items(gguf.Item{Name: "token_embd.weight", Kind: gguf.Q8_0, Dims: []int64{64, 300}}), "tensor token_embd.weight"},
		{"no epsilon", entries(gguf.Entry{Key: "llama.attention.layer_norm_rms_epsilon"}), "llama.attention.layer_norm_rms_epsilon"},
		{"epsilon of 7", entries(gguf.Entry{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(7)}), "llama.attention.layer_norm_rms_epsilon"},
		{"more rotated than there is", entries(gguf.Entry{Key: "llama.rope.dimension_count", Value: uint32(18)}), "llama.rope.dimension_count"},
		{"odd rotation", entries(gguf.Entry{Key: "llama.rope.dimension_count", Value: uint32(7)}), "llama.rope.dimension_count"},
		{"base of rotation 0", entries(gguf.Entry{Key: "llama.rope.freq_base", Value: float32(0)}), "llama.rope.freq_base"},
		{"factors for another head", items(gguf.Floats("rope_freqs.weight", make([]float32, 4), 4)), "tensor rope_freqs.weight"},
	} {
		_, err := Describe(tiny(t, c.change))
		var e *gguf.FormatError
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("%s: %v, want field %s", c.name, err, c.field)
		}
	}
}

func TestMissingTensorOfALayer(t *testing.T) {
	var b bytes.Buffer
	if err := randmodel.Write(&b, randmodel.Tiny(gguf.Q8_0, 1)); err != nil {
		t.Fatal(err)
	}
	data := bytes.Replace(b.Bytes(), []byte("blk.1.attn_v.weight"), []byte("gone1.attn_v.weight"), 1)
	_, err := Describe(parse(t, data))
	var e *gguf.FormatError
	if !errors.As(err, &e) || e.Field != "tensor blk.1.attn_v.weight" {
		t.Errorf("%v", err)
	}
}
