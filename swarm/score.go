package swarm

import (
	"maps"
	"slices"
)

// ScoreRoute finds the cheapest chain of living fragments of one model over
// the request's window.
//
// A fragment is entered at its first layer and run whole. Consecutive
// fragments of one node are one stage: charged once, no hop. Ties go to fewer
// stages, then to the lexicographically smaller list of node ids, then to the
// longer stage where the two first differ.
//
// It returns a NoRouteError (ErrNoRoute) when no chain covers the window, and
// ErrInvalid for an inverted window, a negative prompt or bad weights. It
// takes O(F log F) for F fragments plus the sorting of the node ids.
func ScoreRoute(req Request, states map[string]NodeState, w Weights, model string) (Route, error) {
	if err := req.validate(); err != nil {
		return Route{}, err
	}
	if err := w.Validate(); err != nil {
		return Route{}, err
	}
	c := collectChains(req, states, &w, model)
	if !c.window.Stated() {
		return Route{}, &NoRouteError{Model: model, Window: unstated, Furthest: -1,
			Reason: "no living node holds a layer of it"}
	}
	head := c.solve()
	if head < 0 {
		return Route{}, &NoRouteError{Model: model, Window: c.window, Furthest: c.furthest()}
	}
	return Route{
		Model:      model,
		PipelineID: -1,
		Stages:     c.stages(head),
		Cost:       c.startCost(head).Add(w.PromptCost(req.PromptTokens)),
	}, nil
}

// collectChains gathers the living fragments of the model, nodes in the order
// of their ids so that indices compare as ids do.
func collectChains(req Request, states map[string]NodeState, w *Weights, model string) *chains {
	ids := slices.Sorted(maps.Keys(states))
	c := &chains{nodes: make([]string, 0, len(ids)), price: make([]Cost, 0, len(ids)), hop: w.HopCost(), window: unstated}
	spans := make([]span, 0, 4*len(ids))
	for _, id := range ids {
		n := states[id]
		if n.Dead {
			continue
		}
		before := len(spans)
		n.Holds(model, req.Base, func(r LayerRange) bool {
			if r.Valid() {
				spans = append(spans, span{node: int32(len(c.nodes)), first: int32(r.First), last: int32(r.Last)})
			}
			return true
		})
		if len(spans) > before {
			c.nodes = append(c.nodes, id)
			c.price = append(c.price, w.NodeCost(n))
		}
	}
	if req.Window != nil {
		c.window = *req.Window
	} else {
		c.window = hull(spans)
	}
	if c.window.Stated() {
		c.index(spans)
	}
	return c
}

// hull is the range from the lowest to the highest layer of the spans,
// unstated when there are none.
func hull(spans []span) LayerRange {
	if len(spans) == 0 {
		return unstated
	}
	r := LayerRange{First: MaxLayer, Last: 0}
	for _, s := range spans {
		r.First = min(r.First, int(s.first))
		r.Last = max(r.Last, int(s.last))
	}
	return r
}
