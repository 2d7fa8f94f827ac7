package answer

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// The lagging shadow: the replay of a rescue is a prefill and grows with the
// context. Where a holder of a stage's layers has room to spare, it is fed the
// stage's boundary states in the background, so that a rescue replays the last
// few positions only.
//
//	route    tokens ──► A[0-7] ──► log[8] ──► B[8-11] ──► token
//	              └───► C[0-7]          └───► D[8-11]         shadows
//
// A shadow computes proven positions only: it dies of nothing that has not
// been computed before. It lags by less than two chunks once it has caught up,
// rests as long as it works, and is the first to go when room gets scarce.
// When its stage's node fails and the router's rescue is the shadow's place, the
// node is asked to resume, as if its connection had broken: it holds all but
// the lag.
const (
	shadowChunk = 32                     // rows; a shadow waits for so many
	shadowRest  = 1                      // times as long as a step took
	shadowRetry = 500 * time.Millisecond // after a stage found no place
	shadowTries = 3                      // shadows that one stage may lose in one answer
)

// shades are the shadows of one answer, by the stage whose place they take.
type shades struct {
	by    map[swarm.Stage]*shadow
	tries map[swarm.Stage]int
	again time.Time // when to look for places again
}

// shadow is kept by a goroutine of its own until done is closed; then links and
// logs belong to the answer.
type shadow struct {
	of      swarm.Stage
	standby Standby
	links   []*link
	opens   [][]byte
	inputs  []*boundary // before each link; nil: the tokens
	fresh   []*boundary // those of inputs that the answer does not have
	chunk   int

	proven  chan []int32   // capacity 1: the newest tokens that all stages have computed
	reached []atomic.Int64 // by link: positions that its node holds
	stop    context.CancelFunc
	claimed atomic.Bool // somebody cleans up: the goroutine, or the answer that takes over
	done    chan struct{}
}

// shade is called with every token: it starts the shadows that are missing and
// tells the others how far they may go.
func (a *Answer) shade() {
	if a.run.Standbys == nil || a.limits.ShadeFrom < 0 || len(a.tokens) < a.limits.ShadeFrom {
		return
	}
	now := time.Now()
	for i, s := range a.grant.Route.Stages {
		sh := a.shades.by[s]
		if sh != nil && sh.over() {
			a.shades.remove(sh)
			sh = nil
		}
		if sh != nil {
			sh.advance(a.tokens[:a.proven:a.proven])
		} else if now.After(a.shades.again) && a.shades.tries[s] < shadowTries {
			a.cast(i)
		}
	}
	if now.After(a.shades.again) {
		a.shades.again = now.Add(shadowRetry)
	}
}

// cast starts the shadow of one stage, if there is a place for it.
func (a *Answer) cast(index int) {
	if a.purse.over() || !a.statesKept(index) {
		return
	}
	standby, err := a.run.Standbys.Standby(a.need, a.grant.Route, index)
	if err != nil {
		return
	}
	sh := &shadow{
		of: a.grant.Route.Stages[index], standby: standby, chunk: min(shadowChunk, a.limits.Chunk),
		proven: make(chan []int32, 1), done: make(chan struct{}),
	}
	if !a.lay(sh) {
		a.run.Standbys.Dismiss(standby.Token)
		return
	}
	a.shades.add(sh)
	ctx, stop := context.WithCancel(a.ctx)
	unhook := context.AfterFunc(standby.Revoked, stop)
	sh.stop = func() { unhook(); stop() }
	for _, l := range sh.links {
		l.watch(ctx, a.run.Router.Alive(l.stage.Node))
		context.AfterFunc(l.ctx, stop)
	}
	sh.advance(a.tokens[:a.proven:a.proven])
	go a.keep(ctx, sh)
}

// lay makes a shadow's links and finds their inputs: tokens, a log of the
// answer, or what the link before gives.
func (a *Answer) lay(sh *shadow) bool {
	layers := a.job.Layers
	sh.reached = make([]atomic.Int64, len(sh.standby.Stages))
	for i, s := range sh.standby.Stages {
		l := &link{index: i, stage: s, last: s.Layers.Last == layers-1, sent: -1}
		o := a.opening(l, false, false)
		o.Chaos = nil
		b, err := o.Encode()
		if err != nil {
			return false
		}
		sh.links, sh.opens = append(sh.links, l), append(sh.opens, b)
		at := s.Layers.First
		switch {
		case at == 0:
			sh.inputs = append(sh.inputs, nil)
		case a.logs[at] != nil:
			if base, _ := a.logs[at].span(); base > 0 {
				return false
			}
			sh.inputs = append(sh.inputs, a.logs[at])
		case i > 0 && sh.standby.Stages[i-1].Layers.Last == at-1:
			b := newBoundary(at, a.purse)
			sh.inputs, sh.fresh = append(sh.inputs, b), append(sh.fresh, b)
		default:
			return false
		}
	}
	return len(sh.links) > 0
}

// over says that a shadow has ended by itself.
func (sh *shadow) over() bool {
	select {
	case <-sh.done:
		return true
	default:
		return false
	}
}

// advance tells how far a shadow may go. It never waits.
func (sh *shadow) advance(proven []int32) {
	select {
	case <-sh.proven:
	default:
	}
	sh.proven <- proven
}

// keep is a shadow's life.
func (a *Answer) keep(ctx context.Context, sh *shadow) {
	defer close(sh.done)
	err := a.follows(ctx, sh)
	if a.run.Log != nil && ctx.Err() == nil {
		a.run.Log.Info("shadow lost", "job", a.job.ID, "of", sh.of, "because", err)
	}
	if sh.claimed.CompareAndSwap(false, true) {
		a.fade(sh)
	}
}

