package sim

import "hecate/swarm"

// Rules are the decisions of package swarm that a simulation lives by. A nil
// rule is swarm's own; another one shows what would happen if it were different.
type Rules struct {
	Route    func(*swarm.Router, string, swarm.Request, *swarm.Weights) (swarm.Route, error)
	Choose   func(*swarm.Router, string, swarm.AdaptiveRequest, swarm.Policy) (swarm.Route, error)
	Rescue   func(*swarm.Router, swarm.Route, string, swarm.RescueRequest, swarm.Policy) (swarm.Rescue, error)
	Failover func(swarm.Route, string, swarm.State, swarm.FailoverOptions) (swarm.Route, error)
}

func (r Rules) withDefaults() Rules {
	if r.Route == nil {
		r.Route = (*swarm.Router).RouteRequest
	}
	if r.Choose == nil {
		r.Choose = (*swarm.Router).Choose
	}
	if r.Rescue == nil {
		r.Rescue = (*swarm.Router).Rescue
	}
	if r.Failover == nil {
		r.Failover = swarm.FailoverInSwarm
	}
	return r
}
