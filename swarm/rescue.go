package swarm

import (
	"fmt"
	"slices"
)

// A RescuePreference says which rescue a running answer prefers when both a
// copy and a splice could take over.
type RescuePreference int

const (
	// PreferCopy follows the order of FailoverInSwarm: a whole copy, which the
	// plan vouches for, before a splice.
	PreferCopy RescuePreference = iota
	// PreferSoonest takes the rescue with the smaller estimated time to
	// resume; ties go to the copy.
	PreferSoonest
)

// A RescueRequest describes the answer that is to go on.
type RescueRequest struct {
	// Adaptive is the rest of the answer: PromptTokens is everything that a
	// fresh copy must read (prompt and emitted tokens), OutputTokens what is
	// still expected. The window is the broken route's own; a rescue always
	// may use the KV cells kept for it.
	Adaptive AdaptiveRequest

	Prefer        RescuePreference
	FallbackModel string // when named, degradation to it is allowed, labelled

	// StatesHeld says that the boundary states before the lost layers are
	// still at hand, so that a splice replays only the lost layers. Without
	// them all layers up to the last lost one must be run again.
	StatesHeld bool
	// Warm is, per node, how many of the tokens a lagging shadow has already
	// replayed into it.
	Warm map[string]int
}

// A Rescue is the route that an answer goes on with.
type Rescue struct {
	Route  Route `json:"route"`
	Resume Cost  `json:"resume"` // estimated time until the next token can be computed
}

// Rescue is FailoverInSwarm by measured time: the same order and the same
// rules, with candidates judged as Choose judges them. Lost layers go to
// whatever chain of confirmed holders is cheapest, which may split them
// anywhere; a holder whose circuit is open is used only when nothing else is
// left. The spliced route is validated before it is returned.
func (r *Router) Rescue(route Route, failed string, req RescueRequest, policy Policy) (Rescue, error) {
	if err := checkShape(route); err != nil {
		return Rescue{}, err
	}
	if !route.Uses(failed) {
		route.Reason = ReasonNotOnRoute
		return Rescue{Route: route}, nil
	}
	window := route.Window()
	if !window.Stated() {
		return Rescue{}, fmt.Errorf("route %s to rescue states no layers: %w", route, ErrInvalid)
	}
	req.Adaptive.Window, req.Adaptive.Rescue = &window, true
	policy.Choice, policy.Explore = Cheapest, -1 // a running answer takes no chances
	p, m, err := r.pricing(route.Model, req.Adaptive, policy)
	if err != nil {
		return Rescue{}, err
	}
	s := &salvage{pricing: p, route: route, req: req}
	s.markFailed(failed)
	if found, ok := s.attempt(m); ok {
		return found, nil
	}
	if req.FallbackModel != "" {
		return s.fallback(r)
	}
	return Rescue{}, s.unrecoverable()
}

// salvage is one rescue in the making.
type salvage struct {
	*pricing
	route  Route
	req    RescueRequest
	failed []string
}

// markFailed notes the failed node and the route's other dead ones.
func (s *salvage) markFailed(failed string) {
	for _, st := range s.route.Stages {
		i := s.fleet.index(st.Node)
		if (st.Node == failed || s.fleet.nodes[i].state.Dead) && !slices.Contains(s.failed, st.Node) {
			s.failed = append(s.failed, st.Node)
			s.pricing.failed = append(s.pricing.failed, i)
		}
	}
}

// attempt tries copy and splice, first with healthy nodes only, then with
// those whose circuits are open: a doubtful node beats a broken answer.
func (s *salvage) attempt(m *modelCopies) (Rescue, bool) {
	for _, relaxed := range []bool{false, true} {
		s.relaxed = relaxed
		best, haveCopy := s.best(m)
		var whole Rescue
		if haveCopy {
			whole.Route = s.routeOf(m, &best)
			whole.Route.Reason = fmt.Sprintf("pipeline %d stands in", whole.Route.PipelineID)
			whole.Resume = s.prefill(whole.Route.Stages)
			if s.req.Prefer == PreferCopy {
				return whole, true
			}
		}
		spliced, ok := s.splice()
		switch {
		case ok && (!haveCopy || spliced.Resume < whole.Resume):
			return spliced, true
		case haveCopy:
			return whole, true
		}
	}
	return Rescue{}, false
}

// splice keeps the survivors where they are and assembles the lost layers from
// their holders.
func (s *salvage) splice() (Rescue, bool) {
	w := &s.fleet.weave
	w.reset()
	lost := s.lost()
	for i := range s.fleet.nodes {
		if held := s.pinned(int32(i), lost); len(held) > 0 {
			w.add(s.warmed(int32(i)), int32(i), held)
		}
	}
	if !w.solve(s.window) {
		return Rescue{}, false
	}
	out := Route{Model: s.route.Model, PipelineID: -1, Cost: w.cost, Stages: w.stages(s.fleet, s.window)}
	out.Replaced = s.replaced(out.Stages, lost)
	if s.check(out) != nil {
		return Rescue{}, false
	}
	out.Reason = fmt.Sprintf("spliced around %s", s.failed)
	return Rescue{Route: out, Resume: s.replay(out)}, true
}

