package gateway

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"hecate/internal/control"
	"hecate/internal/event"
	"hecate/internal/gateway/answer"
	"hecate/pool"
	"hecate/swarm"
)

// lookEvery bounds how often what nodes say of themselves is searched for news.
const lookEvery = 200 * time.Millisecond

// herald turns what the rooms below see into events. Membership, answers and the
// pool tell what happens; of the rest only the state is known, so the herald
// compares it with what it saw last. It is run's goroutine's own.
type herald struct {
	gateway *Gateway
	events  *event.Stream
	nodes   map[string]*nodeSeen
	models  map[string]*modelSeen
	plan    uint64 // generation
}

// nodeSeen is what was last seen of a node.
type nodeSeen struct {
	desired control.Desired
	held    []swarm.Fragment
	moving  map[swarm.Fragment]control.Loading
}

// modelSeen is what was last seen of a model.
type modelSeen struct {
	ready, told bool
	live        map[int]bool // by copy
}

func newHerald(g *Gateway) *herald {
	return &herald{gateway: g, events: g.events, nodes: map[string]*nodeSeen{}, models: map[string]*modelSeen{}}
}

// run publishes until ctx ends.
func (h *herald) run(ctx context.Context) {
	members := h.gateway.cfg.Membership.Subscribe()
	defer members.Close()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var missed uint64
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-members.C:
			h.events.Publish(ofMember(e))
		case <-tick.C:
			if n := members.Missed(); n > missed {
				h.events.Missed(n - missed)
				missed = n
			}
			h.look()
		}
	}
}

// look compares the state with what was seen before.
func (h *herald) look() {
	view, doc := h.gateway.cfg.Membership.View(), h.gateway.plan.Load()
	if doc != nil && doc.Generation != h.plan {
		h.plan = doc.Generation
		h.events.Publish(event.Plan{Generation: doc.Generation, Copies: len(doc.Plan.Pipelines), MovedBytes: doc.Plan.MovedBytes})
	}
	h.forget(view)
	for i := range view.Members {
		h.lookAtNode(&view.Members[i])
	}
	for _, m := range h.gateway.catalog.all() {
		h.lookAtModel(m, doc, view)
	}
	h.gateway.refusals.tell(h.events)
}

// forget drops who is gone: one that comes again under the same name is news.
func (h *herald) forget(view *control.View) {
	maps.DeleteFunc(h.nodes, func(id string, _ *nodeSeen) bool { return view.Member(id) == nil })
	maps.DeleteFunc(h.models, func(id string, _ *modelSeen) bool { return h.gateway.catalog.find(id) == nil })
}

func (h *herald) lookAtNode(m *control.Member) {
	seen := h.nodes[m.ID]
	if seen == nil {
		seen = &nodeSeen{}
		h.nodes[m.ID] = seen
		if m.Record != nil {
			seen.desired = m.Record.Desired
		}
	}
	if m.Record != nil && m.Record.Desired != seen.desired {
		seen.desired = m.Record.Desired
		h.events.Publish(event.Steered{Node: m.ID, Want: string(m.Record.Desired)})
	}
	if !m.Status.Living() {
		seen.held, seen.moving = nil, nil // with the process; a death is an event of its own
		return
	}
	if m.Health == nil {
		return
	}
	h.lookAtLayers(m, seen)
	h.lookAtTransfers(m, seen)
}

func (h *herald) lookAtLayers(m *control.Member, seen *nodeSeen) {
	var held []swarm.Fragment
	for _, f := range m.Health.Held {
		held = append(held, swarm.Fragment{Model: f.Model, Layers: f.Layers})
	}
	tell := func(f swarm.Fragment, loaded bool) {
		h.events.Publish(event.Layers{Node: m.ID, Model: f.Model, First: f.Layers.First, Last: f.Layers.Last, Loaded: loaded})
	}
	for _, f := range held {
		if !slices.Contains(seen.held, f) {
			tell(f, true)
		}
	}
	for _, f := range seen.held {
		grown := func(now swarm.Fragment) bool {
			return now.Model == f.Model && now.Layers.First <= f.Layers.First && f.Layers.Last <= now.Layers.Last
		}
		if !slices.ContainsFunc(held, grown) {
			tell(f, false)
		}
	}
	seen.held = held
}

