package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
)

// A Dispatcher chooses routes without ever waiting; dispatch.Dispatcher is one.
// Choose fails with dispatch.ErrFull when waiting for room may help, with
// swarm.ErrNoRoute when waiting for nodes may, and for good with all else.
type Dispatcher interface {
	answer.Router
	answer.Standbys
	// ChooseAll is Choose for all answers of a request, or none. A failure
	// changes nothing: Changed does not tell of it.
	ChooseAll(ctx context.Context, n answer.Need) ([]answer.Grant, error)
	// Changed gives a channel that closes when a choice that failed may succeed.
	Changed() <-chan struct{}
	// Expected is what answers of a model will ask for as they grow, by node;
	// ExpectAfar takes what those of another gateway will.
	Expected(model string) map[string]dispatch.Growth
	ExpectAfar(gateway, model string, growth map[string]dispatch.Growth)
	// Crowd asks all shadows to give their room back.
	Crowd()
	// Blame takes failures into the books when no rescue follows.
	Blame(n answer.Need, failed []answer.Failure)
}

// Admission is a Router whose Choose waits its turn. It is safe for concurrent
// use. Its lock is held while the dispatcher chooses or releases, never while
// anybody waits; the dispatcher must not call back.
type Admission struct {
	Dispatcher
	limits  Limits
	poke    chan struct{} // capacity 1: the times at which something is due have changed
	claimed chan struct{} // capacity 1: somebody else is the oldest that wants room

	mu struct {
		sync.Mutex
		queues  map[string]*queue // by model; few, and kept for their pace
		tickets map[uint64]*ticket
		claims  map[joint][]*ticket // granted together, not yet asked for
		next    uint64
		latest  time.Time // when the last answer was admitted
		serving bool      // the goroutine runs: somebody waits
		counts  counts
	}
}

// ticket is one admitted answer.
type ticket struct {
	token    uint64
	queue    *queue
	need     answer.Need
	cells    int       // that it has by now
	deadline time.Time // of the wait that it was admitted from
	sentBack bool      // a node refused it; deadline then bounds all its waits together
	reached  int       // tokens that it had when it last gave way; deadline then bounds its waits until it has more

	inner answer.Grant  // the dispatcher's
	held  bool          // inner stands; false while a refused answer waits again
	leave chan struct{} // closed when its room is wanted
	asked bool          // it is
	began time.Time     // since when it has them, on average
	spent float64       // cells times seconds before it last gave way

	arrived  time.Time // of its request
	admitted time.Time // its age; without a monotonic reading
}

func (t *ticket) grant() answer.Grant {
	return answer.Grant{Route: t.inner.Route, Token: t.token, Wanted: t.leave}
}

// New puts queues in front of a dispatcher.
func New(d Dispatcher, l Limits) *Admission {
	a := &Admission{Dispatcher: d, limits: l.withDefaults(), poke: make(chan struct{}, 1), claimed: make(chan struct{}, 1)}
	a.mu.queues = map[string]*queue{}
	a.mu.tickets = map[uint64]*ticket{}
	a.mu.claims = map[joint][]*ticket{}
	a.mu.counts.refused = map[Reason]int64{}
	return a
}

// Choose reserves the cheapest route, waiting for room or readiness as long as
// the limits and ctx allow. It fails with a Refusal, with the context's cause,
// or with what the dispatcher found wrong with the request itself.
func (a *Admission) Choose(ctx context.Context, n answer.Need) (answer.Grant, error) {
	if ctx.Err() != nil {
		return answer.Grant{}, context.Cause(ctx)
	}
	w := a.newcomer(ctx, n)
	a.mu.Lock()
	if t := a.claimLocked(n); t != nil {
		a.mu.Unlock()
		return t.grant(), nil
	}
	a.mu.next++
	w.seq = a.mu.next
	err := a.enterLocked(w)
	a.mu.Unlock()
	if err != nil {
		return answer.Grant{}, err
	}
	return a.wait(w)
}

