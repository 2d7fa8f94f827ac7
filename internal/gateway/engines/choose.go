package engines

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hecate/swarm"
)

// Limits of waiting for an engine with a free place. Zero fields mean the defaults.
type Limits struct {
	Waiting  int           // requests per model; default 256, as for our own models
	Patience time.Duration // of each; default 30 s
}

func (l Limits) withDefaults() Limits {
	if l.Waiting <= 0 {
		l.Waiting = 256
	}
	if l.Patience <= 0 {
		l.Patience = 30 * time.Second
	}
	return l
}

var (
	// ErrNone: no engine that serves the model can be used, or is left to try.
	ErrNone = errors.New("no engine that serves the model can be used")
	// ErrFull: those that can be used have as many requests as they may.
	ErrFull = errors.New("all engines that serve the model are busy")
)

// A Busy error says why a request was not admitted.
type BusyError struct {
	Waiting int
	Retry   time.Duration
}

func (b *BusyError) Error() string { return fmt.Sprintf("%d requests wait before this one", b.Waiting) }

// Is reports whether target is ErrFull.
func (b *BusyError) Is(target error) bool { return target == ErrFull }

// A PausedError says that all engines that could answer want to be left alone.
type PausedError struct{ Retry time.Duration }

func (p *PausedError) Error() string { return "they have asked to be left alone for a while" }

// Is reports whether target is ErrNone: there is nobody to ask now.
func (p *PausedError) Is(target error) bool { return target == ErrNone }

// pausedLocked is how long until the first engine that asked for a pause may be
// asked again; 0 when there is none.
func (r *Engines) pausedLocked(model string, tried []string, now time.Time) (wait time.Duration) {
	for id, e := range r.mu.by {
		if left := e.paused.Sub(now); left > 0 && e.state == up && !slices.Contains(tried, id) && e.serves(model) != "" && (wait == 0 || left < wait) {
			wait = left
		}
	}
	return wait
}

// grant is a place on an engine. release gives it back, once.
type grant struct {
	engine *engine
	own    string // the engine's name of the model
	lease  *swarm.Lease
	key    string
	model  string
	cost   swarm.Cost
	last   bool // there is no other one to try
}

// queue is who waits for a model, and who has places, by key.
type queue struct {
	waiting []*waiter
	running map[string]int
	served  map[string]uint64 // when a key had its last turn; kept while anybody waits or runs
}

type waiter struct {
	call    *Call
	tried   []string
	granted chan *grant // capacity 1
}

// policy: no chains, they cannot be assembled out of one layer anyway.
var policy = swarm.Policy{Assemble: swarm.AssembleNever}

// choose reserves the cheapest engine that was not tried yet. While all are full
// it waits its turn: keys take turns.
func (r *Engines) choose(ctx context.Context, c *Call, tried []string) (*grant, error) {
	r.mu.Lock()
	g, err := r.chooseLocked(c, tried)
	if g != nil || !errors.Is(err, ErrFull) {
		r.mu.Unlock()
		return g, err
	}
	q := r.queueLocked(c.Model)
	if len(q.waiting) >= r.cfg.Limits.Waiting {
		busy := r.busyLocked(c, q)
		r.mu.Unlock()
		return nil, busy
	}
	w := &waiter{call: c, tried: tried, granted: make(chan *grant, 1)}
	q.waiting = append(q.waiting, w)
	r.mu.Unlock()
	return r.wait(ctx, q, w)
}

