// Package randmodel writes model files with random weights: valid GGUF files
// of any size, the same for the same seed on every machine. Tests compute with
// small ones, benchmarks with one of the size of a real model. What they say
// is noise; how long they take to say it is not.
package randmodel

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"

	"hecate/internal/gguf"
)

// Config is the shape of a model.
type Config struct {
	Name    string // general.name; default "random"
	Arch    string // llama, qwen2, qwen3, gemma3 or mistral3; default llama
	Layers  int
	Width   int // a multiple of 32 (quantised kinds), of 256 (K kinds)
	Heads   int
	KVHeads int
	HeadDim int       // of one head; 0: Width over Heads
	Inner   int       // width of the feed-forward network, with the same multiples
	Vocab   int       // at least 300
	Context int       // in tokens
	Kind    gguf.Kind // F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K
	Seed    uint64

	Tied        bool    // the embedding is the head
	RopeFactors bool    // with a tensor of frequency factors
	RopeBase    float32 // 0: not stated in the file
	Window      int     // of gemma3's local layers, in tokens; 0: none
	Tools       bool    // a chat template that knows tools, in the way of Hermes and Qwen
	Pooling     uint32  // 1: says that it embeds by the mean, 3: by the last token; 0: says nothing
	YaRN        bool    // mistral3: stretched 4 times beyond 32 tokens, with queries that grow
}

// SmolLM135M is the shape of a 135 million parameter model, in Q8_0: 30 layers,
// width 576, 9 heads of which 3 for keys and values, tied head, 49152 tokens.
func SmolLM135M(seed uint64) Config {
	return Config{Name: "random-135m", Layers: 30, Width: 576, Heads: 9, KVHeads: 3, Inner: 1536,
		Vocab: 49152, Context: 8192, Kind: gguf.Q8_0, Seed: seed, Tied: true, RopeBase: 10000}
}

// Tiny is a model small enough for exhaustive tests, with an untied head.
func Tiny(kind gguf.Kind, seed uint64) Config {
	if kind.Block() == 256 {
		return Config{Name: "random-tiny", Layers: 3, Width: 256, Heads: 4, KVHeads: 2, Inner: 256,
			Vocab: 320, Context: 512, Kind: kind, Seed: seed}
	}
	return Config{Name: "random-tiny", Layers: 4, Width: 64, Heads: 4, KVHeads: 2, Inner: 96,
		Vocab: 320, Context: 512, Kind: kind, Seed: seed}
}

// Caller is a small model whose chat template knows tools and whose file says
// that it embeds by the mean of all tokens.
func Caller(seed uint64) Config {
	return Config{Name: "random-caller", Layers: 6, Width: 64, Heads: 4, KVHeads: 2, Inner: 96,
		Vocab: 1024, Context: 2048, Kind: gguf.Q8_0, Seed: seed, Tools: true, Pooling: 1}
}

// WriteFile writes the model to a new file.
func WriteFile(path string, c Config) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write random model: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
	}()
	return Write(f, c)
}

// Write writes the model.
func Write(w io.Writer, c Config) error {
	c.Name, c.Arch = cmp.Or(c.Name, "random"), cmp.Or(c.Arch, "llama")
	if c.HeadDim == 0 && c.Heads > 0 && c.Width%c.Heads == 0 {
		c.HeadDim = c.Width / c.Heads
	}
	if c.Layers < 1 || c.HeadDim < 1 || c.Heads < 1 || c.KVHeads < 1 || c.Heads%c.KVHeads != 0 || c.Vocab < 300 {
		return fmt.Errorf("randmodel: impossible shape %+v", c)
	}
	return gguf.Write(w, c.metadata(), c.tensors())
}

