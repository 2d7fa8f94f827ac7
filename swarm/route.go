package swarm

import "slices"

// RouteRequest chooses the cheapest whole, living copy of exactly that model
// among the plan's pipelines; ties go to the smaller pipeline id. Another
// model is never an answer.
//
// A window narrower than the copy is served only when it is made of whole
// stages. Choosing does not allocate and does not plan: the route shares its
// stages with the plan, so they must not be changed. A NoRouteError lists each
// copy of the model and the node that disqualifies it.
func RouteRequest(model string, req Request, st State) (Route, error) {
	if err := req.validate(); err != nil {
		return Route{}, err
	}
	w := st.weights()
	if err := w.Validate(); err != nil {
		return Route{}, err
	}
	pipes := st.pipelines()
	return chooseCopy(pipes, model, &req, &w, mapSource{pipes: pipes, nodes: st.Nodes})
}

func (s State) pipelines() []Pipeline {
	if s.Plan == nil {
		return nil
	}
	return s.Plan.Pipelines
}

// mapSource looks samples up by node id; nodes in failed count as dead.
type mapSource struct {
	pipes  []Pipeline
	nodes  map[string]NodeState
	failed []string
}

func (m mapSource) price(p, lo, hi int, w Weights) (Cost, bool) {
	total := Cost(0)
	for _, s := range m.pipes[p].Stages[lo:hi] {
		n := m.nodes[s.Node]
		if n.Dead || slices.Contains(m.failed, s.Node) {
			return 0, false
		}
		total = total.Add(w.cost(n.vitals()))
	}
	return total, true
}

func (m mapSource) dead(p, s int) bool {
	id := m.pipes[p].Stages[s].Node
	return m.nodes[id].Dead || slices.Contains(m.failed, id)
}
