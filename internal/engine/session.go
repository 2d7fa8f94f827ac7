package engine

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// session implements Session. All fields but the first group are guarded by
// the core's mutex.
type session struct {
	core   *core
	model  *model
	layers Range
	group  *group
	starts []int // first cell, by layer of the range
	room   int   // cells reserved on each layer
	rescue bool  // it may have cells that are kept for rescues

	held    int   // positions computed; 0 <= held <= room
	failed  error // set once: the session is finished
	closed  bool  // Close was called
	step    *step // the step that waits or runs
	running bool  // rows of it are in the pass that runs now
}

// step is a Step that waits or runs.
type step struct {
	s    *session
	in   Input
	rows int // in all
	done int // computed

	enqueued time.Time
	begun    time.Time // first pass
	out      Output
	values   []float32 // rows wanted so far
	err      error
	ready    chan struct{} // closed when out or err is final
	dropped  bool          // the caller has gone: stop at the next chance
}

// left is the number of rows still to compute.
func (st *step) left() int { return st.rows - st.done }

// Open implements Engine.
func (c *core) Open(ctx context.Context, opts SessionOptions) (Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := c.open(opts)
	if !errors.Is(err, ErrNoCells) || !c.fragmented(opts) {
		return s, err
	}
	// There are enough free cells, but in pieces.
	if err := c.do(ctx, func() error { return c.compact(opts.Model, opts.Layers) }); err != nil {
		return nil, err
	}
	return c.open(opts)
}

func (c *core) open(opts SessionOptions) (Session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, ErrClosed
	}
	m := c.models[opts.Model]
	if m == nil {
		return nil, &LayerError{opts.Model, opts.Layers.First}
	}
	if l, missing := m.missing(opts.Layers); missing {
		return nil, &LayerError{opts.Model, l}
	}
	if opts.Cells < 1 {
		return nil, fmt.Errorf("%w: a session of %d cells", ErrInput, opts.Cells)
	}
	if most := c.opts.contextOf(m.spec.Info.Context); opts.Cells > most {
		return nil, &CellsError{Model: m.name, Layer: opts.Layers.First, Need: opts.Cells, Free: most}
	}
	s := &session{core: c, model: m, layers: opts.Layers, room: opts.Cells, rescue: opts.Rescue}
	if err := s.takeCells(); err != nil {
		return nil, err
	}
	s.group = c.groups.join(m, opts.Layers, opts.States && opts.Layers.Last == m.spec.Info.Layers-1)
	c.sessions[s] = struct{}{}
	return s, nil
}

// takeCells reserves a run on every layer, or on none.
func (s *session) takeCells() error {
	for i := s.layers.First; i <= s.layers.Last; i++ {
		at, largest, ok := s.model.layers[i].cells.take(s.room, s.rescue)
		if !ok {
			s.giveCells()
			return &CellsError{Model: s.model.name, Layer: i, Need: s.room, Free: largest}
		}
		s.starts = append(s.starts, at)
		s.model.layers[i].sessions++
	}
	return nil
}

func (s *session) giveCells() {
	for i, at := range s.starts {
		l := s.model.layers[s.layers.First+i]
		l.cells.give(at)
		l.sessions--
	}
	s.starts = nil
}

// Step implements Session.
func (s *session) Step(ctx context.Context, in Input) (Output, error) {
	if err := ctx.Err(); err != nil {
		return Output{}, err
	}
	st, err := s.enqueue(in)
	if err != nil {
		return Output{}, err
	}
	s.core.poke()
	select {
	case <-st.ready:
	case <-ctx.Done():
		s.core.drop(st, ctx.Err())
		<-st.ready // at once, or when the pass that has its rows ends
	}
	return st.out, st.err
}

