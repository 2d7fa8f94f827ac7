// Package arch says how a model is computed: it turns a GGUF file's metadata
// into a [Spec], or refuses by name what it does not implement. It is pure: it
// needs no kernels, so that a gateway can say what a node will make of a file.
//
// Each architecture is one small function. What it does not know about, an
// option that changes the arithmetic or an extra tensor in a layer, it refuses:
// a model that loads is computed right.
package arch

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"hecate/internal/engine/gguf"
)

// ErrUnsupported is matched by every refusal.
var ErrUnsupported = errors.New("unsupported model")

// Unsupported says what is not implemented, and where the file asks for it.
type Unsupported struct {
	File, Field, Value, Why string
}

func (e *Unsupported) Error() string {
	return fmt.Sprintf("unsupported model: %s: %s is %s: %s", e.File, e.Field, e.Value, e.Why)
}

// Is makes errors.Is(err, ErrUnsupported) true.
func (e *Unsupported) Is(target error) bool { return target == ErrUnsupported }

// Spec is all that computing needs to know besides the weights.
type Spec struct {
	Info gguf.ModelInfo

	HeadDim int     // of queries, keys and values
	Eps     float32 // of the RMS norms
	Scale   float64 // of attention scores
	Rope    Rope

	// Head is the tensor that serves as output head: output.weight, or the
	// embedding's when tied.
	Head string

	// Explicit lists the metadata whose absence different readers take
	// differently, with the values that hold here.
	Explicit []gguf.Entry

	tensors map[int][]Tensor
}

// Rope are the parameters of the rotary position embedding.
type Rope struct {
	Dim   int // dimensions that are rotated
	Base  float32
	Scale float32 // 1 over the linear scaling factor
	NeoX  bool    // pairs are half a dimension apart instead of neighbours
	// Factors says that the model has a tensor of frequency factors; every
	// layer's Tensors lists it.
	Factors bool
}

// Tensor is a tensor that a piece of the model needs.
type Tensor struct {
	Role Role
	gguf.Tensor
}

// Role is what a tensor does in its piece.
type Role string

// The roles. Their text is the tensor's name in the file, without the layer.
const (
	TokenEmbedding Role = "token_embd.weight"
	OutputNorm     Role = "output_norm.weight"
	Output         Role = "output.weight"
	AttnNorm       Role = "attn_norm.weight"
	Query          Role = "attn_q.weight"
	Key            Role = "attn_k.weight"
	Value          Role = "attn_v.weight"
	AttnOut        Role = "attn_output.weight"
	QueryBias      Role = "attn_q.bias"
	KeyBias        Role = "attn_k.bias"
	ValueBias      Role = "attn_v.bias"
	AttnOutBias    Role = "attn_output.bias"
	QueryNorm      Role = "attn_q_norm.weight"
	KeyNorm        Role = "attn_k_norm.weight"
	FFNNorm        Role = "ffn_norm.weight"
	Gate           Role = "ffn_gate.weight"
	Up             Role = "ffn_up.weight"
	Down           Role = "ffn_down.weight"
	RopeFreqs      Role = "rope_freqs.weight"
)

// Tensors lists what a piece needs: a layer number, gguf.PieceEmbedding or
// gguf.PieceHead. Nil: the file does not have the piece.
func (s *Spec) Tensors(piece int) []Tensor { return s.tensors[piece] }

// Bytes is the memory that a piece's weights take.
func (s *Spec) Bytes(piece int) int64 {
	var n int64
	for _, t := range s.tensors[piece] {
		n += (t.Bytes() + 31) &^ 31
	}
	return n
}

// adapters by architecture name.
var adapters = map[string]func(*reader) error{
	"llama": llama,
	"qwen2": qwen2,
	"qwen3": qwen3,
}

// Names lists the architectures that are implemented.
func Names() []string {
	var out []string
	for name := range adapters {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// Describe says how the model of a checked header is computed. Errors:
// *Unsupported, and *gguf.FormatError for a file that contradicts itself.
func Describe(f *gguf.File) (*Spec, error) {
	info, err := f.Info()
	if err != nil {
		return nil, err
	}
	adapter, ok := adapters[info.Architecture]
	if !ok {
		return nil, &Unsupported{f.Name, "general.architecture", info.Architecture, fmt.Sprintf("implemented are %v", Names())}
	}
	r := &reader{f: f, spec: &Spec{Info: info, tensors: map[int][]Tensor{}}}
	if err := adapter(r); err != nil {
		return nil, err
	}
	return r.spec, nil
}

// Kinds are the kinds of storage that weights may have.
var Kinds = []gguf.Kind{gguf.F32, gguf.F16, gguf.BF16, gguf.Q8_0, gguf.Q4_0, gguf.Q4_K, gguf.Q5_K, gguf.Q6_K}

// Exact says whether all weights are of kinds with which a row's result
// depends on nothing but its own history.
func (s *Spec) Exact() bool {
	for _, ts := range s.tensors {
		for _, t := range ts {
			if len(t.Dims) > 1 && slices.Contains([]gguf.Kind{gguf.F32, gguf.F16, gguf.BF16}, t.Kind) {
				return false
			}
		}
	}
	return true
}
