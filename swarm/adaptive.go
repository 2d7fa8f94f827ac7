package swarm

import "fmt"

// Choose takes the best route for a request now, by measured time rather than
// by the classic price: see Term for what is counted. A copy is used when
// every node of it lives, holds its stage, has a circuit that lets the request
// through and room in its KV cache. Assembled chains, which may enter and leave
// what a node holds anywhere, follow when no copy can be used, or when they
// save the policy's margin; they are labelled Assembled.
//
// Reserve the route before anybody else chooses. Choosing does not allocate
// while a whole copy is the answer. It returns a NoRouteError that names what
// is wrong with each copy, and the first layers without a holder.
func (r *Router) Choose(model string, req AdaptiveRequest, policy Policy) (Route, error) {
	p, m, err := r.pricing(model, req, policy)
	if err != nil {
		return Route{}, err
	}
	best, ok := p.best(m)
	if chain, cheaper := p.assemble(m, best, ok); cheaper {
		return chain, nil
	}
	if ok {
		return p.routeOf(m, &best), nil
	}
	return Route{}, p.noRoute(model, m)
}

// pricing prepares to price one request. It lives in the fleet's scratch
// space, so that pricing does not allocate.
func (r *Router) pricing(model string, req AdaptiveRequest, policy Policy) (*pricing, *modelCopies, error) {
	if err := req.validate(); err != nil {
		return nil, nil, err
	}
	if err := policy.Validate(); err != nil {
		return nil, nil, err
	}
	m := r.copies(model)
	p := &r.fleet.pricing
	*p = pricing{fleet: r.fleet, model: m.id, window: m.window, policy: policy.withDefaults(),
		weights: DefaultWeights(), req: req}
	if policy.Weights != nil {
		p.weights = *policy.Weights
	}
	if req.Window != nil {
		p.window = *req.Window
	}
	if req.OutputTokens == 0 {
		p.req.OutputTokens = DefaultOutputTokens
	}
	p.need = float64(req.KVTokens)
	if req.KVTokens == 0 {
		p.need = float64(req.PromptTokens) + float64(p.req.OutputTokens)
	}
	p.explore = p.policy.Explore > 0 && share(^req.Draw) < p.policy.Explore
	return p, m, nil
}

// A candidate is a copy as it looks to one request.
type candidate struct {
	pipeline, lo, hi int // index of the copy and the stages that the window touches
	cost             Cost
	explores         bool // some node of it is to be found out about

	obstacle obstacle // what disqualifies it
	stage    int      // where
}

const (
	outside obstacle = -1 // a copy that does not contain the window
	tooDear obstacle = -2 // a copy that was given up on while pricing it
)

// candidate prices the copy at an index, as far as it stays within the limit.
func (p *pricing) candidate(m *modelCopies, i int, limit Cost) candidate {
	c := candidate{pipeline: i}
	stages := m.pipes[i].Stages
	if len(stages) == 0 || stages[0].Layers.First > p.window.First || stages[len(stages)-1].Layers.Last < p.window.Last {
		c.obstacle = outside
		return c
	}
	for c.lo = 0; stages[c.lo].Layers.Last < p.window.First; c.lo++ {
	}
	for c.hi = c.lo; c.hi < len(stages) && stages[c.hi].Layers.First <= p.window.Last; c.hi++ {
		layers, _ := stages[c.hi].Layers.Clip(p.window)
		node := m.nodes[i][c.hi]
		if c.obstacle = p.usable(node, layers); c.obstacle != noObstacle {
			c.stage = c.hi
			return c
		}
		c.explores = c.explores || p.explore && p.unknown(&p.fleet.nodes[node])
		c.cost = c.cost.Add(p.price(node).of(layers.Len()))
		if c.cost > limit {
			c.obstacle = tooDear
			return c
		}
	}
	return c
}

// better orders usable candidates: exploring ones first, then by cost, then by
// pipeline id, in whose order the copies stand.
func (c *candidate) better(other *candidate) bool {
	switch {
	case c.explores != other.explores:
		return c.explores
	case c.cost != other.cost:
		return c.cost < other.cost
	}
	return c.pipeline < other.pipeline
}

// best is the copy to use, if any can be.
func (p *pricing) best(m *modelCopies) (candidate, bool) {
	if p.policy.Choice == TwoChoices && !p.explore {
		if c, ok := p.betterOfTwo(m); ok {
			return c, true
		}
	}
	var best candidate
	found, limit := false, Infinite
	for i := range m.pipes {
		c := p.candidate(m, i, limit)
		if c.obstacle != noObstacle || found && !c.better(&best) {
			continue
		}
		best, found = c, true
		if !p.explore { // else a dearer one may still be the one to find out about
			limit = best.cost
		}
	}
	return best, found
}

// betterOfTwo draws copies until two different ones can be used, and takes the
// better. It gives up after a few draws: then too few of them live, and all
// must be looked at.
func (p *pricing) betterOfTwo(m *modelCopies) (candidate, bool) {
	const draws = 8
	n := uint64(len(m.pipes))
	if n < 3 {
		return candidate{}, false
	}
	var first candidate
	found := false
	for try := range uint64(draws) {
		c := p.candidate(m, int(mix(p.req.Draw+try*0x9e3779b97f4a7c15)%n), Infinite)
		switch {
		case c.obstacle != noObstacle || found && c.pipeline == first.pipeline:
		case !found:
			first, found = c, true
		case c.better(&first):
			return c, true
		default:
			return first, true
		}
	}
	return candidate{}, false
}

// routeOf is the route that a candidate stands for. It shares the plan's
// stages unless the window cuts one.
func (p *pricing) routeOf(m *modelCopies, c *candidate) Route {
	pl := &m.pipes[c.pipeline]
	stages := pl.Stages[c.lo:c.hi:c.hi]
	if c.lo < c.hi && (stages[0].Layers.First < p.window.First || stages[len(stages)-1].Layers.Last > p.window.Last) {
		stages = append([]Stage(nil), stages...)
		stages[0].Layers.First = max(stages[0].Layers.First, p.window.First)
		stages[len(stages)-1].Layers.Last = min(stages[len(stages)-1].Layers.Last, p.window.Last)
	}
	return Route{Model: pl.Model, PipelineID: pl.ID, Stages: stages, Cost: c.cost}
}

// noRoute says why nothing can be used.
func (p *pricing) noRoute(model string, m *modelCopies) error {
	err := &NoRouteError{Model: model, Window: p.window, Furthest: -1}
	for i := range m.pipes {
		c := p.candidate(m, i, Infinite)
		err.Rejected = append(err.Rejected, p.rejection(m, &c))
	}
	switch {
	case m.id < 0, !p.window.Stated():
		err.Reason = "the plan has no copy of it"
	case p.policy.Assemble == AssembleNever:
		err.Reason = "no copy can be used"
	default:
		if gap, ok := p.gap(); ok {
			err.Reason = fmt.Sprintf("no usable node holds layers %s", gap)
		}
	}
	err.Lack = p.lack(m)
	return err
}

func (p *pricing) rejection(m *modelCopies, c *candidate) Rejection {
	pl := &m.pipes[c.pipeline]
	r := Rejection{PipelineID: pl.ID}
	if c.obstacle == outside {
		r.Reason = fmt.Sprintf("does not contain layers %s", p.window)
		return r
	}
	layers, _ := pl.Stages[c.stage].Layers.Clip(p.window)
	r.Node = pl.Stages[c.stage].Node
	r.Reason = p.why(m.nodes[c.pipeline][c.stage], layers, c.obstacle)
	return r
}
