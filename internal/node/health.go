package node

import (
	"hecate/internal/control"
	"hecate/swarm"
)

// fill writes this room's part of a health report.
func (n *Node) fill(h *control.Health) {
	doc := n.doc.Load()
	if doc != nil {
		h.PlanGeneration = doc.Generation
	}
	h.Loading = n.loader.progress()
	n.larder.fill(h)
	n.fillHeld(h, doc)
	n.server.gauge.fill(h)
	n.fillMemory(h)
}

// fillHeld lists what is loaded. Cells are those of the layer with the fewest.
func (n *Node) fillHeld(h *control.Health, doc *control.PlanDocument) {
	for _, f := range n.engine.Fragments() {
		layers := asRange(f.Layers)
		held := control.HeldFragment{Model: f.Model, Layers: layers, State: control.HoldServing, Cells: f.Cells, FreeCells: f.CellsFree, Taken: n.server.ledger.taken(f.Model, f.Layers.First, f.Layers.Last)}
		if doc != nil {
			held.Hash = n.loader.contentOf(f.Model)
			if spare(doc, n.member.ID(), f.Model, layers) {
				held.State = control.HoldWarm
			}
		}
		held.Tokens = n.server.gauge.through(f.Model, layers)
		h.Held = append(h.Held, held)
		h.State.Fragments = append(h.State.Fragments, swarm.Fragment{Model: f.Model, Layers: layers})
		if h.Cells == 0 || f.CellsFree < h.FreeCells {
			h.Cells, h.FreeCells = f.Cells, f.CellsFree
		}
	}
}

// spare says that the plan holds these layers warm only.
func spare(doc *control.PlanDocument, node, model string, layers swarm.LayerRange) bool {
	p, ok := doc.Plan.Node(node)
	if !ok {
		return false
	}
	for _, f := range p.Fragments {
		if f.Model == model && f.Layers.Covers(layers) {
			return f.Spare
		}
	}
	return false
}

func (n *Node) fillMemory(h *control.Health) {
	m := n.engine.Memory()
	h.MemoryUsed, h.MemoryBudget = m.Weights+m.Cache, n.cfg.Memory
}

// fill writes what the gauge measured.
func (g *gauge) fill(h *control.Health) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h.State.LatencyMS, h.State.Load = g.mu.latency, g.mu.load
	h.Paused = g.mu.paused
	h.LastLatencyMS = g.mu.last
	h.Sessions, h.ServedRequests, h.FailedRequests = g.mu.sessions, g.mu.served, g.mu.failed
	for _, rows := range g.mu.rows {
		h.TokensComputed += rows
	}
}

// through counts the rows that sessions ran through a part of these layers.
func (g *gauge) through(model string, layers swarm.LayerRange) (rows int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k, n := range g.mu.rows {
		if k.model == model && layers.Covers(swarm.LayerRange{First: k.first, Last: k.last}) {
			rows += n
		}
	}
	return rows
}