// follows opens a shadow's links and feeds them until ctx ends or one fails.
func (a *Answer) follows(ctx context.Context, sh *shadow) error {
	for i, l := range sh.links {
		opened, err := a.shake(ctx, l, sh.opens[i], false)
		if err != nil {
			return err
		}
		l.held, l.maxRows = opened.Held, opened.MaxRows
	}
	sh.opens = nil
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tokens := <-sh.proven:
			for sh.lag(len(tokens)) >= sh.chunk {
				if err := a.feed(ctx, sh, tokens); err != nil {
					return err
				}
			}
		}
	}
}

// lag is how many positions a rescue would have to replay.
func (sh *shadow) lag(total int) int { return total - sh.held() }

// held is how many positions all of a shadow's links hold.
func (sh *shadow) held() int {
	least := sh.links[0].held
	for _, l := range sh.links {
		least = min(least, l.held)
	}
	return least
}

// feed gives each link its next chunk, and rests.
func (a *Answer) feed(ctx context.Context, sh *shadow, tokens []int32) error {
	for i, l := range sh.links {
		step := stage.Step{Position: l.held, Want: stage.WantNothing}
		limit := min(sh.chunk, len(tokens)-l.held, l.maxRows)
		if limit <= 0 {
			continue
		}
		if in := sh.inputs[i]; in == nil {
			step.Tokens = tokens[l.held : l.held+limit]
		} else {
			rows, width, err := in.take(ctx, l.held, limit)
			if err != nil {
				return err
			}
			step.Hidden, step.Width = rows, width
		}
		var out *boundary
		if i+1 < len(sh.links) && slices.Contains(sh.fresh, sh.inputs[i+1]) {
			out, step.Want = sh.inputs[i+1], stage.WantHidden
		}
		if err := a.shadowStep(ctx, l, step, out); err != nil {
			return err
		}
		sh.reached[i].Store(int64(l.held))
	}
	return nil
}

func (a *Answer) shadowStep(ctx context.Context, l *link, step stage.Step, out *boundary) error {
	began := time.Now()
	ctx, done := l.under(ctx)
	defer done()
	if err := l.send(ctx, step); err != nil {
		return err
	}
	r, err := l.recv(ctx, a.patience(l, step.Rows()))
	if err != nil {
		return err
	}
	if err := fits(step, r); err != nil {
		return err
	}
	l.settled(step.Position + step.Rows())
	if out != nil {
		out.append(r.Position, r.Hidden, r.Width)
	}
	took := time.Since(began)
	a.run.Router.Observe(l.stage.Node, Sample{Rows: step.Rows(), Layers: l.layers(), Timing: r.Timing, Wall: took})
	return rest(ctx, shadowRest*took)
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// fade ends a shadow of which nothing is used.
func (a *Answer) fade(sh *shadow) {
	sh.stop()
	for _, l := range sh.links {
		l.end()
	}
	for _, b := range sh.fresh {
		b.reset(0)
	}
	a.run.Standbys.Dismiss(sh.standby.Token)
}

// halt stops a shadow's goroutine and leaves its links to the caller; false when
// it had ended by itself.
func (sh *shadow) halt() bool {
	mine := sh.claimed.CompareAndSwap(false, true)
	sh.stop()
	<-sh.done
	return mine
}

func (s *shades) add(sh *shadow) {
	if s.by == nil {
		s.by, s.tries = map[swarm.Stage]*shadow{}, map[swarm.Stage]int{}
	}
	s.by[sh.of] = sh
	s.tries[sh.of]++
}

func (s *shades) remove(sh *shadow) { delete(s.by, sh.of) }

// warmth is what a rescue of a stage may build upon: the positions that its
// shadow's nodes hold, and the room that they have for it.
func (a *Answer) warmth(of swarm.Stage) (warm map[string]int, standbys []uint64) {
	sh := a.shades.by[of]
	if sh == nil || sh.over() {
		return nil, nil
	}
	warm = map[string]int{}
	for i, s := range sh.standby.Stages {
		warm[s.Node] = int(sh.reached[i].Load())
	}
	return warm, []uint64{sh.standby.Token}
}

// takeOver hands the shadows that are part of a new route over to it: what their
// nodes hold is found by resuming. Shadows of stages that are not on the route
// any more are ended.
func (a *Answer) takeOver(route swarm.Route) {
	for _, sh := range a.shades.by {
		used := slices.ContainsFunc(sh.standby.Stages, func(s swarm.Stage) bool { return slices.Contains(route.Stages, s) })
		if !used && slices.Contains(route.Stages, sh.of) {
			continue
		}
		a.shades.remove(sh)
		if !sh.halt() {
			continue
		}
		for _, l := range sh.links {
			if slices.Contains(route.Stages, l.stage) {
				l.drop()
			} else {
				l.end()
			}
		}
		for _, b := range sh.fresh {
			if used && a.logs[b.layer] == nil {
				a.logs[b.layer] = b
			} else {
				b.reset(0)
			}
		}
		a.run.Standbys.Dismiss(sh.standby.Token)
	}
}

// clear ends all shadows and waits for them.
func (a *Answer) clear() {
	for _, sh := range a.shades.by {
		sh.stop()
	}
	for _, sh := range a.shades.by {
		<-sh.done
		a.shades.remove(sh)
	}
}
