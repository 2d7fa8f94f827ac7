//go:build !noengine && cgo

package engine

import (
	"bytes"
	"fmt"
	"os"

	"github.com/ollama/ollama/ml"
	"github.com/ollama/ollama/ml/backend/ggml"
	"github.com/ollama/ollama/ml/nn/rope"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
)

// New starts an engine. Several engines of one process share the kernels and
// take turns.
func New(opts Options) (Engine, error) {
	opts = opts.defaults()
	separateLargeBlocks()
	k := &ggmlKernels{threads: opts.Threads, dir: opts.ScratchDir}
	computing.Lock()
	err := guard("start the kernels", k.open)
	computing.Unlock()
	if err != nil {
		return nil, fmt.Errorf("engine: %w", err)
	}
	return newCore(opts, k), nil
}

// ggmlKernels implements kernels. Every piece of a model is a ggml back end of
// its own, so that layers come and go one by one; passes are computed on a
// further one, which has no weights but a scheduler large enough for the
// largest graph. On the CPU, graphs may mix tensors of several back ends.
type ggmlKernels struct {
	threads int
	dir     string
	base    ml.Backend
	graph   graph // memory kept between passes
}

// activeThreads is the number of threads of the process's CPU back end, as set
// by the last back end opened; guarded by computing.
var activeThreads int

// graphNodes is the most nodes that a graph may have.
const graphNodes = 1 << 14

// nodesPerTensor: a ggml back end allows graphs this many times as large as
// the number of tensors in its file.
const nodesPerTensor = 32

func (k *ggmlKernels) open() error {
	var err error
	k.base, err = k.openBase(graphNodes / nodesPerTensor)
	return err
}

// openBase opens a back end with so many tensors of one element.
func (k *ggmlKernels) openBase(tensors int) (ml.Backend, error) {
	items := make([]gguf.Item, tensors)
	for i := range items {
		items[i] = gguf.Item{Name: fmt.Sprintf("blk.0.none%d", i), Kind: gguf.F32, Dims: []int64{1}}
	}
	return k.backend(items)
}

