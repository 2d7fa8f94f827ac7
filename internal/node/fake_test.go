package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"hecate/internal/engine"
	"hecate/internal/stage"
	"hecate/pool"
)

// fakeEngine holds layers of one model of 12 layers and counts.
type fakeEngine struct {
	mu     sync.Mutex
	held   map[int]bool
	busy   map[int]bool // layers that cannot be unloaded
	open   int
	budget int // layers that fit
	loads  []engine.Range
	gate   chan struct{} // steps wait until it closes; nil: they do not
}

// hold makes steps last until unhold.
func (e *fakeEngine) hold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gate = make(chan struct{})
}

func (e *fakeEngine) unhold() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.gate)
	e.gate = nil
}

func (e *fakeEngine) holding() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gate
}

const fakeLayers, fakeWidth, fakeVocab, fakeRoom = 12, 4, 50, 1000

func newFakeEngine(ranges ...engine.Range) *fakeEngine {
	e := &fakeEngine{held: map[int]bool{}, busy: map[int]bool{}, budget: fakeLayers}
	for _, r := range ranges {
		for l := r.First; l <= r.Last; l++ {
			e.held[l] = true
		}
	}
	return e
}

func (e *fakeEngine) LoadLayers(_ context.Context, req engine.LoadRequest, _ func(engine.Progress)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.held)+req.Layers.Len() > e.budget {
		return &engine.BudgetError{What: "layers", Need: int64(req.Layers.Len()), Used: int64(len(e.held)), Budget: int64(e.budget)}
	}
	e.loads = append(e.loads, req.Layers)
	for l := req.Layers.First; l <= req.Layers.Last; l++ {
		e.held[l] = true
	}
	return nil
}

func (e *fakeEngine) UnloadLayers(_ context.Context, _ string, r engine.Range) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := r.First; l <= r.Last; l++ {
		if e.busy[l] {
			return engine.ErrInUse
		}
	}
	for l := r.First; l <= r.Last; l++ {
		delete(e.held, l)
	}
	return nil
}

func (e *fakeEngine) Fragments() (out []engine.Fragment) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range fakeLayers {
		if !e.held[l] {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Layers.Last == l-1 {
			out[n-1].Layers.Last = l
			continue
		}
		out = append(out, engine.Fragment{Model: "m", Layers: engine.Range{First: l, Last: l}, ModelLayers: fakeLayers, Width: fakeWidth, Vocab: fakeVocab})
	}
	return out
}

func (e *fakeEngine) Open(_ context.Context, o engine.SessionOptions) (engine.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Cells > fakeRoom {
		return nil, &engine.CellsError{Model: o.Model, Need: o.Cells, Free: fakeRoom}
	}
	e.open++
	return &fakeSteps{engine: e, cells: o.Cells, head: o.Layers.Last == fakeLayers-1}, nil
}

func (e *fakeEngine) Memory() engine.Memory { return engine.Memory{} }
func (e *fakeEngine) Stats() engine.Stats   { return engine.Stats{} }
func (e *fakeEngine) Close() error          { return nil }

func (e *fakeEngine) sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

// fakeSteps counts positions; its logits prefer the token held+1.
type fakeSteps struct {
	engine *fakeEngine
	cells  int
	head   bool
	held   int
	closed bool
	once   sync.Once
}

func (s *fakeSteps) Step(ctx context.Context, in engine.Input) (engine.Output, error) {
	if gate := s.engine.holding(); gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return engine.Output{}, ctx.Err()
		}
	}
	if s.closed {
		return engine.Output{}, engine.ErrClosed
	}
	if in.Position != s.held {
		return engine.Output{}, &engine.PositionError{Got: in.Position, Held: s.held}
	}
	rows := len(in.Tokens) + len(in.Hidden)/fakeWidth
	s.held += rows
	out := engine.Output{Rows: rows}
	if in.Want == engine.WantAll {
		out.Hidden = make([]float32, rows*fakeWidth)
	}
	if in.Want == engine.WantLast {
		out.Logits = make([]float32, fakeVocab)
		out.Logits[(s.held+1)%fakeVocab] = 1
	}
	return out, nil
}

