package gateway

import (
	"context"
	"errors"
	"sync"

	"hecate/internal/event"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/swarm"
)

// observed is the router that answers really ask: it notes where they go and
// what is refused, and leaves all decisions to the admission behind it.
type observed struct {
	*admission.Admission
	traffic  *traffic
	refusals *refusals
}

func (o observed) Choose(ctx context.Context, n answer.Need) (answer.Grant, error) {
	g, err := o.Admission.Choose(ctx, n)
	if err != nil {
		o.refusals.note(n.Model, err)
		return g, err
	}
	o.traffic.begin(n, g)
	return g, nil
}

func (o observed) Rescue(ctx context.Context, n answer.Need, g answer.Grant, failed []answer.Failure, p answer.Progress) (answer.Grant, answer.RescueKind, error) {
	next, kind, err := o.Admission.Rescue(ctx, n, g, failed, p)
	if err == nil {
		o.traffic.end(g)
		o.traffic.begin(n, next)
	}
	return next, kind, err
}

func (o observed) GiveWay(ctx context.Context, n answer.Need, g answer.Grant, failed []answer.Failure) (answer.Grant, error) {
	next, err := o.Admission.GiveWay(ctx, n, g, failed)
	if err == nil {
		o.traffic.end(g)
		o.traffic.begin(n, next)
	}
	return next, err
}

func (o observed) Around(n answer.Need, route swarm.Route, slow string) (answer.Grant, error) {
	g, err := o.Admission.Around(n, route, slow)
	if err == nil {
		o.traffic.begin(n, g)
	}
	return g, err
}

func (o observed) Release(g answer.Grant) {
	o.traffic.end(g)
	o.Admission.Release(g)
}

// traffic knows which answers run over which stages now.
type traffic struct {
	mu    sync.Mutex
	runs  map[uint64]flow // by the grant's token
	now   map[string]int  // how many run over a route
	peak  map[string]int  // the most since the last look: short answers are seen too
	shape map[string]flow // of every route in now or peak
}

// flow is one way through the nodes.
type flow struct {
	job, model string
	stages     []swarm.Stage
	key        string
}

func newTraffic() *traffic {
	return &traffic{runs: map[uint64]flow{}, now: map[string]int{}, peak: map[string]int{}, shape: map[string]flow{}}
}

func (t *traffic) begin(n answer.Need, g answer.Grant) {
	f := flow{job: n.Job, model: n.Model, stages: g.Route.Stages, key: n.Model + " " + routeHeader(g.Route)}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runs[g.Token] = f
	t.now[f.key]++
	t.peak[f.key] = max(t.peak[f.key], t.now[f.key])
	t.shape[f.key] = f
}

func (t *traffic) end(g answer.Grant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f, ok := t.runs[g.Token]
	if !ok {
		return
	}
	delete(t.runs, g.Token)
	if t.now[f.key]--; t.now[f.key] == 0 {
		delete(t.now, f.key)
	}
}

// modelOf names the model of a running answer, "" when it runs no more.
func (t *traffic) modelOf(job string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.runs {
		if f.job == job {
			return f.model
		}
	}
	return ""
}

// look gives, by route, the most answers that ran at once since the last look.
func (t *traffic) look() map[string]flowCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make(map[string]flowCount, len(t.peak))
	for key, n := range t.peak {
		out[key] = flowCount{t.shape[key], n}
	}
	clear(t.peak)
	for key := range t.shape {
		if t.now[key] == 0 {
			delete(t.shape, key)
		}
	}
	for key, n := range t.now {
		t.peak[key] = n
	}
	return out
}

type flowCount struct {
	flow
	count int
}

// refusals gathers what was refused, so that a crowd at a full queue makes one
// event for each look, and not one for each of them.
type refusals struct {
	mu    sync.Mutex
	count map[refusal]int
}

type refusal struct {
	model  string
	reason admission.Reason
}

func newRefusals() *refusals { return &refusals{count: map[refusal]int{}} }

func (r *refusals) note(model string, err error) {
	var why *admission.Refusal
	if !errors.As(err, &why) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[refusal{model, why.Reason}]++
}

func (r *refusals) tell(events *event.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for what, n := range r.count {
		events.Publish(event.Refusal{Model: what.model, Reason: string(what.reason), Count: n})
	}
	clear(r.count)
}
