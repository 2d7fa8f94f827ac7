package sim

import (
	"fmt"
	"time"

	"hecate/swarm"
)

// A Gateway is what one gateway knows, which is late, and whom it asks.
type Gateway struct {
	scenario *Scenario
	number   int
	index    map[string]int32 // of nodes in the plan's order
	fleet    *swarm.Fleet
	router   *swarm.Router
	decider  Decider

	heard    []heard
	answers  []swarm.Reading // per model: the length of answers so far
	books    *swarm.State    // a copy of the fleet for the classic failover; nil when it is out of date
	draws    uint64
	learning []learned
}

// heard is what a node last said, or what is known of its end.
type heard struct {
	dead        bool
	incarnation uint32
	load        float64
}

// learned is what the gateway measured of a node through its own sessions.
type learned struct{ layer, link swarm.Reading }

// epoch is when virtual time begins. Any time will do that is not zero, which
// means "fresh" to package swarm.
var epoch = time.Unix(1, 0)

func clock(now int64) time.Time { return epoch.Add(time.Duration(now)) }

func newGateway(s *Scenario, number int, index map[string]int32, policy Policy) *Gateway {
	fleet := swarm.NewFleet("")
	g := &Gateway{scenario: s, number: number, index: index, fleet: fleet, router: swarm.NewRouter(s.Plan, fleet),
		heard: make([]heard, len(index)), learning: make([]learned, len(index)), answers: make([]swarm.Reading, len(s.Plan.Models))}
	g.decider = policy.Make(g)
	return g
}

// Plan is the plan by which the gateway routes.
func (g *Gateway) Plan() *swarm.Plan { return g.scenario.Plan }

// Router and Fleet are what package swarm decides with.
func (g *Gateway) Router() *swarm.Router { return g.router }

// Fleet is the gateway's knowledge in swarm's own form.
func (g *Gateway) Fleet() *swarm.Fleet { return g.fleet }

// job words a request for the decider.
func (g *Gateway) job(model int32, prompt, output int32, now int64) Job {
	g.draws++
	return Job{Model: g.scenario.Plan.Models[model].ID, Prompt: int(prompt), Output: int(output),
		Now: clock(now), Draw: g.draws*uint64(g.scenario.Gateways) + uint64(g.number) + g.scenario.Seed}
}

// expected is how long an answer of the model will probably be.
func (g *Gateway) expected(model int32) int32 {
	return int32(swarm.ExpectedTokens(0, g.answers[model]))
}

func (g *Gateway) answered(model, output int32) {
	g.answers[model] = g.answers[model].Observe(float64(output))
}

// hear takes a report in that has arrived, unless it is from before a death
// that the gateway knows of.
func (g *Gateway) hear(node int32, r *report, sample swarm.NodeState, now int64) {
	h := &g.heard[node]
	if r.incarnation < h.incarnation {
		return
	}
	*h = heard{incarnation: r.incarnation, load: r.load}
	g.books = nil
	if err := g.fleet.Observe(sample, clock(now)); err != nil {
		panic(fmt.Sprintf("BUG: report of a simulated node: %v", err))
	}
}

// miss notes that a node died; reports of that life are no longer believed.
func (g *Gateway) miss(node int32, id string, incarnation uint32) {
	g.heard[node] = heard{dead: true, incarnation: incarnation + 1}
	g.books = nil
	g.learning[node] = learned{}
	g.fleet.Forget(id)
	g.fleet.MarkDead(id)
}

// learn takes in what a session measured at a node, in milliseconds.
func (g *Gateway) learn(node int32, id string, layer, link float64) {
	l := &g.learning[node]
	l.layer, l.link = l.layer.Observe(layer), l.link.Observe(link)
	err := g.fleet.Signal(id, swarm.Signals{LayerMS: l.layer, RoundTripMS: l.link, Slots: g.scenario.Hardware.Slots})
	if err != nil {
		panic(fmt.Sprintf("BUG: measured at a simulated node: %v", err))
	}
}

// failover is the classic rescue over what the gateway has heard.
func (g *Gateway) failover(j *Job, route swarm.Route, failed string) (swarm.Route, error) {
	if g.books == nil {
		st := g.fleet.State(g.scenario.Plan)
		g.books = &st
	}
	opts := swarm.FailoverOptions{PromptTokens: j.Prompt, Weights: g.scenario.Weights}
	return g.scenario.Rules.Failover(route, failed, *g.books, opts)
}
