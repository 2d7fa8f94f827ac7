package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"hecate/swarm"
)

// A report is what a node said of itself, under way.
type report struct {
	at          int64 // arrives
	node        int32
	incarnation uint32
	latency     float64 // ms
	load        float64
}

// reports are all nodes' health reports: each node's at a phase of its own
// within the interval. Every report takes equally long, so those under way are
// a queue.
type reports struct {
	every, delay int64
	order        []int32 // nodes by phase
	phase        []int64 // in that order
	round        int64
	cursor       int

	way       []report // under way, from head on
	head      int
	fragments [][]swarm.Fragment // by node
}

func newReports(s *Scenario, machines []machine) reports {
	r := reports{every: int64(s.Telemetry.Every), delay: int64(s.Telemetry.Delay)}
	chance := rand.New(rand.NewPCG(s.Seed, 0x7068617365730a0a))
	phase := make([]int64, len(machines))
	for i := range machines {
		r.order = append(r.order, int32(i))
		phase[i] = chance.Int64N(r.every)
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return cmp.Compare(phase[a], phase[b]) })
	for _, n := range r.order {
		r.phase = append(r.phase, phase[n])
	}
	held := swarm.StateFromPlan(s.Plan).Nodes
	for i := range machines {
		r.fragments = append(r.fragments, held[machines[i].id].Fragments)
	}
	return r
}

// next is when the next report leaves.
func (r *reports) next() int64 { return r.round*r.every + r.phase[r.cursor] }

// due is when the next report arrives.
func (r *reports) due() int64 {
	if r.head == len(r.way) {
		return 1<<63 - 1
	}
	return r.way[r.head].at
}

func (r *reports) send(rep report) {
	if r.head > 1024 && r.head*2 > len(r.way) {
		n := copy(r.way, r.way[r.head:])
		r.way, r.head = r.way[:n], 0
	}
	r.way = append(r.way, rep)
}

// sample is a report in package swarm's own form.
func (r *reports) sample(rep *report, m *machine) swarm.NodeState {
	return swarm.NodeState{ID: m.id, LatencyMS: swarm.Measured(rep.latency), Load: swarm.Measured(rep.load),
		Score: swarm.Measured(m.score), Fragments: r.fragments[rep.node]}
}

// report is what a node says now: the moving average of its last steps, and
// how many sessions are present per slot.
func (w *world) report(node int32) report {
	m := &w.machines[node]
	m.latency = m.latency.Observe(m.step)
	return report{at: w.now + w.reports.delay, node: node, incarnation: m.incarnation,
		latency: m.latency.Value, load: m.present / float64(w.Hardware.Slots)}
}

// say lets the node whose turn it is report.
func (w *world) say() {
	r := &w.reports
	node := r.order[r.cursor]
	if r.cursor++; r.cursor == len(r.order) {
		r.cursor = 0
		r.round++
	}
	m := &w.machines[node]
	if m.dead {
		return
	}
	if m.sessions == 0 {
		m.step = m.idleStep()
	}
	r.send(w.report(node))
}

// deliver brings the oldest report under way to all gateways.
func (w *world) deliver() {
	r := &w.reports
	rep := &r.way[r.head]
	r.head++
	sample := r.sample(rep, &w.machines[rep.node])
	for _, g := range w.gateways {
		g.hear(rep.node, rep, sample, w.now)
	}
}
