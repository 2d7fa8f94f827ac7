package engine

import "hecate/internal/engine/arch"

// kernels is what the core needs from ggml: the narrow place where computing
// happens. All calls, of all engines of a process, come one at a time; tests
// of the core use an imitation.
type kernels interface {
	// load allocates a piece of a model (a layer with cache for so many
	// tokens, gguf.PieceEmbedding or gguf.PieceHead); its weights are not
	// filled yet.
	load(spec *arch.Spec, piece, cells int) (unit, error)
	// run computes a pass and sets its out.
	run(p *pass) error
	// measure returns the bytes of work memory that a pass takes, and keeps
	// them allocated for later passes.
	measure(p *pass) (int64, error)
	// move copies the cache of n cells of a layer to other cells, which may
	// overlap them.
	move(u unit, m move) error
	// segments is the most sessions that a pass over so many layers may have.
	segments(layers int) int
	// tidy gives memory of freed pieces back to the system.
	tidy()
	close()
}

// unit is a loaded piece.
type unit interface {
	// fill sets part of a tensor, numbered as in spec.Tensors(piece). Offset
	// and length are multiples of fillRows rows, except for a tensor's end.
	// What is given may be overwritten.
	fill(tensor int, offset int64, data []byte) error
	free()
}

// pass is one forward pass over a range: rows of one or more sessions.
type pass struct {
	spec   *arch.Spec
	layers Range
	units  []unit // of the layers, in order
	embed  unit   // if the range begins with layer 0
	head   unit   // if it ends with the last layer
	states bool   // of the head, only the norm is wanted

	segs      []segment
	positions []int32   // of each row
	tokens    []int32   // of each row, if the range begins with layer 0
	hidden    []float32 // rows x width otherwise
	staging   []float32 // memory for hidden
	wanted    []int32   // the rows returned, ascending

	// out is set by run: wanted rows x vocabulary or width. It is not kept by
	// the kernels.
	out []float32
	// sums has the sum of each wanted row before the head, if there is one:
	// not finite if any of its values is not. The head's own products may turn
	// such values into ordinary numbers.
	sums []float32
}

// segment is a run of rows of one session in a pass.
type segment struct {
	row, n int   // its rows are row..row+n-1
	start  int   // position of the first of them
	cells  []int // the session's first cell, by layer of the pass
}

func (p *pass) rows() int { return len(p.positions) }

// outWidth is the number of floats per wanted row.
func (p *pass) outWidth() int {
	if p.head != nil && !p.states {
		return p.spec.Info.Vocab
	}
	return p.spec.Info.Width
}