func (r *Engines) wait(ctx context.Context, q *queue, w *waiter) (*grant, error) {
	late := time.NewTimer(r.cfg.Limits.Patience)
	defer late.Stop()
	var err error
	select {
	case g := <-w.granted:
		return orGone(g)
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-late.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(q.waiting, w)
	if i < 0 { // granted at that very moment
		g, gone := orGone(<-w.granted)
		if err == nil || g == nil {
			return g, cmp.Or(err, gone)
		}
		r.releaseLocked(g)
		return nil, err
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if err == nil {
		err = r.busyLocked(w.call, q)
	}
	return nil, err
}

// orGone: nobody is left who could be waited for.
func orGone(g *grant) (*grant, error) {
	if g == nil {
		return nil, ErrNone
	}
	return g, nil
}

// busyLocked estimates when a place may be free.
func (r *Engines) busyLocked(c *Call, q *queue) *BusyError {
	places, stay := 0, swarm.Reading{}
	for _, e := range r.mu.by {
		if e.serves(c.Model) != "" && e.state == up {
			places += e.rec.Parallel
			stay = e.measures.stay
		}
	}
	seconds := stay.Value / 1000 * float64(len(q.waiting)+1) / float64(max(1, places))
	return &BusyError{Waiting: len(q.waiting), Retry: min(max(time.Duration(seconds*float64(time.Second)), leastPause), mostPause)}
}

func (r *Engines) queueLocked(model string) *queue {
	q := r.mu.queues[model]
	if q == nil {
		q = &queue{running: map[string]int{}, served: map[string]uint64{}}
		r.mu.queues[model] = q
	}
	return q
}

// chooseLocked reserves a place at once or fails.
func (r *Engines) chooseLocked(c *Call, tried []string) (*grant, error) {
	now := time.Now()
	for _, e := range r.mu.by {
		r.signalLocked(e, now) // circuits and pauses end by themselves
	}
	for _, id := range tried {
		if e := r.mu.by[id]; e != nil {
			s := e.signals(now)
			s.Circuit = swarm.CircuitOpen
			_ = r.mu.fleet.Signal(id, s)
		}
	}
	r.mu.draws++
	route, err := r.mu.router.Choose(c.Model, swarm.AdaptiveRequest{
		PromptTokens: c.PromptTokens, OutputTokens: swarm.ExpectedTokens(c.OutputTokens, swarm.Reading{}), KVTokens: 1, Draw: r.mu.draws * 0x9E3779B97F4A7C15,
	}, policy)
	if err != nil {
		var no *swarm.NoRouteError
		if errors.As(err, &no) && no.Lack == swarm.LackRoom {
			return nil, ErrFull
		}
		if wait := r.pausedLocked(c.Model, tried, now); wait > 0 {
			return nil, &PausedError{Retry: wait}
		}
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return r.grantLocked(c, route, tried, now), nil
}

func (r *Engines) grantLocked(c *Call, route swarm.Route, tried []string, now time.Time) *grant {
	e := r.mu.by[route.Stages[0].Node]
	e.circuit.Allow(now)
	e.running++
	e.requests++
	q := r.queueLocked(c.Model)
	q.running[c.Key]++
	q.served[c.Key] = r.mu.draws
	q.forget(r.mu.draws)
	return &grant{
		engine: e, own: e.serves(c.Model), lease: r.mu.fleet.Reserve(route, 1), key: c.Key, model: c.Model, cost: route.Cost,
		last: !r.othersLocked(c.Model, append(tried[:len(tried):len(tried)], e.rec.ID), now),
	}
}

// othersLocked says that some engine is left that could be tried.
func (r *Engines) othersLocked(model string, tried []string, now time.Time) bool {
	for id, e := range r.mu.by {
		if !slices.Contains(tried, id) && e.state == up && !now.Before(e.paused) && e.circuit.State(now) != swarm.CircuitOpen && e.serves(model) != "" {
			return true
		}
	}
	return false
}

// release gives a place back, with what was learnt of the engine.
func (r *Engines) release(g *grant, learn func(*engine, time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if learn != nil {
		learn(g.engine, time.Now())
	}
	r.releaseLocked(g)
}

func (r *Engines) releaseLocked(g *grant) {
	g.lease.Release()
	g.engine.circuit.Abandon()
	g.engine.running--
	q := r.queueLocked(g.model)
	if q.running[g.key]--; q.running[g.key] == 0 {
		delete(q.running, g.key)
	}
	if len(q.waiting) == 0 && len(q.running) == 0 {
		delete(r.mu.queues, g.model)
	}
	r.serveAllLocked()
}

// serveAllLocked lets those in who wait: a place on an engine is one for all its models.
func (r *Engines) serveAllLocked() {
	for model, q := range r.mu.queues {
		r.serveLocked(model, q)
	}
}

func (r *Engines) serveLocked(model string, q *queue) {
	for len(q.waiting) > 0 {
		next := slices.MinFunc(q.waiting, q.before)
		g, err := r.chooseLocked(next.call, next.tried)
		if errors.Is(err, ErrFull) {
			break
		}
		i := slices.Index(q.waiting, next)
		q.waiting = slices.Delete(q.waiting, i, i+1)
		next.granted <- g // nil: there is nobody to wait for any more
	}
	if len(q.waiting) == 0 && len(q.running) == 0 {
		delete(r.mu.queues, model)
	}
}

// mostServed is how many turns ago a key's last one counts for nothing any more, where
// nothing of it waits or runs: keys may be many and come once each.
const mostServed = 1024

// forget drops keys whose turn was that long ago.
func (q *queue) forget(now uint64) {
	if len(q.served) <= 2*mostServed {
		return
	}
	for k, turn := range q.served {
		waits := func(w *waiter) bool { return w.call.Key == k }
		if turn+mostServed <= now && q.running[k] == 0 && !slices.ContainsFunc(q.waiting, waits) {
			delete(q.served, k)
		}
	}
}

// before orders those who wait: who has less running, then whose last turn is longer
// ago, then who came first (the order in which they stand).
func (q *queue) before(a, b *waiter) int {
	return cmp.Or(cmp.Compare(q.running[a.call.Key], q.running[b.call.Key]), cmp.Compare(q.served[a.call.Key], q.served[b.call.Key]))
}

// Price is what the cheapest engine would cost now, and whether its speed was
// measured; false when none can be used.
func (r *Engines) Price(c *Call) (cost swarm.Cost, measured, can bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	route, err := r.mu.router.Choose(c.Model, swarm.AdaptiveRequest{
		PromptTokens: c.PromptTokens, OutputTokens: swarm.ExpectedTokens(c.OutputTokens, swarm.Reading{}), KVTokens: 1,
	}, swarm.Policy{Assemble: swarm.AssembleNever, Explore: -1})
	if err != nil {
		return swarm.Infinite, false, false
	}
	e := r.mu.by[route.Stages[0].Node]
	return route.Cost, e.measures.token.Known, true
}