func (c Config) metadata() []gguf.Entry {
	e := []gguf.Entry{
		{Key: "general.architecture", Value: c.Arch},
		{Key: "general.name", Value: c.Name},
		{Key: "general.description", Value: "random weights, for tests and benchmarks only"},
		{Key: c.Arch + ".block_count", Value: uint32(c.Layers)},
		{Key: c.Arch + ".context_length", Value: uint32(c.Context)},
		{Key: c.Arch + ".embedding_length", Value: uint32(c.Width)},
		{Key: c.Arch + ".feed_forward_length", Value: uint32(c.Inner)},
		{Key: c.Arch + ".attention.head_count", Value: uint32(c.Heads)},
		{Key: c.Arch + ".attention.head_count_kv", Value: uint32(c.KVHeads)},
		{Key: c.Arch + ".attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: c.Arch + ".rope.dimension_count", Value: uint32(c.HeadDim)},
		{Key: c.Arch + ".attention.key_length", Value: uint32(c.HeadDim)},
		{Key: c.Arch + ".attention.value_length", Value: uint32(c.HeadDim)},
		{Key: c.Arch + ".vocab_size", Value: uint32(c.Vocab)},
	}
	if c.RopeBase != 0 {
		e = append(e, gguf.Entry{Key: c.Arch + ".rope.freq_base", Value: c.RopeBase})
	}
	e = append(e, c.long()...)
	if c.Pooling != 0 {
		e = append(e, gguf.Entry{Key: c.Arch + ".pooling_type", Value: c.Pooling})
	}
	return append(e, vocabulary(c.Vocab, c.Tools)...)
}

// long is what some architectures say of long contexts.
func (c Config) long() (e []gguf.Entry) {
	if c.Window != 0 {
		e = append(e, gguf.Entry{Key: c.Arch + ".attention.sliding_window", Value: uint32(c.Window)})
	}
	if c.YaRN {
		e = append(e,
			gguf.Entry{Key: c.Arch + ".rope.scaling.type", Value: "yarn"},
			gguf.Entry{Key: c.Arch + ".rope.scaling.factor", Value: float32(4)},
			gguf.Entry{Key: c.Arch + ".rope.scaling.original_context_length", Value: uint32(32)},
			gguf.Entry{Key: c.Arch + ".rope.scaling.yarn_beta_fast", Value: float32(32)},
			gguf.Entry{Key: c.Arch + ".rope.scaling.yarn_beta_slow", Value: float32(1)},
			gguf.Entry{Key: c.Arch + ".rope.scaling.yarn_log_multiplier", Value: float32(1)},
			gguf.Entry{Key: c.Arch + ".attention.temperature_scale", Value: float32(0.1)})
	}
	return e
}

// markup is what a chat template that knows tools writes, as tokens: control
// tokens around messages, user-defined ones around calls.
var markup = []string{"<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"}

// vocabulary is one that SentencePiece tokenizers accept: three special
// tokens, all bytes, perhaps markup, then made-up words.
func vocabulary(n int, tools bool) []gguf.Entry {
	const unknown, control, normal, userDefined, byteToken = 2, 3, 1, 4, 6
	template := "{% for message in messages %}{{ message.content }}\n{% endfor %}"
	tokens := []string{"<unk>", "<s>", "</s>"}
	types := []int32{unknown, control, control}
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
		types = append(types, byteToken)
	}
	if tools {
		tokens, template = append(tokens, markup...), toolTemplate
		types = append(types, control, control, userDefined, userDefined)
	}
	scores, first := make([]float32, n), len(tokens)
	for len(tokens) < n {
		scores[len(tokens)] = -float32(len(tokens))
		tokens = append(tokens, word(len(tokens)-first))
		types = append(types, normal)
	}
	return []gguf.Entry{
		{Key: "tokenizer.ggml.model", Value: "llama"},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.scores", Value: scores},
		{Key: "tokenizer.ggml.token_type", Value: types},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
		{Key: "tokenizer.ggml.add_bos_token", Value: true},
		{Key: "tokenizer.ggml.add_space_prefix", Value: false},
		{Key: "tokenizer.chat_template", Value: template},
	}
}

// word makes a different word for every number, with a leading space.
func word(n int) string {
	b := []byte{byte('a' + n%26)}
	for n /= 26; n > 0; n /= 26 {
		b = append(b, byte('a'+n%26))
	}
	return "\u2581" + string(b)
}

