package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

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
// been computed before. A prompt is proven chunk by chunk, as all stages have
// computed it, so that the shadow of a long one has caught up soon after the first
// token. From then on it lags by less than two chunks. It takes turns with the prompt
// (turns.go) and rests between its steps (pace.go), so long that it slows the answer by
// no more than 2%, its steps are the last that a node computes, and it is the first to
// go when room gets scarce.
// When the node that it stands by for fails, and the router's rescue goes to the
// shadow's place, the place is asked to resume, as if its connection had broken:
// it holds all but the lag.
const (
	shadowChunk = 32                     // rows; a shadow waits for so many
	shadowRetry = 500 * time.Millisecond // after a node found no place
	shadowTries = 3                      // shadows of one node that may be lost in one answer
	gaveWay     = 4                      // times as long as it was computed for: such a step tells nothing of answers'
)

// shades are the shadows of one answer.
type shades struct {
	all   []*shadow
	tries map[string]int // by the node that is stood by for
	again time.Time      // when to look for places again
	cast  int            // so far
	pace  pace
}

// of is the shadow that stands by for a node, or nil.
func (s *shades) of(node string) *shadow {
	for _, sh := range s.all {
		if slices.Contains(sh.of, node) {
			return sh
		}
	}
	return nil
}

func (s *shades) remove(gone *shadow) {
	s.all = slices.DeleteFunc(s.all, func(sh *shadow) bool { return sh == gone })
}

// shadow is kept by a goroutine of its own until done is closed; then links and
// logs belong to the answer.
type shadow struct {
	of      []string // nodes whose failure leads to its place; at least one
	name    string   // of its sessions: the answer may have others for the same layers there
	standby Standby
	links   []*link
	opens   [][]byte
	inputs  []*boundary // before each link; nil: the tokens
	fresh   []*boundary // those of inputs that the answer does not have
	chunk   int
	room    int // cells reserved on each of its nodes

	leads   chan lead      // capacity 1: the newest that is known of the answer
	reached []atomic.Int64 // by link: positions that its node holds
	stop    context.CancelFunc
	claimed atomic.Bool // somebody cleans up: the goroutine, or the answer that takes over
	done    chan struct{}
}

// lead is what a shadow follows.
type lead struct {
	tokens []int32 // that all stages have computed
	need   Need    // whose room the answer has
}

// errNarrow is why a shadow ends whose answer outgrew it.
var errNarrow = errors.New("there is no more room to spare for it")

// shade is called with every token: it starts the shadows that are missing and
// tells the others how far they may go.
func (a *Answer) shade() {
	if a.run.Standbys == nil || a.limits.ShadeFrom < 0 || len(a.tokens) < a.limits.ShadeFrom {
		return
	}
	if a.shades.pace.tokens < pacedTokens {
		return // how fast it is by itself must be known first
	}
	a.shades.pace.gate.open()
	a.tend(a.proven)
}

// tend starts the shadows that are missing, and lets all follow to where every
// stage has computed.
func (a *Answer) tend(proven int) {
	now := time.Now()
	looked := false
	for i, s := range a.grant.Route.Stages {
		sh := a.shades.of(s.Node)
		if sh != nil && sh.over() {
			a.shades.remove(sh)
			sh = nil
		}
		if sh == nil && now.After(a.shades.again) && a.shades.tries[s.Node] < shadowTries {
			a.cast(i)
			looked = true
		}
	}
	if looked {
		a.shades.again = now.Add(shadowRetry)
	}
	for _, sh := range a.shades.all {
		sh.advance(lead{a.tokens[:proven:proven], a.need})
	}
}

