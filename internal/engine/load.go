package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"hecate/internal/engine/arch"
	"hecate/internal/gguf"
)

// loader loads the layers of one request.
type loader struct {
	core     *core
	req      LoadRequest
	spec     *arch.Spec
	file     *gguf.File
	data     Weights
	model    *model
	progress func(Progress)
	state    Progress
	buf      []byte
}

// fillChunk is how much of a tensor is read and copied at a time: between two
// chunks running streams get their turn.
const fillChunk = 4 << 20

// fillRows: chunks are whole multiples of so many rows, which the kernels may
// want to interleave.
const fillRows = 8

// LoadLayers implements Engine.
func (c *core) LoadLayers(ctx context.Context, req LoadRequest, progress func(Progress)) error {
	select {
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
	case <-ctx.Done():
		if req.Weights != nil {
			_ = req.Weights.Close() // it was not even read
		}
		return ctx.Err()
	}
	l := &loader{core: c, req: req, progress: progress}
	if err := l.open(); err != nil {
		return fmt.Errorf("load layers %d..%d of %s: %w", req.Layers.First, req.Layers.Last, req.Model, err)
	}
	defer l.data.Close()
	if err := l.all(ctx); err != nil {
		return fmt.Errorf("load layers %d..%d of %s: %w", req.Layers.First, req.Layers.Last, req.Model, err)
	}
	return nil
}

// open reads the file's header and checks that it has what is asked for.
func (l *loader) open() (err error) {
	if l.data, err = l.req.open(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = l.data.Close() // it was only read
		}
	}()
	if l.file, err = gguf.Read(l.data, l.data.Size(), l.req.Path); err != nil {
		return err
	}
	if l.spec, err = arch.Describe(l.file); err != nil {
		return err
	}
	info, r := l.spec.Info, l.req.Layers
	if !info.Holds(r.First, r.Last) {
		return &gguf.FormatError{File: l.req.Path, Field: "layers", Value: fmt.Sprintf("%d", info.Layers), Why: fmt.Sprintf("the file does not have all of layers %d..%d with embedding and head", r.First, r.Last)}
	}
	return nil
}

// all accounts for the whole request first, then loads layer by layer.
func (l *loader) all(ctx context.Context) error {
	todo, err := l.begin()
	if err != nil {
		return err
	}
	for i, layer := range todo {
		if err := l.layer(ctx, layer); err != nil {
			l.abandon(todo[i:])
			return err
		}
	}
	return nil
}

// begin finds the layers to load and reserves their memory.
func (l *loader) begin() ([]int, error) {
	c := l.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, ErrClosed
	}
	m, err := c.modelLocked(l.req, l.spec)
	if err != nil {
		return nil, err
	}
	l.model = m
	var todo []int
	var weights, cache int64
	for i := l.req.Layers.First; i <= l.req.Layers.Last; i++ {
		if m.layers[i] == nil {
			todo = append(todo, i)
			w, k := l.bytes(i)
			weights, cache = weights+w, cache+k
			l.state.Total += l.toRead(i)
		}
	}
	work := max(0, workBytes(l.spec, c.opts, m.cells)-c.mem.Work)
	if len(todo) == 0 {
		work = 0
	}
	what := fmt.Sprintf("layers %d..%d of %s", l.req.Layers.First, l.req.Layers.Last, l.req.Model)
	if err := c.reserveLocked(what, weights, cache, work); err != nil {
		return nil, err
	}
	c.models[m.name] = m
	return todo, nil
}

// modelLocked finds the model that a request belongs to, or makes it.
func (c *core) modelLocked(req LoadRequest, spec *arch.Spec) (*model, error) {
	m := c.models[req.Model]
	if m == nil {
		return newModel(req.Model, spec, cmp.Or(max(0, req.Cells), c.opts.cellsFor(spec.Info.Context))), nil
	}
	if req.Cells > 0 && req.Cells != m.cells {
		return nil, fmt.Errorf("%w: %d cells asked for, %s was loaded with %d", ErrModelMismatch, req.Cells, m.name, m.cells)
	}
	return m, m.matches(spec)
}

// bytes is what a layer takes, embedding and head included.
func (l *loader) bytes(layer int) (weights, cache int64) {
	for _, piece := range l.pieces(layer) {
		weights += l.spec.Bytes(piece) + PieceOverhead
	}
	return weights, l.spec.Info.CacheBytes(1, l.model.cells)
}

// toRead is how many bytes a layer's tensors have in the file.
func (l *loader) toRead(layer int) (n int64) {
	for _, piece := range l.pieces(layer) {
		for _, t := range l.spec.Tensors(piece) {
			n += t.Bytes()
		}
	}
	return n
}

// pieces of a layer, in the order in which they are loaded.
func (l *loader) pieces(layer int) []int {
	out := []int{layer}
	if layer == 0 {
		out = append(out, gguf.PieceEmbedding)
	}
	if layer == l.spec.Info.Layers-1 {
		out = append(out, gguf.PieceHead)
	}
	return out
}

