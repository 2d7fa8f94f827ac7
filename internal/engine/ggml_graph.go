//go:build !noengine && cgo

package engine

import (
	"slices"

	"github.com/ollama/ollama/ml"
	"github.com/ollama/ollama/ml/nn/rope"
)

// graph builds the computation of one pass. Sessions share all products with
// weights; attention is a node of its own for each session, over exactly the
// cells it holds. So no row ever looks at another session's cells, not even to
// skip them.
type graph struct {
	p    *pass
	ctx  ml.Context
	in   ml.Context // for inputs
	rows int

	positions ml.Tensor
	wanted    ml.Tensor // rows to return, or nil for all
	attended  ml.Tensor // rows x heads: where the segments' results are put together
	heat      ml.Tensor // factor of each row's queries, or nil
	sights    map[int][]sight
	cells     ml.Tensor // the cell of each row, in cellsOf's layer
	cellsOf   []int32

	// memory kept between passes
	numbers []int32
	mask    []byte
}

// Upper bounds of what a pass adds to a graph: tensors, nodes and views.
const (
	nodesPerPass    = 40
	nodesPerLayer   = 50
	nodesPerSegment = 14 // per layer
)

func (p *pass) nodes() int {
	n := nodesPerPass + 2*len(p.segs) + len(p.units)*(nodesPerLayer+nodesPerSegment*len(p.segs))
	return min(n, graphNodes)
}

// segments implements kernels.
func (k *ggmlKernels) segments(layers int) int {
	return max(1, ((graphNodes-nodesPerPass)/layers-nodesPerLayer)/(nodesPerSegment+1))
}

// run implements kernels.
func (k *ggmlKernels) run(p *pass) error {
	if err := k.setThreads(); err != nil {
		return err
	}
	deliberateAbort()
	return guard("compute", func() error {
		ctx := k.base.NewContextSize(p.nodes())
		defer ctx.Close()
		out, sums := k.graph.build(p, ctx)
		switch {
		case out == nil:
			ctx.Compute()
		case sums == nil:
			ctx.Forward(out).Compute(out)
			p.out = out.Floats()
		default:
			ctx.Forward(sums, out).Compute(sums, out)
			p.out, p.sums = out.Floats(), sums.Floats()
		}
		return nil
	})
}

// measure implements kernels.
func (k *ggmlKernels) measure(p *pass) (int64, error) {
	var bytes int64
	err := guard("reserve work memory", func() error {
		ctx := k.base.NewContextSize(p.nodes())
		defer ctx.Close()
		out, _ := k.graph.build(p, ctx)
		ctx.SetBatchSize(p.rows())
		ctx.Forward(out).Reserve()
		m := k.base.BackendMemory()
		bytes = int64(m.CPU.Graph)
		for _, g := range m.GPUs {
			bytes += int64(g.Graph)
		}
		return nil
	})
	return bytes, err
}

// build returns the result, the wanted rows, or nil if there are none; and
// their sums before the head.
func (g *graph) build(p *pass, ctx ml.Context) (out, sums ml.Tensor) {
	*g = graph{p: p, ctx: ctx, in: ctx.Input(), rows: p.rows(), numbers: g.numbers, mask: g.mask}
	g.positions = g.in.FromInts(p.positions, g.rows)
	if n := len(p.wanted); n > 0 && n < g.rows {
		g.wanted = g.in.FromInts(p.wanted, n)
	}
	if len(p.segs) > 1 {
		g.attended = g.in.Empty(ml.DTypeF32, p.spec.Info.Heads*p.spec.HeadDim, g.rows)
	}
	g.heat = g.temperatures()
	x := g.input()
	for i := range p.units {
		if x = g.layer(i, x); x == nil {
			return nil, nil
		}
	}
	if p.head == nil {
		return x, nil
	}
	h := &p.head.(*piece).weights
	if p.states {
		return x.RMSNorm(ctx, h.outputNorm, p.spec.Eps), nil
	}
	sums = x.SumRows(ctx)
	out = h.output.Mulmat(ctx, x.RMSNorm(ctx, h.outputNorm, p.spec.Eps))
	if c := p.spec.SoftCap; c != 0 {
		out = out.Scale(ctx, 1/c).Tanh(ctx).Scale(ctx, c)
	}
	return out, sums
}

// input is the first layer's input: embedded tokens or given hidden states.
func (g *graph) input() ml.Tensor {
	if g.p.embed == nil {
		return g.in.FromFloats(g.p.hidden, g.p.spec.Info.Width, g.rows)
	}
	tokens := g.in.FromInts(g.p.tokens, g.rows)
	x := g.p.embed.(*piece).weights.embedding.Rows(g.ctx, tokens)
	if by := g.p.spec.EmbedScale; by != 0 {
		x = x.Scale(g.ctx, by)
	}
	return x
}