// lookAtTransfers follows what is on its way to a node. What is gone from its
// list without a failure has arrived, if it is held or at least was fetched.
func (h *herald) lookAtTransfers(m *control.Member, seen *nodeSeen) {
	now := map[swarm.Fragment]control.Loading{}
	for _, l := range m.Health.Loading {
		if l.Phase != control.LoadLoading { // from the disk: layers_loaded tells of it
			now[swarm.Fragment{Model: l.Model, Layers: l.Layers}] = l
		}
	}
	for f, l := range now {
		before, known := seen.moving[f]
		switch failed := l.Phase == control.LoadFailed; {
		case failed && (!known || before.Phase != control.LoadFailed):
			h.events.Publish(transfer(event.TransferFailed, m.ID, l))
		case !failed && !known:
			h.events.Publish(transfer(event.TransferStarted, m.ID, l))
		}
	}
	for f, l := range seen.moving {
		if _, still := now[f]; !still && l.Phase == control.LoadFetching {
			h.events.Publish(transfer(event.TransferFinished, m.ID, l))
		}
	}
	seen.moving = now
}

func transfer(what event.Kind, node string, l control.Loading) event.Fact {
	return event.Transfer{What: what, Node: node, Model: l.Model, First: l.Layers.First, Last: l.Layers.Last, Bytes: l.Total, Because: l.Error}
}

func (h *herald) lookAtModel(m *Model, doc *control.PlanDocument, view *control.View) {
	id := m.Record.ID
	seen := h.models[id]
	if seen == nil {
		seen = &modelSeen{live: map[int]bool{}}
		h.models[id] = seen
	}
	missing := h.gateway.missing(m)
	ready := missing == ""
	// That a model is not ready before it ever was is no news.
	if ready != seen.ready && (ready || seen.told) {
		seen.told = true
		h.events.Publish(event.Readiness{Model: id, Ready: ready, Missing: missing})
	}
	seen.ready = ready
	if doc == nil {
		return
	}
	live := map[int]bool{}
	for _, p := range doc.Plan.PipelinesOf(id) {
		why := h.gateway.brokenBy(p, view)
		before, known := seen.live[p.ID]
		live[p.ID] = why == ""
		if live[p.ID] != before && (known || live[p.ID]) {
			h.events.Publish(event.Copy{Model: id, ID: p.ID, Live: why == "", Missing: why})
		}
	}
	seen.live = live
}

// ofMember words what membership saw.
func ofMember(e control.Event) event.Fact {
	out := event.Membership{Node: e.About(), Words: e.String()}
	switch e := e.(type) {
	case control.Joined:
		out.What = event.NodeJoined
	case control.Suspected:
		out.What = event.NodeSuspect
	case control.Died:
		out.What = event.NodeDied
	case control.Returned:
		out.What = event.NodeReturned
	case control.Left:
		out.What = event.NodeLeft
		if e.Removed {
			out.What = event.NodeRemoved
		}
	case control.Ghost:
		out.What = event.NodeGhost
	default:
		panic(fmt.Sprintf("BUG: %T is no event of membership", e))
	}
	return out
}

// ofAnswer words what befell an answer.
func ofAnswer(e answer.Event, model string) event.Fact {
	because := ""
	if e.Err != nil {
		because = e.Err.Error()
	}
	if e.Kind == "lost" {
		return event.Loss{Job: e.Job, Model: model, Node: e.Node, Position: e.Position, Because: because}
	}
	if e.Kind == "gave way" {
		return event.Wait{Job: e.Job, Model: model, Position: e.Position, Because: because}
	}
	return event.Rescue{
		Job: e.Job, Model: model, Node: e.Node, How: string(e.Rescue), Position: e.Position,
		GapMS: float64(e.Gap.Microseconds()) / 1000, Replayed: e.Replay, Because: because,
	}
}

// PoolFact words what happened to connections; for pool.Config.Observe.
func PoolFact(e pool.Event) event.Fact {
	return event.Pool{
		What: poolKind(e.Kind), Node: e.Group, Event: string(e.Kind), Endpoint: e.Endpoint,
		Generation: e.Generation, Reason: e.Reason, Took: e.Took, Words: e.String(),
	}
}

func poolKind(k pool.EventKind) event.Kind {
	switch k {
	case pool.EventWriterLost, pool.EventConnectFailed, pool.EventRefused, pool.EventQuarantined, pool.EventOutage,
		pool.EventGroupDown, pool.EventGroupRefused, pool.EventGroupSilent,
		pool.EventGenerationRefused, pool.EventForceClosed, pool.EventHandlerPanic, pool.EventWriterDegraded, pool.EventReplacementFailed:
		return event.PoolTrouble
	case pool.EventMapApplied, pool.EventGenerationStarted, pool.EventGenerationActive, pool.EventGenerationDropped,
		pool.EventSettings, pool.EventFallback, pool.EventOutageOver:
		return event.PoolChange
	}
	return event.PoolRoutine
}