func (c Config) tensors() []gguf.Item {
	head := int64(c.HeadDim)
	w, ff, v := int64(c.Width), int64(c.Inner), int64(c.Vocab)
	q, kv := head*int64(c.Heads), head*int64(c.KVHeads)
	g := &generator{kind: c.Kind, seed: c.Seed}
	items := []gguf.Item{g.matrix("token_embd.weight", w, v)}
	if c.RopeFactors {
		items = append(items, g.vector("rope_freqs.weight", head/2, 1, 4))
	}
	for i := range c.Layers {
		p := fmt.Sprintf("blk.%d.", i)
		items = append(items,
			g.vector(p+"attn_norm.weight", w, 0.5, 1.5),
			g.matrix(p+"attn_q.weight", w, q),
			g.matrix(p+"attn_k.weight", w, kv),
			g.matrix(p+"attn_v.weight", w, kv),
			g.matrix(p+"attn_output.weight", q, w),
			g.vector(p+"ffn_norm.weight", w, 0.5, 1.5),
			g.matrix(p+"ffn_gate.weight", w, ff),
			g.matrix(p+"ffn_up.weight", w, ff),
			g.matrix(p+"ffn_down.weight", ff, w))
		switch c.Arch {
		case "qwen2":
			items = append(items, g.vector(p+"attn_q.bias", q, -0.5, 0.5), g.vector(p+"attn_k.bias", kv, -0.5, 0.5), g.vector(p+"attn_v.bias", kv, -0.5, 0.5))
		case "qwen3":
			items = append(items, g.vector(p+"attn_q_norm.weight", head, 0.5, 1.5), g.vector(p+"attn_k_norm.weight", head, 0.5, 1.5))
		case "gemma3":
			items = append(items, g.vector(p+"attn_q_norm.weight", head, 0.5, 1.5), g.vector(p+"attn_k_norm.weight", head, 0.5, 1.5),
				g.vector(p+"post_attention_norm.weight", w, 0.5, 1.5), g.vector(p+"post_ffw_norm.weight", w, 0.5, 1.5))
		}
	}
	items = append(items, g.vector("output_norm.weight", w, 0.5, 1.5))
	if !c.Tied {
		items = append(items, g.matrix("output.weight", w, v))
	}
	return items
}

// generator makes tensors; each has its own random stream.
type generator struct {
	kind gguf.Kind
	seed uint64
	made uint64
}

func (g *generator) stream() *rand.Rand {
	g.made++
	return rand.New(rand.NewPCG(g.seed, g.made))
}

// vector is an F32 tensor, uniform between two bounds.
func (g *generator) vector(name string, n int64, least, most float32) gguf.Item {
	r := g.stream()
	values := make([]float32, n)
	for i := range values {
		values[i] = least + (most-least)*r.Float32()
	}
	return gguf.Floats(name, values, n)
}

// matrix is a tensor of the generator's kind with mean 0 and a variance that
// keeps activations at their size: 1 over the number of inputs.
func (g *generator) matrix(name string, in, out int64) gguf.Item {
	r := g.stream()
	return gguf.Item{Name: name, Kind: g.kind, Dims: []int64{in, out}, Data: func(w io.Writer) error {
		switch g.kind {
		case gguf.Q4_K, gguf.Q5_K, gguf.Q6_K:
			return fillBlocks(w, r, g.kind, in, out)
		case gguf.BF16:
			return fillBrain(w, r, in, out)
		}
		return fill(w, r, g.kind, in, out)
	}}
}

// fill writes the rows, a few at a time. Uniform values of half-width h have
// the variance h*h/3.
func fill(w io.Writer, r *rand.Rand, kind gguf.Kind, in, out int64) error {
	half := float32(math.Sqrt(3 / float64(in)))
	values := make([]float32, in)
	var raw []byte
	for range out {
		for i := 0; i < len(values); i += 2 {
			bits := r.Uint64()
			values[i] = half * (float32(int32(bits)) / (1 << 31))
			if i+1 < len(values) {
				values[i+1] = half * (float32(int32(bits>>32)) / (1 << 31))
			}
		}
		var err error
		if raw, err = gguf.Quantise(raw[:0], kind, values); err != nil {
			return err
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return nil
}
