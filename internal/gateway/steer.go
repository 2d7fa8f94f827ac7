package gateway

import (
	"hecate/internal/control"
	"hecate/swarm"
)

// offerAnew tells the dispatcher what nodes may be asked for now, by plan and
// membership. What a node is to give up it offers nobody.
func (g *Gateway) offerAnew() {
	view := g.cfg.Membership.View()
	offer := control.OfferOf(g.plan.Load(), view, g.offer.Load())
	g.offer.Store(offer)
	g.dispatch.SetView(offer.View(view))
}

// yields says that an answer is to leave these layers of a node.
func (g *Gateway) yields(node, model string, layers swarm.LayerRange) bool {
	offer := g.offer.Load()
	return offer != nil && offer.Yields(node, model, layers)
}
