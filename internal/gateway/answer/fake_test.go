package answer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// The fake model: every layer folds all rows up to its position into the row's
// value, so one lost, repeated or misplaced row anywhere changes all that follows.
func foldLayer(layer int, column []float32) float32 {
	h := uint32(2166136261 + layer)
	for _, x := range column {
		h = (h ^ math.Float32bits(x)) * 16777619
	}
	return float32(h >> 12)
}

const fakeVocab = 1000

// fakeSwarm is a set of fake nodes that can be killed at will.
type fakeSwarm struct {
	mu     sync.Mutex
	nodes  map[string]*fakeNode
	routes []swarm.Route     // copies, cheapest first
	spares map[string]string // who takes over whose layers in a splice
	copies bool              // prefer a copy to a splice
	// splices are chains that take over together, instead of a spare.
	splices map[string][]swarm.Stage

	grants   map[uint64]bool
	next     uint64
	room     fakeRoom
	events   []Event
	onStep   func(node string, s stage.Step)    // called before a step is computed
	onDone   func(node string, s stage.Step)    // called after, before it is answered
	forge    func(node string, b []byte) []byte // what a node says instead of its answer
	patience time.Duration
	usual    time.Duration  // 0: unknown, so nobody hedges
	maxRows  map[string]int // that a node takes in one step; absent: 64
}

type fakeNode struct {
	name string
	ctx  context.Context
	die  context.CancelCauseFunc
	kept map[string]*fakeState
	rows int // rows computed
	down bool

	start int // how often the process was started again
}

// fakeState is what a node holds of one stage of one answer.
type fakeState struct {
	open stage.Open
	// columns[k] is the input of layer open.First+k at each position.
	columns [][]float32
	held    int
}

func newFakeSwarm(names ...string) *fakeSwarm {
	f := &fakeSwarm{nodes: map[string]*fakeNode{}, grants: map[uint64]bool{}, spares: map[string]string{}, patience: time.Second}
	for _, n := range names {
		f.raise(n)
	}
	return f
}

func (f *fakeSwarm) raise(name string) {
	ctx, die := context.WithCancelCause(context.Background())
	f.nodes[name] = &fakeNode{name: name, ctx: ctx, die: die, kept: map[string]*fakeState{}}
}

// kill ends a node; all its state is gone.
func (f *fakeSwarm) kill(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	n.down = true
	n.kept = map[string]*fakeState{}
	n.die(errors.New("connection reset"))
}

// restart ends a node's process; another one takes its place before anybody looks.
func (f *fakeSwarm) restart(name string) {
	f.kill(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	start := f.nodes[name].start + 1
	f.raise(name)
	f.nodes[name].start = start
}

// cut breaks the node's connections; it lives and keeps its state.
func (f *fakeSwarm) cut(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[name]
	n.die(errors.New("connection reset"))
	n.ctx, n.die = context.WithCancelCause(context.Background())
}

func (f *fakeSwarm) Choose(ctx context.Context, n Need) (Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.routes {
		if f.livesLocked(r) {
			return f.grantLocked(r), nil
		}
	}
	return Grant{}, fmt.Errorf("no copy lives: %w", swarm.ErrNoRoute)
}

func (f *fakeSwarm) livesLocked(r swarm.Route) bool {
	return !slices.ContainsFunc(r.Stages, func(s swarm.Stage) bool { return f.nodes[s.Node].down })
}

func (f *fakeSwarm) grantLocked(r swarm.Route) Grant {
	f.next++
	f.grants[f.next] = true
	return Grant{Route: r, Token: f.next, Wanted: f.room.wanted}
}

func (f *fakeSwarm) Rescue(ctx context.Context, n Need, g Grant, failed []Failure, p Progress) (Grant, RescueKind, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refused := map[string]bool{}
	for _, x := range failed {
		refused[x.Node] = true
	}
	if f.copies {
		for _, r := range f.routes {
			bad := slices.ContainsFunc(r.Stages, func(s swarm.Stage) bool { return refused[s.Node] })
			if f.livesLocked(r) && !bad {
				delete(f.grants, g.Token)
				return f.grantLocked(r), Copy, nil
			}
		}
	}
	r := g.Route
	for node, chain := range f.splices {
		if i := slices.IndexFunc(r.Stages, func(s swarm.Stage) bool { return s.Node == node }); i >= 0 && (refused[node] || f.nodes[node].down) {
			r.Stages = slices.Replace(slices.Clone(r.Stages), i, i+1, chain...)
			delete(f.grants, g.Token)
			return f.grantLocked(r), Splice, nil
		}
	}
	r.Stages = slices.Clone(r.Stages)
	for i, s := range r.Stages {
		if !f.nodes[s.Node].down && !refused[s.Node] {
			continue
		}
		spare, ok := f.spares[s.Node]
		if !ok || f.nodes[spare].down {
			return Grant{}, "", fmt.Errorf("nobody holds %s's layers: %w", s.Node, swarm.ErrUnrecoverable)
		}
		r.Stages[i].Node = spare
	}
	delete(f.grants, g.Token)
	return f.grantLocked(r), Splice, nil
}

func (f *fakeSwarm) Release(g Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.grants[g.Token] {
		panic("released twice")
	}
	delete(f.grants, g.Token)
}

// fakeRoom is who may grow.
type fakeRoom struct {
	full   int             // times that the books will refuse growth
	stingy map[string]int  // times that a node will
	old    map[string]bool // nodes that cannot grow
	grown  []int           // rooms that were asked for
	given  []Need          // by whoever gave way
	lost   error           // what giving way ends with
	wanted chan struct{}   // of grants that are made from now on
}

func (f *fakeSwarm) Grow(_ context.Context, n Need, g Grant) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.grants[g.Token] {
		panic("grown, and not held")
	}
	f.room.grown = append(f.room.grown, n.Room())
	if f.room.full > 0 {
		f.room.full--
		return ErrFull
	}
	return nil
}