// backend opens a ggml back end with room for the given tensors. It reads only
// the header of a file which has no data: the weights are filled in from the
// model's own file, without a copy on disk.
func (k *ggmlKernels) backend(items []gguf.Item) (ml.Backend, error) {
	var header bytes.Buffer
	size, err := gguf.WriteHeader(&header, []gguf.Entry{
		{Key: "general.architecture", Value: "llama"},
		{Key: "llama.block_count", Value: uint32(1)},
	}, items)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(k.dir, "hecate-piece-*.gguf")
	if err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(header.Bytes()); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	if err := f.Truncate(size); err != nil { // sparse: takes no room on disk
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	var b ml.Backend
	err = quietly(func() (err error) {
		b, err = ggml.New(f.Name(), ml.BackendParams{
			AllocMemory: true, NumThreads: k.threads, FlashAttention: ml.FlashAttentionEnabled,
		})
		return err
	})
	activeThreads = k.threads
	return b, err
}

// setThreads makes the process's CPU back end use this engine's number of
// threads, which another engine may have changed. Opening a back end is the
// only way to set it.
func (k *ggmlKernels) setThreads() error {
	if activeThreads == k.threads {
		return nil
	}
	b, err := k.openBase(1)
	if err == nil {
		b.Close()
	}
	return err
}

// tidy implements kernels.
func (k *ggmlKernels) tidy() { returnFreeMemory() }

func (k *ggmlKernels) close() {
	if k.base != nil {
		k.base.Close()
		k.base = nil
	}
	returnFreeMemory()
}

// piece implements unit.
type piece struct {
	backend ml.Backend
	tensors []ml.Tensor // as in spec.Tensors
	order   interleaver // of their data
	weights weights
	rope    arch.Rope
	rotate  []func(*rope.Options)
	span    int // positions that a row sees; 0: all
	cache   ml.Context
	keys    ml.Tensor // one row per cell
	values  ml.Tensor
}

// weights are a piece's tensors by what they do; nil where it has none.
type weights struct {
	embedding, outputNorm, output                            ml.Tensor
	attnNorm, query, key, value, attnOut                     ml.Tensor
	queryBias, keyBias, valueBias, attnOutBias               ml.Tensor
	ffnNorm, gate, up, down, ropeFactors, queryNorm, keyNorm ml.Tensor
	postAttnNorm, postFFNNorm                                ml.Tensor
}

// place is where the tensor of a role belongs.
func (w *weights) place(r arch.Role) *ml.Tensor {
	return map[arch.Role]*ml.Tensor{
		arch.TokenEmbedding: &w.embedding, arch.OutputNorm: &w.outputNorm, arch.Output: &w.output,
		arch.AttnNorm: &w.attnNorm, arch.Query: &w.query, arch.Key: &w.key, arch.Value: &w.value, arch.AttnOut: &w.attnOut,
		arch.QueryBias: &w.queryBias, arch.KeyBias: &w.keyBias, arch.ValueBias: &w.valueBias, arch.AttnOutBias: &w.attnOutBias,
		arch.FFNNorm: &w.ffnNorm, arch.Gate: &w.gate, arch.Up: &w.up, arch.Down: &w.down, arch.RopeFreqs: &w.ropeFactors,
		arch.QueryNorm: &w.queryNorm, arch.KeyNorm: &w.keyNorm,
		arch.PostAttnNorm: &w.postAttnNorm, arch.PostFFNNorm: &w.postFFNNorm,
	}[r]
}

// load implements kernels.
func (k *ggmlKernels) load(spec *arch.Spec, number, cells int) (unit, error) {
	wants := spec.Tensors(number)
	if len(wants) == 0 {
		return nil, fmt.Errorf("engine: piece %d has no tensors", number)
	}
	items := make([]gguf.Item, len(wants), len(wants)+1)
	for i, t := range wants {
		items[i] = gguf.Item{Name: pieceName(number, t.Role), Kind: t.Kind, Dims: t.Dims}
	}
	if number == gguf.PieceEmbedding {
		// Without a tensor of this group the back end would allocate the
		// embedding a second time as head.
		items = append(items, gguf.Item{Name: "output.none", Kind: gguf.F32, Dims: []int64{1}})
	}
	b, err := k.backend(items)
	if err != nil {
		return nil, err
	}
	u := &piece{backend: b, order: interleaver{}}
	for i, t := range wants {
		u.tensors = append(u.tensors, b.Get(items[i].Name))
		*u.weights.place(t.Role) = u.tensors[i]
		if number != gguf.PieceEmbedding { // which is looked up, not multiplied with
			u.order.take(u.tensors[i], t.Kind)
		}
	}
	if number >= 0 {
		u.rope, u.span = spec.RopeOf(number), spec.SpanOf(number)
		u.rotate = rotation(u.rope, u.weights.ropeFactors)
		u.cache = b.NewContextSize(8).Layer(0)
		row := spec.Info.KVHeads * spec.HeadDim
		u.keys = u.cache.Zeros(ml.DTypeF16, row, cells)
		u.values = u.cache.Zeros(ml.DTypeF16, row, cells)
	}
	return u, nil
}

// rotation words a rotary position embedding for the kernels.
func rotation(r arch.Rope, factors ml.Tensor) (out []func(*rope.Options)) {
	if r.NeoX {
		out = append(out, rope.WithTypeNeoX())
	}
	if factors != nil {
		out = append(out, rope.WithFactors(factors))
	}
	if y := r.YaRN; y.Original > 0 {
		out = append(out, rope.WithOriginalContextLength(y.Original), rope.WithExtrapolationFactor(y.Extrapolation),
			rope.WithAttentionFactor(y.Attention), rope.WithBetaFast(y.BetaFast), rope.WithBetaSlow(y.BetaSlow))
	}
	return out
}

// pieceName is a tensor's name in a piece's own file, where every layer has
// number 0.
func pieceName(number int, r arch.Role) string {
	switch {
	case number < 0:
		return string(r)
	case r == arch.RopeFreqs:
		// Under its own name the back end would take it for one that is shared
		// by all layers and rename it.
		return "blk.0.factors.weight"
	}
	return "blk.0." + string(r)
}

// fill implements unit.
func (u *piece) fill(tensor int, offset int64, data []byte) error {
	return guard("fill", func() error {
		t := u.tensors[tensor]
		u.order.arrange(t, data)
		size := int64(t.Stride(len(t.Shape())-1)) * int64(t.Dim(len(t.Shape())-1))
		if offset == 0 && int64(len(data)) == size {
			t.FromBytes(data)
			return nil
		}
		ctx := u.backend.NewContextSize(2)
		defer ctx.Close()
		elems := int64(len(data)) * int64(t.Dim(0)) / int64(t.Stride(1))
		t.View(ctx, int(offset), int(elems)).FromBytes(data)
		return nil
	})
}

// free implements unit.
func (u *piece) free() {
	if u.cache != nil {
		u.cache.Close()
	}
	u.backend.Close()
}

// moveRows is how many cells are copied at a time: the copy goes through work
// memory, because the runs may overlap.
const moveRows = 256

// move implements kernels.
func (k *ggmlKernels) move(u unit, m move) error {
	return guard("move cache", func() error {
		p := u.(*piece)
		for done := 0; done < m.n; done += moveRows {
			n := min(moveRows, m.n-done)
			at := done
			if m.to > m.from { // the end first, before it is overwritten
				at = m.n - done - n
			}
			ctx := k.base.NewContextSize(16)
			for _, t := range []ml.Tensor{p.keys, p.values} {
				row := t.Stride(1)
				from := t.View(ctx, (m.from+at)*row, n*t.Dim(0))
				to := t.View(ctx, (m.to+at)*row, n*t.Dim(0))
				ctx.Forward(from.Duplicate(ctx).Copy(ctx, to))
			}
			ctx.Compute()
			ctx.Close()
		}
		return nil
	})
}
