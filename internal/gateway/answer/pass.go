package answer

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"hecate/internal/stage"
)

// pass brings every stage to the state of all tokens and draws the next one.
func (a *Answer) pass(ctx context.Context) (stage.Token, error) {
	if err := a.level(ctx); err != nil {
		return stage.Token{}, err
	}
	total := len(a.tokens)
	if total-a.links[0].held <= 1 && a.even() {
		return a.decode(ctx, total)
	}
	return a.fill(ctx, total)
}

// even says that every stage holds the same positions: the normal state between
// two tokens.
func (a *Answer) even() bool {
	for _, l := range a.links[1:] {
		if l.held != a.links[0].held {
			return false
		}
	}
	return true
}

// level makes the stages' states fit together, from the last to the first: the
// last must compute at least one row to draw from, and a stage in front of one
// that is behind must be able to give it its rows, from the log or by computing
// them again.
func (a *Answer) level(ctx context.Context) error {
	for i := len(a.links) - 1; i >= 0; i-- {
		l := a.links[i]
		keep := min(l.held, len(a.tokens))
		if l.last {
			keep = min(keep, len(a.tokens)-1)
			if a.job.States != nil {
				keep = min(keep, a.job.States.Collected()) // it computed rows that never came
			}
		} else {
			next, log := a.links[i+1].held, a.log(i+1)
			if base, end := log.span(); next < base || next > end {
				log.reset(next)
			}
			_, end := log.span()
			keep = min(keep, end)
		}
		if keep == l.held {
			continue
		}
		if err := l.truncate(ctx, keep, a.patience(l, 1)); err != nil {
			return err
		}
	}
	return nil
}

// decode moves one row through all stages, one after the other.
func (a *Answer) decode(ctx context.Context, total int) (stage.Token, error) {
	step := stage.Step{Position: total - 1, Tokens: a.tokens[total-1:]}
	for i, l := range a.links {
		r, err := a.step(ctx, l, step)
		if err != nil {
			return stage.Token{}, err
		}
		if l.last {
			a.forget(total)
			return r.Token, nil
		}
		log := a.log(i + 1)
		log.append(r.Position, r.Hidden, r.Width)
		step = stage.Step{Position: total - 1, Hidden: r.Hidden, Width: r.Width}
	}
	panic("BUG: a route without a last stage")
}

// fill brings stages that are behind up to total, all at once: while a stage
// computes one chunk, the one before it computes the next.
func (a *Answer) fill(ctx context.Context, total int) (stage.Token, error) {
	g, failed := errgroup.WithContext(ctx)
	var token stage.Token
	f := a.newFront()
	for _, l := range a.links {
		g.Go(func() error {
			t, err := a.fillStage(ctx, failed, l, total, f)
			if l.last && err == nil {
				token = t
			}
			return err
		})
	}
	if err := a.attend(f, g.Wait); err != nil {
		return stage.Token{}, err
	}
	a.forget(total)
	return token, nil
}

// fillStage computes rows held..total-1 of one stage, chunk by chunk. When
// another stage fails it stops asking for rows, but has the answer to what it
// sent, so that its link stays in step with its node.
func (a *Answer) fillStage(ctx, failed context.Context, l *link, total int, f *front) (stage.Token, error) {
	for {
		if err := a.spare(failed, l, f); err != nil {
			return stage.Token{}, err
		}
		step, err := a.chunk(failed, l, total)
		if err != nil || step.Rows() == 0 {
			return stage.Token{}, err
		}
		r, err := a.step(ctx, l, step)
		if err != nil {
			return stage.Token{}, err
		}
		switch {
		case r.Kind == stage.KindHidden && l.last:
			a.job.States.Collect(r.Position, r.Hidden, r.Width)
		case r.Kind == stage.KindHidden:
			a.log(l.index+1).append(r.Position, r.Hidden, r.Width)
		}
		f.reached(l.index, l.held)
		if r.Kind == stage.KindToken {
			return r.Token, nil
		}
	}
}