func (f *fakeSwarm) GiveWay(ctx context.Context, n Need, g Grant, failed []Failure) (Grant, error) {
	f.mu.Lock()
	for name, node := range f.nodes {
		if len(node.kept) > 0 {
			panic("an answer gave way that still holds something at " + name)
		}
	}
	f.room.given = append(f.room.given, n)
	lost := f.room.lost
	f.mu.Unlock()
	if lost != nil {
		return Grant{}, lost
	}
	next, err := f.Choose(ctx, n)
	if err == nil {
		f.Release(g)
	}
	return next, err
}

func (f *fakeSwarm) Observe(string, Sample)                  {}
func (f *fakeSwarm) Patience(string, int, int) time.Duration { return f.patience }
func (f *fakeSwarm) Usual(string, int, int) (time.Duration, bool) {
	return f.usual, f.usual > 0
}

func (f *fakeSwarm) Around(_ Need, route swarm.Route, slow string) (Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.routes {
		if f.livesLocked(r) && !r.Uses(slow) {
			return f.grantLocked(r), nil
		}
	}
	return Grant{}, swarm.ErrNoRoute
}

func (f *fakeSwarm) Alive(node string) context.Context { return context.Background() }

func (f *fakeSwarm) rowsOf(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[name].rows
}

// fakeSession is one connection to one node, answered in the caller's goroutine.
type fakeSession struct {
	swarm *fakeSwarm
	node  *fakeNode
	ctx   context.Context
	key   string
	state *fakeState
	queue [][]byte
}

func (f *fakeSwarm) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	o, err := stage.DecodeOpen(opening)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[node]
	if n.down {
		return nil, errors.New("connection refused")
	}
	s := &fakeSession{swarm: f, node: n, ctx: n.ctx, key: fmt.Sprint(o.Session, o.First, o.Last)}
	if s.state = n.kept[s.key]; s.state == nil || !o.Resume {
		s.state = &fakeState{open: o, columns: make([][]float32, o.Last-o.First+1)}
		n.kept[s.key] = s.state
	}
	s.state.open = o
	opened := stage.Opened{Held: s.state.held, Cells: o.Cells, Width: 1, MaxRows: 64, Exactness: "fake", Process: fmt.Sprint(node, n.start)}
	if n, few := f.maxRows[node]; few {
		opened.MaxRows = n
	}
	if f.room.old[node] {
		opened.Cells = 0
	}
	b, err := opened.Encode()
	s.queue = append(s.queue, b)
	return s, err
}

