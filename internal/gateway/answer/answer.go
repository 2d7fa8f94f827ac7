package answer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"hecate/internal/stage"
	"hecate/swarm"
)

// An Answer is being computed. Next and Close belong to one goroutine; Route,
// Rescues and Exact may be asked by any.
//
// Invariants between two calls of Next: len(tokens) >= proven; every link's
// held <= len(tokens) <= the need's room; each boundary of the route has its log.
type Answer struct {
	run    *Runner
	job    Job
	need   Need // its room is what the grant reserves
	limits Limits

	parent      context.Context // the request's
	ctx         context.Context // ends with it, or when the answer is closed
	cancel      context.CancelFunc
	waits       waits
	began       time.Time
	waited      time.Duration // for the first route
	waitedAgain bool          // for the token that is being computed
	told        bool          // the tracer knows of all of it
	failed      error         // what ended it
	contested   bool          // another try of the same answer may succeed where this one fails

	width    atomic.Int64 // values of a hidden row; 0: nobody has said
	grant    Grant
	links    []*link // by stage of the route; nil: to be opened
	logs     map[int]*boundary
	tokens   []int32 // prompt and emitted
	settling bool    // the last token was drawn; its state is computed for its own sake
	proven   int     // positions that a whole route has computed: they kill nobody
	purse    *purse
	shades   shades
	orphans  map[orphan]bool
	sessions map[swarm.Stage]string // of stages that a shadow had begun; others are called as the job

	facts atomic.Pointer[facts] // what others may ask

	story      story
	stuck      time.Time // when a way off a node that yields was last looked for in vain
	exactness  exactness
	struck     map[int]bool // orders of chaos that were carried out
	borne      map[int]bool // orders of chaos that living links carry
	suspicions []*suspicion // deaths that this answer may have caused
	company    company
}