// aheadChunks is how far a stage may be ahead of the next one when boundary states are
// over their budget.
const aheadChunks = 2

// spare drops what a stage has read and, when that is not enough, lets it wait for the
// stage behind it, so that little lies between them.
func (a *Answer) spare(ctx context.Context, l *link, f *front) error {
	if !a.purse.over() {
		return nil
	}
	if l.index > 0 {
		a.log(l.index).forget(l.held)
	}
	if l.last {
		return nil
	}
	return f.await(ctx, l.index+1, l.held-aheadChunks*a.limits.Chunk)
}

// chunk is the next piece of input for a stage, empty when it is up to date. A
// piece never crosses proven: rows that the whole route has computed before go
// apart from those that might be what killed a node.
func (a *Answer) chunk(ctx context.Context, l *link, total int) (stage.Step, error) {
	limit := min(total-l.held, a.limits.Chunk, l.maxRows)
	if l.held < a.proven {
		limit = min(limit, a.proven-l.held)
	}
	if limit <= 0 {
		return stage.Step{}, nil
	}
	if ctx.Err() != nil {
		return stage.Step{}, context.Cause(ctx) // the first stage waits for nobody, and would not notice
	}
	if l.index == 0 {
		return stage.Step{Position: l.held, Tokens: a.tokens[l.held : l.held+limit]}, nil
	}
	rows, width, err := a.log(l.index).take(ctx, l.held, limit)
	if err != nil {
		return stage.Step{}, err
	}
	return stage.Step{Position: l.held, Hidden: rows, Width: width}, nil
}

// step sends one step to a stage and has its answer.
func (a *Answer) step(ctx context.Context, l *link, s stage.Step) (r stage.Result, err error) {
	s.Want = a.want(l, s)
	if a.onTrial(l, s) {
		if err := a.run.trial.take(ctx); err != nil {
			return stage.Result{}, err
		}
		defer a.run.trial.give()
	}
	began := time.Now()
	ctx, done := l.under(ctx)
	defer done()
	a.waits.begin(l.stage.Node)
	defer a.waits.end(l.stage.Node)
	a.run.casualties.enter(l.stage.Node, a)
	defer func() { a.run.casualties.leave(l.stage.Node, a, err != nil) }()
	if err := l.send(ctx, s); err != nil {
		return stage.Result{}, err
	}
	if r, err = l.recv(ctx, a.patience(l, s.Rows())); err != nil {
		return stage.Result{}, err
	}
	if err := a.fits(s, r); err != nil {
		return stage.Result{}, l.fail(err)
	}
	l.settled(s.Position + s.Rows())
	l.effort.add(began, s.Rows(), r.Timing)
	a.run.Router.Observe(l.stage.Node, Sample{Rows: s.Rows(), Layers: l.layers(), Timing: r.Timing, Wall: time.Since(began)})
	return r, nil
}

// want is what we need back: nothing of rows that the log behind has already.
func (a *Answer) want(l *link, s stage.Step) stage.Want {
	end := s.Position + s.Rows()
	if l.last && a.job.States != nil {
		if a.collects(end) {
			return stage.WantHidden
		}
		return stage.WantNothing
	}
	if l.last {
		if end == len(a.tokens) && !a.settling {
			return stage.WantToken
		}
		return stage.WantNothing
	}
	if _, have := a.log(l.index + 1).span(); end <= have {
		return stage.WantNothing
	}
	return stage.WantHidden
}

func (l *link) layers() int { return l.stage.Layers.Last - l.stage.Layers.First + 1 }

// under gives a context that also ends when the link does.
func (l *link) under(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(l.ctx, func() { cancel(context.Cause(l.ctx)) })
	return ctx, func() { unhook(); cancel(nil) }
}

// log is the boundary in front of stage i.
func (a *Answer) log(i int) *boundary { return a.logs[a.links[i].stage.Layers.First] }

// forget lets logs over the budget drop what every stage has.
func (a *Answer) forget(position int) {
	if !a.purse.over() {
		return
	}
	for _, b := range a.logs {
		b.forget(position)
	}
}