// layer computes one layer; in the last one only the wanted rows go on after
// attention, and none if none is wanted.
func (g *graph) layer(i int, x ml.Tensor) ml.Tensor {
	ctx, spec, u := g.ctx, g.p.spec, g.p.units[i].(*piece)
	w := &u.weights
	h := x.RMSNorm(ctx, w.attnNorm, spec.Eps)
	q := g.linear(w.query, w.queryBias, h).Reshape(ctx, spec.HeadDim, spec.Info.Heads, g.rows)
	key := g.linear(w.key, w.keyBias, h).Reshape(ctx, spec.HeadDim, spec.Info.KVHeads, g.rows)
	value := g.linear(w.value, w.valueBias, h)
	if w.queryNorm != nil {
		q, key = q.RMSNorm(ctx, w.queryNorm, spec.Eps), key.RMSNorm(ctx, w.keyNorm, spec.Eps)
	}
	q, key = g.rotate(u, q), g.rotate(u, key)
	if g.heat != nil {
		q = q.Mul(ctx, g.heat)
	}
	g.store(i, u, key, value)

	last := i == len(g.p.units)-1
	if last && len(g.p.wanted) == 0 {
		return nil
	}
	a := g.attention(i, u, q)
	if last && g.wanted != nil {
		a, x = a.Rows(ctx, g.wanted), x.Rows(ctx, g.wanted)
	}
	x = g.norm(w.postAttnNorm, g.linear(w.attnOut, w.attnOutBias, a)).Add(ctx, x)
	return g.norm(w.postFFNNorm, g.feedForward(w, x.RMSNorm(ctx, w.ffnNorm, spec.Eps))).Add(ctx, x)
}

// norm applies a norm that not every architecture has.
func (g *graph) norm(weight, x ml.Tensor) ml.Tensor {
	if weight == nil {
		return x
	}
	return x.RMSNorm(g.ctx, weight, g.p.spec.Eps)
}

func (g *graph) feedForward(w *weights, x ml.Tensor) ml.Tensor {
	gate, up := w.gate.Mulmat(g.ctx, x), w.up.Mulmat(g.ctx, x)
	if g.p.spec.GELU {
		return w.down.Mulmat(g.ctx, gate.GELU(g.ctx, up))
	}
	return w.down.Mulmat(g.ctx, gate.SILU(g.ctx, up))
}

func (g *graph) linear(weight, bias, x ml.Tensor) ml.Tensor {
	x = weight.Mulmat(g.ctx, x)
	if bias != nil {
		x = x.Add(g.ctx, bias)
	}
	return x
}

// rotator is implemented by ggml's tensors.
type rotator interface {
	RoPE(ctx ml.Context, positions ml.Tensor, dim int, base, scale float32, options ...func(*rope.Options)) ml.Tensor
}

func (g *graph) rotate(u *piece, x ml.Tensor) ml.Tensor {
	r := u.rope
	return x.(rotator).RoPE(g.ctx, g.positions, r.Dim, r.Base, r.Scale, u.rotate...)
}

// store writes the rows' keys and values into their cells.
func (g *graph) store(i int, w *piece, key, value ml.Tensor) {
	at := g.rowCells(i)
	key = key.Reshape(g.ctx, w.keys.Dim(0), g.rows)
	g.ctx.Forward(w.keys.SetRows(g.ctx, key, at), w.values.SetRows(g.ctx, value, at))
}

// rowCells is the cell of each row in a layer. Usually a session has the same
// cells on all of its layers.
func (g *graph) rowCells(i int) ml.Tensor {
	g.numbers = g.numbers[:0]
	for _, s := range g.p.segs {
		for n := range s.n {
			g.numbers = append(g.numbers, int32(s.cells[i]+s.start+n))
		}
	}
	if g.cells == nil || !slices.Equal(g.numbers, g.cellsOf) {
		g.cells = g.in.FromInts(g.numbers, g.rows)
		g.cellsOf = append(g.cellsOf[:0], g.numbers...)
	}
	return g.cells
}

// attention computes every segment over its session's cells.
func (g *graph) attention(i int, w *piece, q ml.Tensor) ml.Tensor {
	if len(g.p.segs) == 1 {
		return g.attend(i, w, 0, q)
	}
	ctx, width := g.ctx, g.attended.Dim(0)
	for n, s := range g.p.segs {
		part := q.View(ctx, s.row*q.Stride(2), q.Dim(0), q.Stride(1), q.Dim(1), q.Stride(2), s.n)
		to := g.attended.View(ctx, s.row*g.attended.Stride(1), width*s.n)
		a := g.attend(i, w, n, part).Reshape(ctx, width*s.n)
		ctx.Forward(a.Copy(ctx, to))
	}
	return g.attended
}

// attend computes the n-th segment.
func (g *graph) attend(i int, w *piece, n int, q ml.Tensor) ml.Tensor {
	ctx, spec, s := g.ctx, g.p.spec, g.p.segs[n]
	see := g.sight(w.span, n)
	held := s.start + s.n - see.from
	history := func(t ml.Tensor) ml.Tensor {
		row := t.Stride(1)
		head := row / spec.Info.KVHeads
		return t.View(ctx, (s.cells[i]+see.from)*row, spec.HeadDim, head, spec.Info.KVHeads, row, held)
	}
	a := q.(ml.ScaledDotProductAttention).ScaledDotProductAttention(
		ctx, history(w.keys), history(w.values), see.mask, nil, nil, spec.Scale, true)
	return a.Reshape(ctx, spec.HeadDim*spec.Info.Heads, s.n)
}

// temperatures is the factor of each row's queries, or nil.
func (g *graph) temperatures() ml.Tensor {
	t := g.p.spec.Temperature
	if t.Every == 0 {
		return nil
	}
	by := make([]float32, g.rows)
	for i, p := range g.p.positions {
		by[i] = t.At(int(p))
	}
	return g.in.FromFloats(by, 1, 1, g.rows)
}
