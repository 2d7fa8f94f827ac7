package control

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"hecate/swarm"
)

// A Planner computes a plan; it is swarm's. previous may be nil.
type Planner func(nodes []swarm.NodeProfile, models []swarm.ModelSpec, previous *swarm.Plan) (*swarm.Plan, error)

// Patience says how long the planner waits before it believes things.
type Patience struct {
	// ReplanAfter is how long a dead node keeps its place in the plan; 0: 60 s.
	ReplanAfter time.Duration
	// LeaveAfter is the same for one that said goodbye: long enough to restart
	// a process; 0: 3 s.
	LeaveAfter time.Duration
	// Settle lets simultaneous changes become one plan; 0: 300 ms.
	Settle time.Duration
	// FirstNodes is how many nodes the very first plan waits for, at most
	// FirstWait (0: 15 s): so that a swarm that starts as a whole loads once.
	FirstNodes int
	FirstWait  time.Duration
}

func (p Patience) withDefaults() Patience {
	fill := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	fill(&p.ReplanAfter, 60*time.Second)
	fill(&p.LeaveAfter, 3*time.Second)
	fill(&p.Settle, 300*time.Millisecond)
	fill(&p.FirstWait, 15*time.Second)
	return p
}

// planning is everything that one decision looks at. It is a value.
type planning struct {
	now      time.Time
	began    time.Time // when this leader began to look
	epoch    uint64
	patience Patience // with defaults
	nodes    map[string]*NodeRecord
	models   map[string]*ModelRecord
	view     *View
	previous *PlanDocument // nil: none
	// generation is the highest seen: it never goes back, also when the plan
	// was deleted or damaged.
	generation uint64
}

// A decision is a plan to write (nil: the one there is good), and when to look
// again though nothing happens (zero: never).
type decision struct {
	document *PlanDocument
	recheck  time.Time
}

// decide computes the plan that should hold now.
func (p planning) decide(planner Planner) (decision, error) {
	profiles, recheck := p.participants()
	if wait, until := p.tooEarly(profiles); wait {
		return decision{recheck: earliest(recheck, until)}, nil
	}
	plan, err := p.plan(planner, profiles)
	if err != nil {
		return decision{recheck: recheck}, err
	}
	next := p.frame(plan)
	if p.previous != nil && p.same(next) {
		return decision{recheck: recheck}, nil
	}
	return decision{document: next, recheck: recheck}, nil
}

// hearWithin is how long a new leader waits to be told what nodes hold: they
// report each second.
const hearWithin = 3 * time.Second

// tooEarly reports whether to wait, for a first plan until the swarm is there,
// for a later one until those who may hold something have said what.
func (p planning) tooEarly(profiles []swarm.NodeProfile) (wait bool, until time.Time) {
	if p.previous == nil {
		if len(profiles) == 0 {
			return true, time.Time{} // whoever comes is an event
		}
		until = p.began.Add(p.patience.FirstWait)
		return len(profiles) < p.patience.FirstNodes && p.now.Before(until), until
	}
	for _, id := range p.previous.mentioned() {
		if p.unheard(id) {
			return true, p.began.Add(hearWithin)
		}
	}
	return false, time.Time{}
}

// unheard reports whether a member may still say what it holds: also one that is
// drained or leaves, which may be the last holder of something.
func (p planning) unheard(id string) bool {
	rec := p.nodes[id]
	if rec == nil || !rec.Started() || rec.Desired == DesiredRemoved || !p.now.Before(p.began.Add(hearWithin)) {
		return false
	}
	m := p.view.Member(id)
	return m == nil || m.Status == StatusUnheard
}

