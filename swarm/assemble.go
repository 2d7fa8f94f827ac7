package swarm

// assemble looks for a chain outside the plan's copies, if the policy wants
// one, and reports whether it is to be used instead of the best copy.
func (p *pricing) assemble(m *modelCopies, best candidate, haveCopy bool) (Route, bool) {
	switch {
	case p.policy.Assemble == AssembleNever, !p.window.Stated():
		return Route{}, false
	case haveCopy && (p.policy.onlyBroken() || best.explores):
		return Route{}, false
	}
	w := &p.fleet.weave
	w.collect(p)
	if !w.solve(p.window) {
		return Route{}, false
	}
	if haveCopy && float64(w.cost) >= float64(best.cost)*(1-max(0, p.policy.Margin)) {
		return Route{}, false
	}
	reason := "no copy of the plan can be used"
	if haveCopy {
		reason = "cheaper than the best copy by the margin"
	}
	return Route{
		Model: m.name, PipelineID: -1, Stages: w.stages(p.fleet, p.window), Cost: w.cost,
		Assembled: true, Reason: reason,
	}, true
}
