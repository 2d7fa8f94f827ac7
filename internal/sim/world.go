package sim

import (
	"context"
	"math/rand/v2"
)

// A world is one run: a scenario under one policy.
type world struct {
	*Scenario
	now      int64
	agenda   agenda
	machines []machine
	index    map[string]int32 // of machines, which stand in the plan's order
	gateways []*Gateway
	sessions []session
	free     []int32 // slots
	live     int     // sessions under way
	arrived  int     // requests that have arrived
	reports  reports
	chance   *rand.PCG
	meter    meter
}

func newWorld(s *Scenario, policy Policy) *world {
	w := &world{Scenario: s, machines: s.machines(), index: map[string]int32{},
		chance: rand.NewPCG(s.Seed, 0x736572766963650a), meter: newMeter(len(s.Arrivals))}
	for i := range w.machines {
		w.index[w.machines[i].id] = int32(i)
		w.machines[i].watch = s.Watch
	}
	for i := range s.Gateways {
		w.gateways = append(w.gateways, newGateway(s, i, w.index, policy))
	}
	for _, o := range s.Outages {
		w.outage(o)
	}
	w.reports = newReports(s, w.machines)
	w.warm()
	return w
}

// warm lets the gateways know what they would know of an idle swarm that has
// been up for a while.
func (w *world) warm() {
	for i := range w.machines {
		m := &w.machines[i]
		r := w.report(int32(i))
		for _, g := range w.gateways {
			g.hear(int32(i), &r, w.reports.sample(&r, m), 0)
			g.learn(int32(i), m.id, m.layer/1e6, m.link/1e6)
		}
	}
}

// run lives until every request has come to its end.
func (w *world) run(ctx context.Context) error {
	const patience = 1 << 16 // events between two looks at the context
	for steps := 1; w.arrived < len(w.Arrivals) || w.live > 0; steps++ {
		if steps%patience == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if w.arrived == len(w.Arrivals) && w.agenda.empty() {
			panic("BUG: sessions wait for nothing")
		}
		w.step()
	}
	return nil
}

// step lets the next thing happen. Things at the same moment happen in the
// order: reports arrive, reports leave, sessions and nodes, requests.
func (w *world) step() {
	const never = 1<<63 - 1
	due, made, planned, arrival := w.reports.due(), w.reports.next(), int64(never), int64(never)
	if !w.agenda.empty() {
		planned = w.agenda.heap[0].at
	}
	if w.arrived < len(w.Arrivals) {
		arrival = int64(w.Arrivals[w.arrived].At)
	}
	w.meter.events++
	switch w.now = min(due, made, planned, arrival); w.now {
	case due:
		w.deliver()
	case made:
		w.say()
	case planned:
		w.happen(w.agenda.next())
	default:
		w.arrive(int32(w.arrived))
		w.arrived++
	}
}

func (w *world) happen(e event) {
	switch e.kind {
	case pieceDone:
		if s := &w.sessions[e.who]; s.gen == e.gen {
			w.finishPiece(e.who, s)
		}
	case nodeDies:
		w.die(e.who)
	case nodeMissed:
		w.miss(e.who)
	case nodeReturns:
		w.comeBack(e.who)
	default:
		panic("BUG: an event of no kind")
	}
}
