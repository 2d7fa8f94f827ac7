package admission

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/swarm"
)

// A waiter is one request in a queue. All but result belongs to the queue.
type waiter struct {
	ctx   context.Context
	need  answer.Need
	flow  flowKey
	cells int     // of KV cache on each stage, over all of its answers
	start float64 // virtual time; the queue's order
	seq   uint64  // order of arrival
	again *ticket // it was granted already, and a node refused it; nil: it is new

	arrived  time.Time
	deadline time.Time
	passed   int       // cells granted to requests behind it; <= cells
	holding  time.Time // since when it holds others up; zero: it does not
	unready  time.Time // since when nodes are what it lacks; zero: it lacks room
	why      error     // what the dispatcher said then

	queued bool
	result chan result // capacity 1; exactly one comes unless the waiter leaves
}

// begun says that it is an answer that ran already and gave way. Nobody passes it.
func (w *waiter) begun() bool { return w.again != nil && w.need.Begun }

// result ends a wait.
type result struct {
	ticket *ticket
	err    error
}

// queue is the waiting room of one model: a value without clock or lock.
//
// Invariants: waiting is sorted by compareWaiters; len(waiting) <= limit, but
// for requests that come again; fair is reset when nobody waits.
type queue struct {
	model   string
	waiting []*waiter
	fair    fairness
	pace    pace

	// pressing are answers that run and for which room is being made; until they have
	// it nobody else gets any. By node, what younger ones of other gateways are to
	// give; nil: those of this one do.
	pressing map[*ticket]map[string]int
	afar     map[string]Claim // what other gateways' answers want, by gateway

	outage time.Time // since when requests have lacked nodes; zero: the last one did not
	lacked time.Time // when the last one did
}

// A lack is what a request waits for.
type lack int

const (
	nothing lack = iota // the dispatcher was not asked, or it refused for good
	room
	nodes
)

// judge takes what the dispatcher said: what waiting is for, or the reason why
// it is no use; no reason means that the request itself is wrong.
func judge(err error) (lack, Reason) {
	switch {
	case errors.Is(err, errAlone):
		return nothing, NoRoom
	case errors.Is(err, dispatch.ErrFull):
		return room, ""
	case errors.Is(err, dispatch.ErrTooLarge):
		return nothing, TooLarge
	case errors.Is(err, swarm.ErrNoRoute):
		return nodes, ""
	}
	return nothing, ""
}

// mark notes what a request was found to lack.
func (q *queue) mark(w *waiter, l lack, because error, now time.Time) {
	switch {
	case l == room:
		w.unready, w.why = time.Time{}, nil
	case w.unready.IsZero():
		w.unready, w.why = now, because
	default:
		w.why = because
	}
	switch {
	case l == room:
		q.outage = time.Time{}
		return
	case q.outage.IsZero(), now.Sub(q.lacked) > outageMemory:
		q.outage = now
	}
	q.lacked = now
}

// outageMemory is how long nobody may have asked for two lacks of nodes to be the
// same outage.
const outageMemory = time.Minute

func compareWaiters(a, b *waiter) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.flow.priority, a.flow.priority), cmp.Compare(a.seq, b.seq))
}

// add puts a request into its place.
func (q *queue) add(w *waiter) {
	if w.again == nil {
		w.start = q.fair.enter(w.flow, w.cells)
	}
	i, _ := slices.BinarySearchFunc(q.waiting, w, compareWaiters)
	q.waiting = slices.Insert(q.waiting, i, w)
	w.queued = true
}

// grant takes out a request that is served. Those it passes remember it.
func (q *queue) grant(w *waiter) {
	i := slices.Index(q.waiting, w)
	for _, ahead := range q.waiting[:i] {
		ahead.passed += w.cells
	}
	if w.again == nil {
		q.fair.serve(w.start)
	}
	q.remove(i)
}

// drop takes out a request that is not served; its flow is not charged for it.
func (q *queue) drop(w *waiter) {
	i := slices.Index(q.waiting, w)
	q.remove(i)
	if w.again != nil || len(q.waiting) == 0 {
		return
	}
	q.fair.refund(w.flow, w.cells)
	for _, o := range q.waiting[i:] {
		if o.flow == w.flow && o.again == nil {
			o.start -= w.flow.charge(w.cells)
		}
	}
	slices.SortFunc(q.waiting, compareWaiters)
}

func (q *queue) remove(i int) {
	q.waiting[i].queued = false
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if len(q.waiting) == 0 {
		q.fair.reset()
	}
}

// longest is the last request of the flow with the most requests waiting, and
// how many those are; nil when all that wait come again.
func (q *queue) longest() (last *waiter, most int) {
	count := map[flowKey]int{}
	for _, w := range q.waiting {
		if w.again == nil {
			count[w.flow]++
		}
	}
	for _, w := range slices.Backward(q.waiting) {
		if n := count[w.flow]; w.again == nil && n > most {
			last, most = w, n
		}
	}
	return last, most
}

// of counts the requests of a flow.
func (q *queue) of(k flowKey) int {
	n := 0
	for _, w := range q.waiting {
		if w.flow == k {
			n++
		}
	}
	return n
}

// ahead is how many requests, and cells, come before a request.
func (q *queue) ahead(w *waiter) (n, cells int) {
	for _, o := range q.waiting {
		if o == w {
			break
		}
		n++
		cells += o.cells
	}
	return n, cells
}

// midway counts answers that have begun among the first n that wait.
func (q *queue) midway(n int) (count int) {
	for _, w := range q.waiting[:n] {
		if w.begun() {
			count++
		}
	}
	return count
}

// cells is what all that wait ask for.
func (q *queue) cells() int {
	total := 0
	for _, w := range q.waiting {
		total += w.cells
	}
	return total
}

// due is when the queue must be looked at again even if nothing changes; zero:
// never.
func (q *queue) due(l Limits) time.Time {
	var next time.Time
	for _, w := range q.waiting {
		for _, t := range [...]time.Time{q.ends(w, l), w.yields(l)} {
			if !t.IsZero() && (next.IsZero() || t.Before(next)) {
				next = t
			}
		}
	}
	return next
}

// yields is when a request lets others pass again; zero: it holds nobody up.
func (w *waiter) yields(l Limits) time.Time {
	if w.holding.IsZero() {
		return time.Time{}
	}
	return w.holding.Add(l.Hold)
}

// rescueTime is how long an answer that has begun waits for nodes, as it does in
// a rescue.
const rescueTime = 20 * time.Second

// ends is when a request is refused if nothing changes.
func (q *queue) ends(w *waiter, l Limits) time.Time {
	if w.unready.IsZero() {
		return w.deadline
	}
	since, most := w.unready, l.NotReady
	if w.begun() {
		most = max(most, rescueTime)
	} else if w.need.StandIn && q.outage.Before(since) {
		since = q.outage // others have waited for the model's return already
	}
	if t := since.Add(most); t.Before(w.deadline) {
		return t
	}
	return w.deadline
}
