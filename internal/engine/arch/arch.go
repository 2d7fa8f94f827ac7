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
	"math"
	"slices"
	"sort"

	"hecate/internal/gguf"
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
	Window  Window // of layers that see only the last positions

	EmbedScale  float64     // embedded tokens are multiplied by it; 0: they are not
	GELU        bool        // the feed-forward network is gated by GELU instead of SiLU
	SoftCap     float64     // logits are bent to stay within it: c tanh(x/c); 0: they are not
	Temperature Temperature // of queries at late positions

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
	YaRN    YaRN
}

// YaRN stretches slow rotations only (Peng et al. 2023, arXiv 2309.00071); its
// zero value does not. Rope.Scale is then 1 over the factor of the stretch.
type YaRN struct {
	Original           int     // context that the model was first trained with, in tokens
	Extrapolation      float32 // how much of the ramp between fast and slow is used
	Attention          float32 // queries and keys are multiplied by it, besides 1 + 0.1 ln(factor)
	BetaFast, BetaSlow float32 // rotations within Original at the two ends of the ramp
}

// Window is sliding-window attention: most layers see the last positions only
// and rotate in their own way, every so-manieth sees all. The zero value: all
// layers see all.
type Window struct {
	Size  int // positions that a row sees, its own included; 0: all
	Every int // layers Every-1, 2*Every-1, ... are global
	Rope  Rope
}

// Local says whether a layer sees a window only.
func (w Window) Local(layer int) bool { return w.Every > 0 && (layer+1)%w.Every != 0 }

// RopeOf is a layer's rotation.
func (s *Spec) RopeOf(layer int) Rope {
	if s.Window.Local(layer) {
		return s.Window.Rope
	}
	return s.Rope
}

// SpanOf is how many positions a row of a layer sees, its own included; 0: all.
func (s *Spec) SpanOf(layer int) int {
	if s.Window.Local(layer) {
		return s.Window.Size
	}
	return 0
}

// Temperature multiplies the query at position p by
// 1 + Scale ln(1 + floor(p/Every)). The zero value leaves it alone.
type Temperature struct {
	Scale float64
	Every int // tokens
}

// At is the factor at a position.
func (t Temperature) At(position int) float32 {
	if t.Every == 0 {
		return 1
	}
	return float32(1 + t.Scale*math.Log(1+math.Floor(float64(position)/float64(t.Every))))
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
	PostAttnNorm   Role = "post_attention_norm.weight"
	PostFFNNorm    Role = "post_ffw_norm.weight"
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
	"llama":    llama,
	"qwen2":    qwen2,
	"qwen3":    qwen3,
	"gemma3":   gemma3,
	"mistral3": mistral3,
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