// warmed is the pricing for one node: what a shadow has replayed into it, it
// need not read again.
func (s *salvage) warmed(node int32) *pricing {
	warm := s.req.Warm[s.fleet.nodes[node].id]
	if warm <= 0 {
		return s.pricing
	}
	p := *s.pricing
	p.req.PromptTokens = max(0, p.req.PromptTokens-warm)
	return &p
}

// lost lists what the failed nodes ran, in layer order.
func (s *salvage) lost() []LayerRange {
	var lost []LayerRange
	for _, st := range s.route.Stages {
		if slices.Contains(s.failed, st.Node) {
			lost = append(lost, st.Layers)
		}
	}
	return lost
}

// pinned is what a node may run in the splice: its own stages of the broken
// route, if it survived, and what it holds of the lost layers, if it can be
// used.
func (s *salvage) pinned(node int32, lost []LayerRange) []heldRange {
	n := &s.fleet.nodes[node]
	if slices.Contains(s.pricing.failed, node) {
		return nil
	}
	var held []heldRange
	for _, st := range s.route.Stages {
		if st.Node == n.id {
			held = append(held, heldRange{s.model, int32(st.Layers.First), int32(st.Layers.Last)})
		}
	}
	if s.mayTakeOver(node) {
		for _, h := range n.heldOf(s.model) {
			for _, l := range lost {
				if c, ok := l.Clip(LayerRange{First: int(h.first), Last: int(h.last)}); ok {
					held = append(held, heldRange{s.model, int32(c.First), int32(c.Last)})
				}
			}
		}
	}
	slices.SortFunc(held, func(a, b heldRange) int { return int(a.first - b.first) })
	return held
}

// mayTakeOver reports whether a node may run more than it does. A survivor's
// probation does not count here: it is running the answer already.
func (s *salvage) mayTakeOver(node int32) bool {
	switch s.available(node) {
	case noObstacle:
		return true
	case isProbed:
		return s.route.Uses(s.fleet.nodes[node].id)
	}
	return false
}

// replaced says who took over which lost layers.
func (s *salvage) replaced(stages []Stage, lost []LayerRange) []Replacement {
	var out []Replacement
	for _, st := range stages {
		for _, l := range lost {
			if c, ok := st.Layers.Clip(l); ok {
				out = appendReplacement(out, Replacement{By: st.Node, Layers: c})
			}
		}
	}
	return out
}

// check verifies a spliced route before anybody runs it.
func (s *salvage) check(out Route) error {
	if err := checkCover(out.Stages, s.window); err != nil {
		return err
	}
	for _, rep := range out.Replaced {
		if !s.fleet.nodes[s.fleet.ids[rep.By]].holds(s.model, rep.Layers) {
			return fmt.Errorf("%s does not hold layers %s: %w", rep.By, rep.Layers, ErrInvalid)
		}
	}
	for _, id := range s.failed {
		if out.Uses(id) {
			return fmt.Errorf("%s has failed: %w", id, ErrInvalid)
		}
	}
	return nil
}

// fallback is the declared stand-in's cheapest copy, else the survivors.
func (s *salvage) fallback(r *Router) (Rescue, error) {
	broken := broken{route: s.route, failed: s.failed, weights: s.weights,
		opts: FailoverOptions{FallbackModel: s.req.FallbackModel, PromptTokens: s.req.Adaptive.PromptTokens}}
	broken.holders.nodes = s.fleet.State(r.plan).Nodes
	req, policy := s.req.Adaptive, s.policy
	req.Window = nil // another model has its own layers
	failed := s.pricing.failed
	p, m, err := r.pricing(s.req.FallbackModel, req, policy)
	if err != nil {
		return Rescue{}, err
	}
	p.failed = failed
	best, ok := p.best(m)
	if !ok {
		return Rescue{Route: broken.survivors(), Resume: Infinite}, nil
	}
	out := p.routeOf(m, &best)
	out.Degraded, out.Reason = true, fmt.Sprintf("fallback for %q", s.route.Model)
	return Rescue{Route: out, Resume: p.prefill(out.Stages)}, nil
}

func (s *salvage) unrecoverable() error {
	err := &UnrecoverableError{Model: s.route.Model, Window: s.window, Failed: s.failed,
		Reason: "holders that are dead or have no room in their KV cache do not count"}
	for _, l := range s.lost() {
		for layer := l.First; layer <= l.Last; layer++ {
			if !s.anyHolder(layer) {
				err.Lost = appendLayer(err.Lost, layer)
			}
		}
	}
	return err
}

func (s *salvage) anyHolder(layer int) bool {
	one := LayerRange{First: layer, Last: layer}
	for i := range s.fleet.nodes {
		if s.fleet.nodes[i].holds(s.model, one) && s.mayTakeOver(int32(i)) {
			return true
		}
	}
	return false
}