func (a *Admission) newcomer(ctx context.Context, n answer.Need) *waiter {
	now := time.Now()
	w := &waiter{
		ctx: ctx, need: n, result: make(chan result, 1),
		flow:    flowKey{n.Key, min(max(n.Priority, -MostPriority), MostPriority)},
		cells:   n.Room() * max(1, n.Choices),
		arrived: now, deadline: now.Add(a.limits.Patience),
	}
	if t, ok := ctx.Deadline(); ok && t.Before(w.deadline) {
		w.deadline = t
	}
	return w
}

// enterLocked grants a request at once or lets it wait; an error refuses it.
func (a *Admission) enterLocked(w *waiter) error {
	now := w.arrived
	q := a.queueLocked(w.need.Model)
	if len(q.waiting) == 0 && len(q.pressing) == 0 && !q.wantedAfar() {
		t, err := a.tryLocked(q, w, now)
		if t != nil {
			a.mu.counts.admit(0)
			w.result <- result{ticket: t}
			return nil
		}
		l, reason := judge(err)
		if l == nothing {
			return a.refusalLocked(q, w, reason, err, now)
		}
		q.mark(w, l, err, now)
	}
	if len(q.waiting) >= a.limits.Waiting && !a.makePlaceLocked(q, w, now) {
		return a.refusalLocked(q, w, QueueFull, nil, now)
	}
	q.add(w)
	q.fair.forget(a.limits.Flows, func(k flowKey) bool { return q.of(k) > 0 })
	// Who is next may find room at any moment, whatever the average says.
	if n, ahead := q.ahead(w); n > 0 && q.outage.IsZero() && q.pace.wait(ahead, w.cells, now) > w.deadline.Sub(now) {
		err := a.refusalLocked(q, w, WaitTooLong, nil, now)
		q.drop(w)
		return err
	}
	if len(q.waiting) > 1 {
		a.passLocked(q, now) // it may be small enough to pass
	}
	a.attendLocked()
	return nil
}

// makePlaceLocked sends the last request of the flow with the most away, if the
// newcomer's flow has less: one key cannot fill the queue for all.
func (a *Admission) makePlaceLocked(q *queue, w *waiter, now time.Time) bool {
	last, most := q.longest()
	if last == nil || q.of(w.flow)+1 >= most {
		return false
	}
	a.refuseLocked(q, last, QueueFull, nil, now)
	return true
}

func (a *Admission) queueLocked(model string) *queue {
	q := a.mu.queues[model]
	if q == nil {
		q = &queue{model: model}
		a.mu.queues[model] = q
	}
	return q
}

// wait waits for what becomes of a request.
func (a *Admission) wait(w *waiter) (answer.Grant, error) {
	select {
	case r := <-w.result:
		return r.grant()
	case <-w.ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.counts.left++
	if w.queued {
		q := a.mu.queues[w.need.Model]
		q.drop(w)
		a.announceLocked()
		a.passLocked(q, time.Now()) // it may have held others up
		a.attendLocked()
	} else if r := <-w.result; r.ticket != nil && w.again == nil {
		a.releaseLocked(r.ticket) // granted at that very moment
	}
	return answer.Grant{}, context.Cause(w.ctx)
}

func (r result) grant() (answer.Grant, error) {
	if r.err != nil {
		return answer.Grant{}, r.err
	}
	return r.ticket.grant(), nil
}

// Release gives back what a grant reserved, once.
func (a *Admission) Release(g answer.Grant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.releaseLocked(a.ticketLocked(g))
}

func (a *Admission) releaseLocked(t *ticket) {
	delete(a.mu.tickets, t.token)
	if !t.held {
		return
	}
	t.held = false
	t.queue.pace.end(t.cells, t.spent, t.began, time.Now())
	a.Dispatcher.Release(t.inner)
}

func (a *Admission) ticketLocked(g answer.Grant) *ticket {
	t := a.mu.tickets[g.Token]
	if t == nil {
		panic("BUG: a grant is used after its release")
	}
	return t
}

// Virtual times before all newcomers.
var (
	midway = math.Inf(-1)     // of answers that have begun
	again  = -math.MaxFloat64 // of answers that a node had no room for after all
)