// cast starts the shadow for one stage's node, if there is a place for it.
func (a *Answer) cast(index int) {
	if a.purse.over() || !a.statesKept(index) {
		return
	}
	node := a.grant.Route.Stages[index].Node
	standby, err := a.run.Standbys.Standby(a.need, a.grant.Route, index)
	if err != nil {
		return
	}
	if same := a.shades.at(standby.Stages); same != nil {
		same.of = append(same.of, node)
		a.run.Standbys.Dismiss(standby.Token)
		return
	}
	a.shades.cast++
	sh := &shadow{
		of: []string{node}, name: fmt.Sprintf("%s+%d", a.job.ID, a.shades.cast), standby: standby, chunk: min(shadowChunk, a.limits.Chunk), room: a.need.Room(),
		leads: make(chan lead, 1), done: make(chan struct{}),
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
	go a.keep(ctx, sh)
}

// at is the shadow that is kept at just these places, or nil.
func (s *shades) at(places []swarm.Stage) *shadow {
	for _, sh := range s.all {
		if slices.Equal(sh.standby.Stages, places) && !sh.over() {
			return sh
		}
	}
	return nil
}

func (s *shades) add(sh *shadow) {
	if s.tries == nil {
		s.tries = map[string]int{}
	}
	s.all = append(s.all, sh)
	s.tries[sh.of[0]]++
}

// lay makes a shadow's links and finds their inputs: tokens, a log of the
// answer, or what the link before gives.
func (a *Answer) lay(sh *shadow) bool {
	layers := a.job.Layers
	sh.reached = make([]atomic.Int64, len(sh.standby.Stages))
	for i, s := range sh.standby.Stages {
		l := &link{index: i, stage: s, last: s.Layers.Last == layers-1, sent: -1}
		o := a.opening(l, false, false)
		o.Session, o.Chaos, o.Shadow = sh.name, nil, true
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
func (sh *shadow) advance(l lead) {
	select {
	case <-sh.leads:
	default:
	}
	sh.leads <- l
}

// keep is a shadow's life.
func (a *Answer) keep(ctx context.Context, sh *shadow) {
	defer close(sh.done)
	err := a.follows(ctx, sh)
	if a.run.Log != nil && ctx.Err() == nil {
		a.run.Log.Info("shadow lost", "job", a.job.ID, "of", sh.of, "at", sh.standby.Stages, "because", err)
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
		if err := a.believe(opened); err != nil {
			return err
		}
		l.welcomed(opened, sh.room)
	}
	sh.opens = nil
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case lead := <-sh.leads:
			if err := a.widen(ctx, sh, lead.need); err != nil {
				return err
			}
			if err := a.catchUp(ctx, sh, lead.tokens); err != nil {
				return err
			}
		}
	}
}

// widen gives a shadow the room that its answer has by now.
func (a *Answer) widen(ctx context.Context, sh *shadow, n Need) error {
	if n.Room() <= sh.room {
		return nil
	}
	if !a.run.Standbys.Widen(sh.standby.Token, n) {
		return errNarrow
	}
	sh.room = n.Room()
	for _, l := range sh.links {
		if !l.grows {
			return errNarrow
		}
		if err := a.growLink(ctx, l, sh.room); err != nil {
			return err
		}
	}
	return nil
}

// catchUp feeds all links at once: while one computes a chunk, the one before it
// computes the next.
func (a *Answer) catchUp(ctx context.Context, sh *shadow, tokens []int32) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range sh.links {
		g.Go(func() error { return a.feed(ctx, sh, i, tokens) })
	}
	return g.Wait()
}