func (f *fakeSwarm) Reopen(ctx context.Context, node string, opening []byte) (Session, error) {
	f.mu.Lock()
	down := f.nodes[node].down
	f.mu.Unlock()
	if down {
		return nil, ErrNoConnection
	}
	return f.Open(ctx, node, opening, true)
}

func (f *fakeSwarm) Suspect(string) {}

func (s *fakeSession) Send(ctx context.Context, b []byte) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.queue = append(s.queue, b)
	return nil
}

func (s *fakeSession) Recv(ctx context.Context) ([]byte, error) {
	b, err := s.answer(ctx)
	if err == nil && s.swarm.forge != nil {
		b = s.swarm.forge(s.node.name, b)
	}
	return b, err
}

func (s *fakeSession) answer(ctx context.Context) ([]byte, error) {
	b := s.queue[0]
	s.queue = s.queue[1:]
	switch stage.KindOf(b) {
	case stage.KindTruncate:
		t, _ := stage.DecodeTruncate(b)
		s.state.truncate(t.Position)
		return stage.Result{Kind: stage.KindDone, Position: t.Position}.Append(nil), s.gone()
	case stage.KindGrow:
		return s.grow(b)
	case stage.KindStep:
		return s.compute(ctx, b)
	}
	return b, s.gone()
}

func (s *fakeSession) grow(b []byte) ([]byte, error) {
	g, err := stage.DecodeGrow(b)
	if err != nil {
		return nil, err
	}
	s.swarm.mu.Lock()
	defer s.swarm.mu.Unlock()
	if s.swarm.room.old[s.node.name] {
		panic("a node that cannot grow was asked to")
	}
	if s.swarm.room.stingy[s.node.name] > 0 {
		s.swarm.room.stingy[s.node.name]--
	} else {
		s.state.open.Cells = g.Cells
	}
	return stage.Grown{Cells: s.state.open.Cells}.Append(nil), s.gone()
}

func (s *fakeSession) gone() error { return context.Cause(s.ctx) }

func (s *fakeSession) compute(ctx context.Context, b []byte) ([]byte, error) {
	st, err := stage.DecodeStep(b)
	if err != nil {
		return nil, err
	}
	if s.swarm.onStep != nil {
		s.swarm.onStep(s.node.name, st)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.ctx.Err() != nil {
		return nil, s.gone()
	}
	s.swarm.mu.Lock()
	r, err := s.state.step(st)
	s.node.rows += st.Rows()
	s.swarm.mu.Unlock()
	if s.swarm.onDone != nil {
		s.swarm.onDone(s.node.name, st)
	}
	if s.ctx.Err() != nil {
		return nil, s.gone()
	}
	return r.Append(nil), err
}

func (s *fakeSession) Recycle([]byte) {}

func (s *fakeSession) End(bool) {
	s.swarm.mu.Lock()
	defer s.swarm.mu.Unlock()
	delete(s.node.kept, s.key)
}

func (s *fakeSession) Abandon() {}

func (s *fakeState) truncate(position int) {
	s.held = position
	for k := range s.columns {
		s.columns[k] = s.columns[k][:position]
	}
}

func (s *fakeState) step(st stage.Step) (stage.Result, error) {
	if st.Position+st.Rows() > s.open.Cells {
		return stage.Result{}, fmt.Errorf("%d positions, but %d cells", st.Position+st.Rows(), s.open.Cells)
	}
	if st.Position != s.held {
		return stage.Result{}, fmt.Errorf("step at %d, but %d are held", st.Position, s.held)
	}
	r := stage.Result{Kind: stage.KindDone, Position: st.Position, Rows: st.Rows()}
	for i := range st.Rows() {
		var x float32
		if st.Tokens != nil {
			x = float32(st.Tokens[i])
		} else {
			x = st.Hidden[i]
		}
		for k := range s.columns {
			s.columns[k] = append(s.columns[k], x)
			x = foldLayer(s.open.First+k, s.columns[k])
		}
		s.held++
		if st.Want == stage.WantHidden {
			r.Kind, r.Width = stage.KindHidden, 1
			r.Hidden = append(r.Hidden, x)
		}
		if st.Want == stage.WantToken {
			r.Kind, r.Token.ID = stage.KindToken, int32(x)%fakeVocab
		}
	}
	return r, nil
}