// enqueue checks a step and queues it.
func (s *session) enqueue(in Input) (*step, error) {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case s.failed != nil:
		return nil, s.failed
	case s.closed || c.closing:
		return nil, ErrClosed
	case s.step != nil:
		return nil, fmt.Errorf("%w: two steps of one session at a time", ErrInput)
	}
	rows, err := s.rowsOf(in)
	if err != nil {
		return nil, err
	}
	if in.Position != s.held {
		return nil, &PositionError{Got: in.Position, Held: s.held}
	}
	if in.Position+rows > s.room {
		return nil, &CellsError{Model: s.model.name, Layer: -1, Need: in.Position + rows, Free: s.room}
	}
	st := &step{s: s, in: in, rows: rows, enqueued: time.Now(), ready: make(chan struct{})}
	s.step = st
	s.group.push(st)
	return st, nil
}

// rowsOf checks the rows of an input against the session's range.
func (s *session) rowsOf(in Input) (int, error) {
	info := s.model.spec.Info
	if s.layers.First > 0 {
		if len(in.Tokens) > 0 || len(in.Hidden) == 0 || len(in.Hidden)%info.Width != 0 {
			return 0, fmt.Errorf("%w: layers %d..%d take hidden states in rows of %d, got %d floats and %d tokens", ErrInput, s.layers.First, s.layers.Last, info.Width, len(in.Hidden), len(in.Tokens))
		}
		return len(in.Hidden) / info.Width, nil
	}
	if len(in.Hidden) > 0 || len(in.Tokens) == 0 {
		return 0, fmt.Errorf("%w: layers %d..%d take tokens, got %d and %d floats", ErrInput, s.layers.First, s.layers.Last, len(in.Tokens), len(in.Hidden))
	}
	for i, t := range in.Tokens {
		if t < 0 || int(t) >= info.Vocab {
			return 0, fmt.Errorf("%w: token %d at position %d, the vocabulary has %d", ErrInput, t, in.Position+i, info.Vocab)
		}
	}
	return len(in.Tokens), nil
}

// drop ends a step whose caller does not wait any more.
func (c *core) drop(st *step, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st.s.step != st {
		return // it has just ended
	}
	st.dropped = true
	if !st.s.running {
		c.finishLocked(st, err)
		return
	}
	st.err = err
}

// Truncate implements Session.
func (s *session) Truncate(n int) error {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	switch {
	case s.failed != nil:
		return s.failed
	case s.closed || s.core.closing:
		return ErrClosed
	case s.step != nil:
		return fmt.Errorf("%w: truncate during a step", ErrInput)
	case n < 0 || n > s.held:
		return &PositionError{Got: n, Held: s.held}
	}
	s.held = n
	return nil
}

// Held implements Session.
func (s *session) Held() int {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return s.held
}

// Close implements Session.
func (s *session) Close() error {
	c := s.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.running {
		s.step.dropped, s.step.err = true, ErrClosed
		return nil // the goroutine releases it when the pass has ended
	}
	if s.step != nil {
		c.finishLocked(s.step, ErrClosed)
	}
	c.releaseLocked(s)
	return nil
}

// releaseLocked gives a closed session's cells back.
func (c *core) releaseLocked(s *session) {
	if _, open := c.sessions[s]; !open {
		return
	}
	delete(c.sessions, s)
	s.giveCells()
	c.groups.leave(s.group)
}

// finishLocked makes a step's result final and wakes its caller.
func (c *core) finishLocked(st *step, err error) {
	s := st.s
	s.group.remove(st)
	s.step = nil
	if err != nil {
		st.err, st.out = err, Output{}
	} else {
		st.fill()
		c.stats.Steps++
	}
	close(st.ready)
}

// fill completes a step's output.
func (st *step) fill() {
	st.out.Queue = st.begun.Sub(st.enqueued)
	info := st.s.model.spec.Info
	if st.s.layers.Last == info.Layers-1 && !st.s.group.states {
		st.out.Logits = st.values
		st.out.Rows = len(st.values) / info.Vocab
		return
	}
	st.out.Hidden = st.values
	st.out.Rows = len(st.values) / info.Width
}
