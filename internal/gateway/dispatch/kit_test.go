package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

const layers = 12

// copies is a plan of whole copies, each on one node: n0, n1...
func copies(n int) *swarm.Plan {
	p := &swarm.Plan{Models: []swarm.ModelSpec{{ID: "m", Layers: layers}}}
	for i := range n {
		p.Pipelines = append(p.Pipelines, swarm.Pipeline{ID: i, Model: "m", Stages: []swarm.Stage{on(i, 0, layers-1)}})
	}
	return p
}

// halves is a plan of copies of two stages each: n0 with n1, n2 with n3...
func halves(n int) *swarm.Plan {
	p := &swarm.Plan{Models: []swarm.ModelSpec{{ID: "m", Layers: layers}}}
	for i := range n {
		p.Pipelines = append(p.Pipelines, swarm.Pipeline{ID: i, Model: "m", Stages: []swarm.Stage{on(2*i, 0, 5), on(2*i+1, 6, layers-1)}})
	}
	return p
}

func on(node, first, last int) swarm.Stage {
	return swarm.Stage{Node: name(node), Layers: swarm.Layers(first, last)}
}

func name(i int) string { return fmt.Sprint("n", i) }

// world is what membership would say.
type world struct {
	nodes []*worldNode
	d     *Dispatcher
}

type worldNode struct {
	id            string
	status        control.Status
	incarnation   uint64
	sequence      uint64
	heard         time.Time
	layers        swarm.LayerRange
	cells, free   int
	paused, gone  bool
	latencyMillis float64
}

// newWorld is a dispatcher and as many living nodes, all with the same layers.
func newWorld(cfg Config, plan *swarm.Plan, n, cells int) *world {
	w := &world{d: New(cfg)}
	for i := range n {
		w.nodes = append(w.nodes, &worldNode{
			id: name(i), status: control.StatusAlive, incarnation: 1,
			layers: swarm.Layers(0, layers-1), cells: cells, free: cells, latencyMillis: 5,
		})
	}
	w.d.SetPlan(plan)
	w.report()
	return w
}

// report lets every living node say how it is.
func (w *world) report(ids ...string) {
	for _, n := range w.nodes {
		if n.status.Living() && (len(ids) == 0 || slices.Contains(ids, n.id)) {
			n.sequence++
			n.heard = time.Now()
		}
	}
	w.show()
}

// show makes a view without anything new in it.
func (w *world) show() { w.d.SetView(w.view()) }

func (w *world) view() *control.View {
	v := &control.View{Nodes: map[string]swarm.NodeState{}}
	for _, n := range w.nodes {
		if n.gone {
			continue
		}
		state := swarm.NodeState{
			ID: n.id, LatencyMS: swarm.Measured(n.latencyMillis), Load: swarm.Measured(0), Score: swarm.Measured(10),
			Fragments: []swarm.Fragment{{Model: "m", Layers: n.layers}}, Dead: !n.status.Living() || n.paused,
		}
		v.Nodes[n.id] = state
		v.Members = append(v.Members, control.Member{
			ID: n.id, Status: n.status, Heard: n.heard,
			Health: &control.Health{Node: n.id, Incarnation: n.incarnation, Sequence: n.sequence, State: state, Cells: n.cells, FreeCells: n.free},
		})
	}
	return v
}

func (w *world) node(id string) *worldNode {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func need(cells int) answer.Need {
	return answer.Need{Job: "j", Model: "m", Layers: layers, PromptTokens: cells - 1, OutputTokens: 1}
}

func (w *world) choose(t testing.TB, cells int) answer.Grant {
	t.Helper()
	g, err := w.d.Choose(context.Background(), need(cells))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// room is what a node has left for ordinary answers, found out by asking.
func (w *world) room(id string) int {
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	r := w.d.mu.nodes[id].room("m")
	return Sellable(r.cells) - (r.cells - r.free(time.Now()))
}

// idle checks that no node has anything in flight.
func (w *world) idle(t testing.TB) {
	t.Helper()
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	for id, b := range w.d.mu.nodes {
		v, _ := w.d.mu.fleet.Node(id)
		for model, r := range b.rooms {
			if v.InFlight != 0 || v.KVTokens != 0 || r.own != 0 {
				t.Errorf("%s: %d sessions, %d cells, %d own of %s are left", id, v.InFlight, v.KVTokens, r.own, model)
			}
		}
	}
	if len(w.d.mu.leases) != 0 {
		t.Errorf("%d leases are left", len(w.d.mu.leases))
	}
}

func noCells(node string) []answer.Failure {
	return []answer.Failure{{Node: node, Kind: answer.Refused, Err: &stage.Error{Code: stage.CodeNoCells}}}
}

func broken(node string) []answer.Failure {
	return []answer.Failure{{Node: node, Kind: answer.Refused, Err: &stage.Error{Code: stage.CodeInternal}}}
}

// nodeOf is the only node of a grant's route.
func nodeOf(g answer.Grant) string { return g.Route.Stages[0].Node }

// changed says whether waiters were woken since the channel was taken.
func changed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