// Start chooses a route and opens its stages. The context bounds the whole answer.
// A node that refuses or dies here is routed around.
func (r *Runner) Start(ctx context.Context, job Job) (*Answer, error) {
	if len(job.Prompt) == 0 || job.MaxTokens < 1 {
		return nil, fmt.Errorf("answer %s: prompt of %d tokens and at most %d to generate, want at least one of each", job.ID, len(job.Prompt), job.MaxTokens)
	}
	if err := r.Poison.check(job); err != nil {
		return nil, err
	}
	asked := time.Now()
	grant, err := r.Router.Choose(ctx, r.Limits.withDefaults().needOf(job))
	if err != nil {
		if r.Tracer != nil {
			r.Tracer.Span(ctx, Span{Kind: SpanQueue, Job: job.ID, Model: job.Model, Began: asked, Ended: time.Now(), Err: err})
		}
		return nil, err
	}
	a := r.answer(ctx, job, grant)
	a.began, a.waited = asked, time.Since(asked)
	a.span(Span{Kind: SpanQueue, Began: asked, Route: grant.Route.String()})
	if err := a.insist(func() error { return a.connect(false) }); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// answer makes an answer that follows a grant; its stages are not open yet.
func (r *Runner) answer(ctx context.Context, job Job, grant Grant) *Answer {
	a := &Answer{run: r, job: job, parent: ctx, grant: grant, logs: map[int]*boundary{}, sessions: map[swarm.Stage]string{}}
	a.limits = r.Limits.withDefaults()
	a.need = a.limits.needOf(job)
	a.tokens = append(make([]int32, 0, len(job.Prompt)+job.MaxTokens), job.Prompt...)
	a.purse = &purse{limit: a.limits.SessionBytes, all: r.Budget}
	a.began = time.Now()
	a.ctx, a.cancel = context.WithCancel(ctx)
	a.width.Store(int64(job.Width))
	a.publish()
	a.follow(grant.Route)
	return a
}

// Next computes the next token, whatever it takes. After an error the answer is
// over; the error wraps ErrNoWayOn, ErrQueryOfDeath, swarm's or the context's.
func (a *Answer) Next() (stage.Token, error) {
	var token stage.Token
	a.story.asked()
	fed := a.shades.pace.feeding.Load() > 0
	a.waitedAgain = false
	a.MakeWay()
	err := a.insist(func() (err error) {
		if err = a.ready(); err != nil {
			return err
		}
		token, err = a.pass(a.ctx)
		return err
	})
	if err != nil {
		return stage.Token{}, err
	}
	if a.Generated() == 0 || a.story.rescuing() || a.waitedAgain {
		a.accountAll(a.phase())
	}
	if a.Generated() > 0 && !a.story.rescuing() && !a.waitedAgain {
		a.shades.pace.observe(time.Since(a.story.since), fed)
	}
	a.proven = len(a.tokens)
	a.tokens = append(a.tokens, token.ID)
	a.story.resumed(a)
	a.shade()
	return token, nil
}

// Settle computes the last token's state too, on every stage, although nothing
// is drawn from it any more. An answer that a token limit or a stop string ended
// then leaves the same behind as one that the model ended itself: the state, and
// the count, of all its tokens. It is not worth a rescue.
func (a *Answer) Settle() {
	if slices.Contains(a.links, nil) || a.level(a.ctx) != nil || !a.even() {
		return
	}
	a.settling = true
	_, _ = a.decode(a.ctx, len(a.tokens))
}

// insist repeats an attempt, with a rescue between any two.
func (a *Answer) insist(attempt func() error) error {
	for {
		err := attempt()
		if err == nil {
			return nil
		}
		if err := a.rescue(err); err != nil {
			if a.failed = err; !a.contested {
				a.story.lost(a, err)
			}
			return err
		}
	}
}

// Close ends every stage and gives back what was reserved. It is idempotent.
func (a *Answer) Close() {
	a.cancel()
	a.summarise()
	a.clear()
	for i, l := range a.links {
		if l != nil {
			a.adopted(l)
			l.end()
		}
		a.links[i] = nil
	}
	a.dismiss()
	if a.grant.Token != 0 {
		a.run.Router.Release(a.grant)
		a.grant.Token = 0
	}
	a.company.part()
	a.purse.empty()
}

// facts are what the world may know of an answer; each is replaced as a whole.
type facts struct {
	route   swarm.Route
	rescued []Event // failures survived, in order
}

func (a *Answer) publish() { a.facts.Store(&facts{a.grant.Route, a.story.rescued}) }

// Route is the route as it is now; after a rescue it is another one.
func (a *Answer) Route() swarm.Route { return a.facts.Load().route }

// Rescues counts how often a failure was survived so far.
func (a *Answer) Rescues() int { return len(a.facts.Load().rescued) }

// Exact says whether all stages, past and present, were of one exactness class:
// then the text is what it would have been without any failure.
func (a *Answer) Exact() bool { return a.exactness.one() }

// Generated is how many tokens were emitted.
func (a *Answer) Generated() int { return len(a.tokens) - len(a.job.Prompt) }

// follow makes links and logs those of a route. Links to the same node and
// layers stay, and so do logs of boundaries that the new route has too.
func (a *Answer) follow(route swarm.Route) {
	for _, s := range route.Stages {
		a.company.join(s.Node, a.run.Router.Alive(s.Node))
	}
	old := a.links
	a.links = make([]*link, len(route.Stages))
	for i, s := range route.Stages {
		for j, l := range old {
			if l != nil && l.stage == s && l.last == (i == len(route.Stages)-1) {
				l.index = i
				a.links[i], old[j] = l, nil
				break
			}
		}
	}
	for _, l := range old {
		if l != nil {
			a.account(l, a.phase())
			l.end()
		}
	}
	for s := range a.sessions {
		if !slices.Contains(route.Stages, s) {
			delete(a.sessions, s)
		}
	}
	a.followLogs(route)
}

func (a *Answer) followLogs(route swarm.Route) {
	logs := map[int]*boundary{}
	for _, s := range route.Stages[1:] {
		at := s.Layers.First
		if logs[at] = a.logs[at]; logs[at] == nil {
			logs[at] = newBoundary(at, a.purse)
		}
	}
	for at, b := range a.logs {
		if logs[at] == nil {
			b.reset(0)
		}
	}
	a.logs = logs
}

// connect opens the stages that have no link, all at once.
func (a *Answer) connect(rescue bool) error {
	if !slices.Contains(a.links, nil) {
		return nil
	}
	a.bear()
	began := time.Now()
	var g errgroup.Group
	stages := a.grant.Route.Stages
	for i, s := range stages {
		if a.links[i] != nil {
			continue
		}
		g.Go(func() error {
			l, err := a.open(a.ctx, i, s, i == len(stages)-1, rescue)
			if err == nil {
				a.links[i] = l
			}
			return err
		})
	}
	err := g.Wait()
	a.span(Span{Kind: SpanOpen, Began: began, Route: a.grant.Route.String(), Err: err})
	for _, l := range a.links {
		if rescue && l != nil {
			a.story.replays(len(a.tokens) - 1 - l.held)
		}
	}
	return err
}
