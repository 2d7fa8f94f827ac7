package engine

import "hecate/internal/engine/arch"

// workBytes bounds the work memory of the largest pass over a model with so
// many cells per layer: the rows' activations, the mask (here and in the
// graph), the logits, and what describes the graph. It is an estimate from
// above; the real size is measured when the first layer is loaded.
func workBytes(spec *arch.Spec, o Options, cells int) int64 {
	m := spec.Info
	rows := int64(o.MaxBatch)
	context := int64(min(cells, o.contextOf(m.Context)))
	q := int64(m.Heads * spec.HeadDim)
	perRow := 4 * (6*int64(m.Width) + 3*q + 3*int64(m.FeedForward))
	mask := 2 * 2 * rows * context
	logits := 4 * int64(maxLogitRows) * int64(m.Vocab)
	const graphs = 8 << 20
	return rows*perRow + mask + logits + graphs
}