// feed gives a link chunk after chunk, until less than one is missing. One link's
// input is another's output, which never ends sooner: it has the same goal.
func (a *Answer) feed(ctx context.Context, sh *shadow, i int, tokens []int32) error {
	l, in := sh.links[i], sh.inputs[i]
	for len(tokens)-l.held >= sh.chunk {
		step := stage.Step{Position: l.held, Want: stage.WantNothing}
		limit := min(sh.chunk, l.maxRows)
		if in == nil {
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
	if err := a.shades.pace.enter(ctx); err != nil {
		return err
	}
	began := time.Now()
	ctx, done := l.under(ctx)
	defer done()
	r, err := a.exchange(ctx, l, step)
	if err != nil {
		return err
	}
	if err := a.fits(step, r); err != nil {
		return err
	}
	l.settled(step.Position + step.Rows())
	if out != nil {
		out.append(r.Position, r.Hidden, r.Width)
	}
	took := time.Since(began)
	if took <= gaveWay*r.Timing.Compute {
		a.run.Router.Observe(l.stage.Node, Sample{Rows: step.Rows(), Layers: l.layers(), Timing: r.Timing, Wall: took})
	}
	return rest(ctx, a.shades.pace.rest(took))
}

// exchange has a shadow's node compute a step.
func (a *Answer) exchange(ctx context.Context, l *link, step stage.Step) (stage.Result, error) {
	defer a.shades.pace.leave()
	if err := l.send(ctx, step); err != nil {
		return stage.Result{}, err
	}
	return l.recv(ctx, leisure)
}

// leisure is how to wait for a step of a shadow: it has its turn when its node has
// nothing else to do. Whether the node is there at all the data plane finds out.
var leisure = wait{late: leisureTime, most: leisureTime, suspect: func() {}}

const leisureTime = 10 * time.Minute

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

// warmth is what a rescue from a node may build upon: the positions that the
// shadow's nodes hold, and the room that they have for it.
func (a *Answer) warmth(node string) (warm map[string]int, standbys []uint64) {
	sh := a.shades.of(node)
	if sh == nil || sh.over() {
		return nil, nil
	}
	warm = map[string]int{}
	for i, s := range sh.standby.Stages {
		held := int(sh.reached[i].Load())
		if other, twice := warm[s.Node]; twice {
			held = min(held, other)
		}
		warm[s.Node] = held
	}
	return warm, []uint64{sh.standby.Token}
}

// takeOver hands the shadows that are part of a new route over to it: what their
// nodes hold is found by resuming. Shadows that stand by for nobody on the route
// any more are ended.
func (a *Answer) takeOver(route swarm.Route) {
	for _, sh := range slices.Clone(a.shades.all) {
		vacant := a.vacant(sh, route)
		sh.of = slices.DeleteFunc(sh.of, func(node string) bool { return !route.Uses(node) })
		if len(vacant) == 0 && len(sh.of) > 0 {
			continue
		}
		a.shades.remove(sh)
		if !sh.halt() {
			continue
		}
		for _, l := range sh.links {
			if slices.Contains(vacant, l.stage) {
				a.sessions[l.stage] = sh.name
				l.drop()
			} else {
				l.end()
			}
		}
		for _, b := range sh.fresh {
			if len(vacant) > 0 && a.logs[b.layer] == nil {
				a.logs[b.layer] = b
			} else {
				b.reset(0)
			}
		}
		a.run.Standbys.Dismiss(sh.standby.Token)
	}
}

// vacant lists the places of a shadow that a new route goes to and that nobody
// serves yet: neither a stage that stays nor another shadow that was taken over.
func (a *Answer) vacant(sh *shadow, route swarm.Route) (out []swarm.Stage) {
	if sh.over() {
		return nil
	}
	for _, s := range sh.standby.Stages {
		served := slices.ContainsFunc(a.links, func(l *link) bool { return l != nil && l.stage == s })
		if _, taken := a.sessions[s]; !served && !taken && slices.Contains(route.Stages, s) {
			out = append(out, s)
		}
	}
	return out
}

// clear ends all shadows and waits for them.
func (a *Answer) clear() {
	for _, sh := range a.shades.all {
		sh.stop()
	}
	for _, sh := range a.shades.all {
		<-sh.done
	}
	a.shades.all = nil
}

// sessionOf names the session of a stage: the answer, or the shadow that was
// taken over there.
func (a *Answer) sessionOf(s swarm.Stage) string {
	if name, ok := a.sessions[s]; ok {
		return name
	}
	return a.job.ID
}