// abandon gives the memory of layers back that were not loaded.
func (l *loader) abandon(layers []int) {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	for _, i := range layers {
		w, k := l.bytes(i)
		l.core.mem.Weights -= w
		l.core.mem.Cache -= k
	}
	l.core.forgetIfEmptyLocked(l.model)
}

// layer loads one layer and makes it available.
func (l *loader) layer(ctx context.Context, layer int) (err error) {
	l.state.Layer = layer
	units := map[int]unit{}
	defer func() {
		if err != nil {
			l.core.freeUnits(slices.Collect(maps.Values(units)))
		}
	}()
	for _, piece := range l.pieces(layer) {
		u, err := l.piece(ctx, piece)
		if u != nil {
			units[piece] = u
		}
		if err != nil {
			return err
		}
	}
	if err := l.warm(ctx, layer, units); err != nil {
		return err
	}
	return l.publish(layer, units)
}

// piece allocates a piece and fills its tensors.
func (l *loader) piece(ctx context.Context, piece int) (u unit, err error) {
	err = l.core.do(ctx, func() error {
		u, err = l.core.k.load(l.spec, piece, l.model.cells)
		return err
	})
	if err != nil {
		return u, fmt.Errorf("allocate: %w", err)
	}
	for i, t := range l.spec.Tensors(piece) {
		if err := l.fill(ctx, u, i, t.Tensor); err != nil {
			return u, fmt.Errorf("tensor %s: %w", t.Name, err)
		}
	}
	return u, nil
}

// fill reads a tensor's data chunk by chunk.
func (l *loader) fill(ctx context.Context, u unit, index int, t gguf.Tensor) error {
	rows := t.Kind.Bytes(t.Dims[0]) * fillRows
	step := max(1, fillChunk/rows) * rows
	for at, size := int64(0), t.Bytes(); at < size; at += step {
		n := min(step, size-at)
		l.buf = slices.Grow(l.buf[:0], int(n))[:n]
		if _, err := l.data.ReadAt(l.buf, l.file.DataOffset+t.Offset+at); err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if err := l.core.do(ctx, func() error { return u.fill(index, at, l.buf) }); err != nil {
			return err
		}
		l.state.Done += n
		if l.progress != nil {
			l.progress(l.state)
		}
	}
	return nil
}

// warm computes one row through the new layer, so that its pages are in memory
// and the first session does not pay for it, and makes sure that work memory
// for the largest pass is there.
func (l *loader) warm(ctx context.Context, layer int, units map[int]unit) error {
	return l.core.do(ctx, func() error {
		p := l.trial(layer, units, 1)
		if err := l.core.k.run(p); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
		got, err := l.core.k.measure(l.trial(layer, units, l.core.opts.MaxBatch))
		if err != nil {
			return fmt.Errorf("reserve work memory: %w", err)
		}
		return l.core.noteWork(got)
	})
}

// noteWork corrects the account if a pass takes more than was estimated.
func (c *core) noteWork(bytes int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if bytes <= c.mem.Work {
		return nil
	}
	return c.reserveLocked("work memory", 0, 0, bytes-c.mem.Work)
}

// trial is a pass of some rows through a layer that no session uses yet.
func (l *loader) trial(layer int, units map[int]unit, rows int) *pass {
	info := l.spec.Info
	longest := min(l.model.cells, l.core.opts.contextOf(info.Context))
	rows = min(rows, longest)
	p := &pass{spec: l.spec, layers: Range{layer, layer}, units: []unit{units[layer]}, embed: units[gguf.PieceEmbedding], head: units[gguf.PieceHead]}
	// The last rows of the longest sequence: the largest mask.
	start := longest - rows
	if rows == 1 {
		start = 0
	}
	p.segs = []segment{{n: rows, start: start, cells: []int{0}}}
	for i := range rows {
		p.positions = append(p.positions, int32(start+i))
	}
	if p.embed != nil {
		p.tokens = make([]int32, rows)
	} else {
		p.hidden = make([]float32, rows*info.Width)
	}
	outs := rows
	if p.head != nil {
		outs = min(rows, maxLogitRows)
	}
	for i := rows - outs; i < rows; i++ {
		p.wanted = append(p.wanted, int32(i))
	}
	return p
}

// publish makes a loaded layer available to sessions.
func (l *loader) publish(layerNumber int, units map[int]unit) error {
	c := l.core
	weights, cache := l.bytes(layerNumber)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return ErrClosed
	}
	l.model.layers[layerNumber] = &layer{
		unit:        units[layerNumber],
		cells:       newCells(l.model.cells, c.opts.RescueShare),
		weightBytes: weights,
		cacheBytes:  cache,
	}
	if u := units[gguf.PieceEmbedding]; u != nil {
		l.model.embed = u
	}
	if u := units[gguf.PieceHead]; u != nil {
		l.model.head = u
	}
	return nil
}