func (s *fakeSteps) Grow(_ context.Context, cells int) error {
	if cells > fakeRoom {
		return &engine.CellsError{Model: "m", Need: cells, Free: fakeRoom}
	}
	s.cells = max(s.cells, cells)
	return nil
}

func (s *fakeSteps) Truncate(n int) error { s.held = n; return nil }
func (s *fakeSteps) Held() int            { return s.held }
func (s *fakeSteps) Close() error {
	s.closed = true
	s.once.Do(func() {
		s.engine.mu.Lock()
		s.engine.open--
		s.engine.mu.Unlock()
	})
	return nil
}

// wire is a session of the data plane with both ends in this process: the test
// is the gateway.
type wire struct {
	toNode, toGateway chan []byte
	done              chan struct{}
	once              sync.Once
	err               *pool.CloseError
}

func newWire() *wire {
	return &wire{toNode: make(chan []byte, 8), toGateway: make(chan []byte, 8), done: make(chan struct{})}
}

func (w *wire) end(code pool.CloseCode, remote bool) {
	w.once.Do(func() {
		w.err = &pool.CloseError{Code: code, Remote: remote}
		close(w.done)
	})
}

// nodeEnd is what the handler holds.
type nodeEnd struct{ *wire }

func (nodeEnd) ID() uint64                  { return 1 }
func (nodeEnd) Peer() pool.Peer             { return pool.Peer{Node: "gateway"} }
func (nodeEnd) MaxMessage() int             { return 1 << 20 }
func (nodeEnd) Recycle([]byte)              {}
func (n nodeEnd) Done() <-chan struct{}     { return n.done }
func (n nodeEnd) Close(code pool.CloseCode) { n.end(code, false) }
func (nodeEnd) Draining() <-chan struct{}   { return nil }
func (n nodeEnd) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

func (n nodeEnd) Send(ctx context.Context, b []byte) error {
	select {
	case n.toGateway <- append([]byte(nil), b...):
		return nil
	case <-n.done:
		return n.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n nodeEnd) Recv(ctx context.Context) ([]byte, error) {
	select {
	case b := <-n.toNode:
		return b, nil
	case <-n.done:
		return nil, n.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// world is a server with a fake engine and the handlers that run.
type world struct {
	t      *testing.T
	engine *fakeEngine
	server *Server
	wg     sync.WaitGroup
	wires  []*wire
}

func newWorld(t *testing.T) *world {
	e := newFakeEngine(engine.Range{First: 0, Last: 3}, engine.Range{First: 8, Last: 11})
	w := &world{t: t, engine: e, server: NewServer(e, "fake", slog.New(slog.DiscardHandler))}
	t.Cleanup(func() {
		if t.Failed() { // or what the test left open would be waited for
			for _, c := range w.wires {
				c.end(pool.CodeCancelled, true)
			}
		}
		w.wg.Wait()
		w.server.Close()
		if n := e.sessions(); n != 0 {
			t.Errorf("%d engine sessions are left", n)
		}
	})
	return w
}

// call starts a handler and sends an Open. As in the pool, a handler that returns
// ends its session.
func (w *world) call(o stage.Open) *wire {
	w.t.Helper()
	c := newWire()
	w.wires = append(w.wires, c)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-c.done; cancel() }()
	w.wg.Go(func() {
		w.server.Handle(ctx, nodeEnd{c})
		c.end(pool.CodeNormal, false)
	})
	b, err := o.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	c.toNode <- b
	return c
}

// dial calls and waits for the answer.
func (w *world) dial(o stage.Open) (*wire, stage.Opened, error) {
	w.t.Helper()
	c := w.call(o)
	opened, err := stage.DecodeOpened(<-c.toGateway)
	return c, opened, err
}

// begin opens a stage that has computed the steps.
func (w *world) begin(o stage.Open, steps ...stage.Step) *wire {
	w.t.Helper()
	c, _, err := w.dial(o)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range steps {
		if _, err := w.step(c, s); err != nil {
			w.t.Fatal(err)
		}
	}
	return c
}

// step sends a step and decodes the answer.
func (w *world) step(c *wire, s stage.Step) (stage.Result, error) {
	c.toNode <- s.Append(nil)
	return stage.DecodeResult(<-c.toGateway)
}

func codeOf(err error) stage.Code {
	var e *stage.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
