package swarm

import "fmt"

// FailoverInSwarm finds what stands in for a broken route, strictly in this
// order:
//
//  0. the failed node is not on the route: the route, with ReasonNotOnRoute;
//  1. the cheapest other living copy of the same model, which the plan vouches for;
//  2. a splice, when every lost layer has another living holder of the same model;
//  3. when opts names a fallback model: its cheapest living copy, else the
//     survivors in order; labelled degraded;
//  4. an UnrecoverableError.
//
// Other nodes of the route that telemetry calls dead count as failed too. A
// model that is not declared as the fallback never stands in.
func FailoverInSwarm(route Route, failed string, st State, opts FailoverOptions) (Route, error) {
	if opts.Weights == nil {
		opts.Weights = st.Weights
	}
	b, err := newBreak(route, failed, opts)
	if err != nil {
		return Route{}, err
	}
	if !route.Uses(failed) {
		route.Reason = ReasonNotOnRoute
		return route, nil
	}
	base := opts.Base
	if base == "" {
		base = st.base()
	}
	b.lookup(st.Nodes, st.redundancy(route.Model), base)
	if whole, ok := b.copy(st, route.Model, b.window()); ok {
		return whole, nil
	}
	spliced, err := b.splice()
	if err == nil {
		return spliced, nil
	}
	if opts.FallbackModel == "" {
		return Route{}, err
	}
	if whole, ok := b.copy(st, opts.FallbackModel, nil); ok {
		whole.Degraded = true
		whole.Reason = fmt.Sprintf("fallback for %q", route.Model)
		return whole, nil
	}
	return b.survivors(), nil
}

func (s State) redundancy(model string) Redundancy {
	if s.Plan == nil {
		return nil
	}
	return s.Plan.Redundancy[model]
}

// window is what a copy must cover, nil when the route does not say.
func (b *broken) window() *LayerRange {
	if w := b.route.Window(); w.Stated() {
		return &w
	}
	return b.opts.Window
}

// copy is the cheapest whole copy of a model without any failed node.
func (b *broken) copy(st State, model string, window *LayerRange) (Route, bool) {
	pipes := st.pipelines()
	req := Request{Window: window, PromptTokens: b.opts.PromptTokens}
	src := mapSource{pipes: pipes, nodes: st.Nodes, failed: b.failed}
	best, ok := cheapestCopy(pipes, model, &req, &b.weights, src)
	if !ok {
		return Route{}, false
	}
	return routeOf(pipes, best), true
}
