package answer

import (
	"context"
	"errors"

	"hecate/internal/stage"
	"hecate/swarm"
)

// link is the session with one stage's node. held is how many positions the
// node has the state of, as far as we know.
type link struct {
	index int
	stage swarm.Stage
	last  bool // it holds the head and draws tokens
	again bool // its connection broke a moment ago

	session Session
	ctx     context.Context // ends with the answer, or when the node is declared dead
	stop    func()

	process  string // of the node; "": it did not say
	order    int    // one more than the place in Job.Chaos of the failure that the node is to suffer; 0: none
	effort   effort
	held     int
	room     int  // cells that the node reserved
	grows    bool // it can be asked for more
	maxRows  int
	sent     int // position behind the last row sent; -1 when nothing is under way
	sentFrom int
}

// open makes the session and waits for the node's yes.
func (a *Answer) open(ctx context.Context, index int, s swarm.Stage, last, rescue bool) (*link, error) {
	return a.begin(ctx, &link{index: index, stage: s, last: last, sent: -1}, rescue)
}

// begin opens a new link.
func (a *Answer) begin(ctx context.Context, l *link, rescue bool) (*link, error) {
	l.watch(a.ctx, a.run.Router.Alive(l.stage.Node))
	opening, err := a.opening(l, rescue, rescue).Encode()
	if err != nil {
		return nil, l.fail(err)
	}
	opened, err := a.shake(ctx, l, opening, rescue)
	if err == nil {
		err = a.believe(opened)
	}
	if err != nil {
		if a.ctx.Err() != nil || errors.Is(err, errNonsense) {
			l.end() // nobody will come back for it
		} else {
			l.drop()
		}
		return nil, l.fail(err)
	}
	l.welcomed(opened, a.need.Room())
	a.exactness.note(opened.Exactness)
	return l, nil
}

// welcomed notes what the node said; asked is the room that it was asked for.
func (l *link) welcomed(o stage.Opened, asked int) {
	l.held, l.maxRows, l.process = o.Held, o.MaxRows, o.Process
	if l.room, l.grows = o.Cells, o.Cells > 0; !l.grows {
		l.room = asked // a node that cannot grow gives all or refuses
	}
}

// shake sends the opening and has its answer.
func (a *Answer) shake(ctx context.Context, l *link, opening []byte, rescue bool) (_ stage.Opened, err error) {
	ctx, cancel := a.welcome(l).begin(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)()
	if l.again {
		l.session, err = a.run.Opener.Reopen(ctx, l.stage.Node, opening)
	} else {
		l.session, err = a.run.Opener.Open(ctx, l.stage.Node, opening, rescue)
	}
	if err != nil {
		return stage.Opened{}, because(ctx, err)
	}
	b, err := l.session.Recv(ctx)
	if err != nil {
		return stage.Opened{}, because(ctx, err)
	}
	opened, err := stage.DecodeOpened(b)
	return opened, unreadable(err)
}

func (a *Answer) opening(l *link, rescue, resume bool) stage.Open {
	o := stage.Open{
		Session: a.sessionOf(l.stage), Model: a.job.Model,
		First: l.stage.Layers.First, Last: l.stage.Layers.Last,
		Cells: a.need.Room(), Rescue: rescue, Resume: resume,
	}
	if o.States = l.last && a.job.States != nil; l.last && !o.States {
		o.Sampler = &stage.Sampler{Params: a.job.Params, Prompt: len(a.job.Prompt), Tokens: a.tokens}
	}
	o.Chaos, l.order = a.chaos(l.index, rescue)
	return o
}

// watch ties the link's life to the answer's and the node's.
func (l *link) watch(answer, node context.Context) {
	ctx, cancel := context.WithCancelCause(answer)
	unhook := context.AfterFunc(node, func() { cancel(errNodeDead) })
	l.ctx = ctx
	l.stop = func() { unhook(); cancel(nil) }
}

// send puts one step on its way.
func (l *link) send(ctx context.Context, s stage.Step) error {
	if err := l.session.Send(ctx, s.Append(nil)); err != nil {
		return l.fail(because(ctx, err)) // the node did not get it, so it did not die of it
	}
	if l.sent < 0 {
		l.sentFrom = s.Position
	}
	l.sent = s.Position + s.Rows()
	return nil
}

// recv waits for the next answer.
func (l *link) recv(ctx context.Context, w wait) (stage.Result, error) {
	ctx, cancel := w.begin(ctx)
	defer cancel()
	b, err := l.session.Recv(ctx)
	if err != nil {
		return stage.Result{}, l.fail(because(ctx, err))
	}
	r, err := stage.DecodeResult(b)
	l.session.Recycle(b)
	if err != nil {
		return stage.Result{}, l.fail(unreadable(err))
	}
	return r, nil
}

// settled notes that the node answered the step that ended at end.
func (l *link) settled(end int) {
	l.held = end
	l.sentFrom = end
	if l.sent <= end {
		l.sent = -1
	}
}

// truncate makes the node forget positions >= position.
func (l *link) truncate(ctx context.Context, position int, w wait) error {
	if err := l.session.Send(ctx, stage.Truncate{Position: position}.Append(nil)); err != nil {
		return l.fail(because(ctx, err))
	}
	r, err := l.recv(ctx, w)
	if err != nil {
		return err
	}
	if r.Kind != stage.KindDone || r.Position != position {
		return l.fail(nonsense("answered a truncate to %d with %s at %d", position, r.Kind, r.Position))
	}
	l.held = position
	return nil
}

// grow asks the node for so many cells in all. It may have none; then the room
// stays as it is.
func (l *link) grow(ctx context.Context, cells int, w wait) error {
	if err := l.session.Send(ctx, stage.Grow{Cells: cells}.Append(nil)); err != nil {
		return l.fail(because(ctx, err))
	}
	ctx, cancel := w.begin(ctx)
	defer cancel()
	b, err := l.session.Recv(ctx)
	if err != nil {
		return l.fail(because(ctx, err))
	}
	g, err := stage.DecodeGrown(b)
	l.session.Recycle(b)
	if err != nil {
		return l.fail(unreadable(err))
	}
	l.room = g.Cells
	return nil
}

// fail classes an error of this link.
func (l *link) fail(err error) *stageError {
	var se *stageError
	if errors.As(err, &se) {
		return se
	}
	e := &stageError{stage: l.index, node: l.stage.Node, kind: Gone, rows: nothing, err: err}
	var refusal *stage.Error
	switch {
	case errors.As(err, &refusal), errors.Is(err, errNonsense):
		e.kind = Refused
	case errors.Is(err, errPatience):
		e.kind = Silent
	}
	if l.sent >= 0 {
		e.rows = span{l.sentFrom, l.sent}
	}
	return e
}

// end closes the stage; the node frees its state.
func (l *link) end() {
	if l.session != nil {
		l.session.End(l.sent >= 0)
	}
	l.stop()
}

// drop leaves a stage that failed, so that a reconnect could find its state.
func (l *link) drop() {
	if l.session != nil {
		l.session.Abandon()
	}
	l.stop()
}

// because prefers the reason why a context ended to the bare fact that it did.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
