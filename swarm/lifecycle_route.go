package swarm

import "fmt"

// Route chooses a route for the base model: the cheapest living copy; when
// none lives, the cheapest broken one, repaired. So a degraded swarm serves.
func (s *Swarm) Route(req Request) (Route, error) { return s.RouteModel(s.config.Model, req) }

// RouteModel is Route for any model of the plan, experts included.
func (s *Swarm) RouteModel(model string, req Request) (Route, error) {
	if s.health == Stopped {
		return Route{}, fmt.Errorf("route: %w", ErrStopped)
	}
	if req.Base == "" {
		req.Base = s.config.Model
	}
	route, err := RouteRequest(model, req, s.state)
	if err == nil {
		return route, nil
	}
	broken, ok := s.cheapestBroken(model, req)
	if !ok {
		return Route{}, fmt.Errorf("route: %w", err)
	}
	repaired, repairErr := s.repair(broken, s.firstDead(broken), req)
	if repairErr != nil {
		return Route{}, fmt.Errorf("route: %w; repairing the cheapest copy: %w", err, repairErr)
	}
	if repaired.Reason == "" {
		repaired.Reason = fmt.Sprintf("no copy of %q lives; pipeline %d is repaired", model, broken.PipelineID)
	}
	return repaired, nil
}

// repair is FailoverInSwarm with the swarm's settings. A degraded route over
// no survivors at all is no route.
func (s *Swarm) repair(route Route, failed string, req Request) (Route, error) {
	out, err := FailoverInSwarm(route, failed, s.state, FailoverOptions{
		FallbackModel: s.fallback(route.Model), PromptTokens: req.PromptTokens, Base: s.config.Model,
	})
	if err == nil && len(out.Stages) == 0 {
		err = &UnrecoverableError{Model: route.Model, Window: route.Window(), Failed: []string{failed}, Reason: "no node of the route survives"}
	}
	if err != nil {
		return Route{}, err
	}
	return out, nil
}

// fallback is the model that is named, or declared, to stand in for another.
func (s *Swarm) fallback(model string) string {
	if model == s.config.Model && s.config.Fallback != "" {
		return s.config.Fallback
	}
	for i := range s.state.Plan.Models {
		if s.state.Plan.Models[i].FallbackFor == model {
			return s.state.Plan.Models[i].ID
		}
	}
	return ""
}

// cheapestBroken is the copy with a dead node that would be cheapest if all
// its nodes lived, clipped to the window; ties by id.
func (s *Swarm) cheapestBroken(model string, req Request) (Route, bool) {
	best, found := Route{}, false
	w := s.state.weights()
	for _, p := range s.state.Plan.Pipelines {
		if p.Model != model {
			continue
		}
		lo, hi, ok := clipStages(p.Stages, req.Window)
		if !ok {
			continue
		}
		r := Route{Model: model, PipelineID: p.ID, Stages: p.Stages[lo:hi:hi]}
		if s.firstDead(r) == "" {
			continue
		}
		r.Cost = w.RouteCost(r.Stages, s.state.Nodes, req.PromptTokens)
		if !found || r.Cost < best.Cost {
			best, found = r, true
		}
	}
	return best, found
}

// firstDead is the first node of a route that is dead, "" when all live.
func (s *Swarm) firstDead(r Route) string {
	for _, st := range r.Stages {
		if s.state.Nodes[st.Node].Dead {
			return st.Node
		}
	}
	return ""
}