// departed are the nodes that were to leave and hold nothing any more, or
// cannot say so.
func (p planning) departed() (ids []string) {
	if p.previous == nil {
		return nil
	}
	have := p.view.holdings()
	for _, id := range slices.Sorted(maps.Keys(p.nodes)) {
		if p.nodes[id].Desired == DesiredLeaving && p.previous.DesiredOf(id) == DesiredLeaving && len(have[id]) == 0 && !p.unheard(id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// holdings is what living nodes say they hold.
func (v *View) holdings() Holdings {
	h := Holdings{}
	for i := range v.Members {
		m := &v.Members[i]
		if !m.Status.Living() || m.Health == nil {
			continue
		}
		for _, f := range m.Health.Held {
			h[m.ID] = append(h[m.ID], swarm.Fragment{Model: f.Model, Layers: f.Layers})
		}
	}
	return h
}

// plan asks the planner. With nobody left the previous plan stays: whoever
// returns finds it.
func (p planning) plan(planner Planner, profiles []swarm.NodeProfile) (*swarm.Plan, error) {
	var previous *swarm.Plan
	if p.previous != nil {
		previous = p.previous.Plan
	}
	if len(profiles) == 0 {
		return previous, nil
	}
	plan, err := planner(profiles, p.specs(), previous)
	if err != nil {
		return nil, fmt.Errorf("planning over %d nodes: %w", len(profiles), err)
	}
	return plan, nil
}

func (p planning) specs() []swarm.ModelSpec {
	var specs []swarm.ModelSpec
	for _, id := range slices.Sorted(maps.Keys(p.models)) {
		specs = append(specs, p.models[id].Spec)
	}
	return specs
}

// participants are the nodes that the plan may count on, in id order, and
// when one of them will stop being one if it stays away.
func (p planning) participants() (profiles []swarm.NodeProfile, recheck time.Time) {
	for _, id := range slices.Sorted(maps.Keys(p.nodes)) {
		rec := p.nodes[id]
		if !rec.Started() || !rec.Desired.planned() {
			continue
		}
		until, living := p.believed(id)
		if !living && !p.now.Before(until) {
			continue
		}
		if !living {
			recheck = earliest(recheck, until)
		}
		profiles = append(profiles, planned(rec))
	}
	return profiles, recheck
}

// planned is what of a profile decides a plan: not where the node listens,
// which may change with every start.
func planned(rec *NodeRecord) swarm.NodeProfile {
	p := rec.Profile
	p.Endpoints = nil
	return p
}

// believed reports whether a node lives, or until when it is believed to come
// back: only one that the previous plan counts on is waited for.
func (p planning) believed(id string) (until time.Time, living bool) {
	status, since := StatusUnheard, p.began
	if m := p.view.Member(id); m != nil {
		status = m.Status
		if status != StatusUnheard {
			since = m.Since
		}
	}
	switch {
	case status.Living():
		return time.Time{}, true
	case p.previous == nil || !inPlan(p.previous.Plan, id):
		return p.now, false
	case status == StatusLeft:
		return since.Add(p.patience.LeaveAfter), false
	}
	return since.Add(p.patience.ReplanAfter), false
}

func inPlan(plan *swarm.Plan, id string) bool {
	_, ok := plan.Node(id)
	return ok
}

// frame puts a plan into a document of this leader.
func (p planning) frame(plan *swarm.Plan) *PlanDocument {
	stamped := *plan // a plan is a value; the planner keeps its own
	stamped.Epoch = int64(p.epoch)
	d := &PlanDocument{Generation: p.generation + 1, Epoch: p.epoch, Hash: plan.Hash, Plan: &stamped}
	for id, rec := range p.nodes {
		if rec.Desired == DesiredActive {
			continue
		}
		if d.Desired == nil {
			d.Desired = map[string]Desired{}
		}
		d.Desired[id] = rec.Desired
	}
	for id, rec := range p.models {
		if d.Models == nil {
			d.Models = map[string]string{}
		}
		d.Models[id] = rec.Hash
	}
	d.Stage = StageOf(plan, p.view.holdings())
	return d
}

// same reports whether a document says nothing new. A new leader always
// writes once: only then is its predecessor fenced off.
func (p planning) same(next *PlanDocument) bool {
	old := p.previous
	return old.Epoch == next.Epoch && old.Hash == next.Hash &&
		maps.Equal(old.Desired, next.Desired) && maps.Equal(old.Models, next.Models) &&
		reflect.DeepEqual(old.Stage, next.Stage)
}

// describe says in one line what a plan amounts to.
func describe(d *PlanDocument) string {
	copies := map[string]int{}
	for _, p := range d.Plan.Pipelines {
		copies[p.Model]++
	}
	var parts []string
	for _, model := range slices.Sorted(maps.Keys(copies)) {
		parts = append(parts, fmt.Sprintf("%d of %s", copies[model], model))
	}
	for _, u := range d.Plan.Unplaced {
		parts = append(parts, fmt.Sprintf("%s not placed: %s", u.Model, u.Reason))
	}
	if len(parts) == 0 {
		parts = append(parts, "nothing placed")
	}
	if !d.Stage.Empty() {
		parts = append(parts, "not yet: "+d.Stage.String())
	}
	return fmt.Sprintf("%s over %d nodes: %s", d, len(d.Plan.Nodes), strings.Join(parts, ", "))
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// unchanged reports whether two records of a node plan the same.
func unchanged(a, b *NodeRecord) bool {
	return a != nil && b != nil && a.Desired == b.Desired && a.Started() == b.Started() &&
		reflect.DeepEqual(planned(a), planned(b))
}
