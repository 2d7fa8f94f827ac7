package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"hecate/swarm"
)

// A Policy is one way to choose routes.
type Policy struct {
	Name  string
	About string

	// Make gives a gateway its decider.
	Make func(*Gateway) Decider
}

// A Decider decides for one gateway. Its answers may share memory with the
// plan.
type Decider interface {
	// Route chooses for a request that arrives.
	Route(*Job) (swarm.Route, error)
	// Rescue replaces a route whose node failed.
	Rescue(*Job, swarm.Route, string) (swarm.Route, error)
}

// A Job is what a gateway knows of a request.
type Job struct {
	Model  string
	Prompt int // tokens to read: of a rescue, all that the answer has so far
	Output int // tokens that are still expected
	Now    time.Time
	Draw   uint64
}

// Policies are all policies, ours first.
func Policies() []Policy {
	return []Policy{
		{"adaptive", "swarm's Router.Choose: by measured time, work in flight counts at once",
			func(g *Gateway) Decider { return newAdaptive(g, swarm.Cheapest) }},
		{"two-choice", "the same, the better of two copies drawn by lot",
			func(g *Gateway) Decider { return newAdaptive(g, swarm.TwoChoices) }},
		{"classic", "swarm's RouteRequest: the cheapest copy by the last reports",
			func(g *Gateway) Decider { return &classic{g} }},
		{"least-loaded", "the copy whose busiest node has the least load by the last reports, ties by lot",
			func(g *Gateway) Decider { return &leastLoaded{newBlind(g)} }},
		{"round-robin", "one living copy after the other",
			func(g *Gateway) Decider { return &roundRobin{newBlind(g)} }},
		{"random", "any living copy",
			func(g *Gateway) Decider { return &random{newBlind(g)} }},
	}
}

// PoliciesNamed picks policies; no names mean all.
func PoliciesNamed(names ...string) ([]Policy, error) {
	all := Policies()
	if len(names) == 0 {
		return all, nil
	}
	var out []Policy
	for _, name := range names {
		i := slices.IndexFunc(all, func(p Policy) bool { return p.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown policy %q, want one of %s: %w", name, policyNames(all), swarm.ErrInvalid)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func policyNames(all []Policy) string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// adaptive asks swarm's adaptive router.
type adaptive struct {
	gateway *Gateway
	policy  swarm.Policy
}

func newAdaptive(g *Gateway, choice swarm.ChoiceMode) *adaptive {
	policy := g.scenario.Policy
	policy.Choice = choice
	if policy.Weights == nil {
		policy.Weights = g.scenario.Weights
	}
	return &adaptive{g, policy}
}

func (a *adaptive) request(j *Job) swarm.AdaptiveRequest {
	return swarm.AdaptiveRequest{PromptTokens: j.Prompt, OutputTokens: j.Output, Now: j.Now, Draw: j.Draw}
}

func (a *adaptive) Route(j *Job) (swarm.Route, error) {
	return a.gateway.scenario.Rules.Choose(a.gateway.router, j.Model, a.request(j), a.policy)
}

func (a *adaptive) Rescue(j *Job, route swarm.Route, failed string) (swarm.Route, error) {
	req := swarm.RescueRequest{Adaptive: a.request(j), Prefer: swarm.PreferSoonest, StatesHeld: true}
	r, err := a.gateway.scenario.Rules.Rescue(a.gateway.router, route, failed, req, a.policy)
	return r.Route, err
}

// classic asks swarm's classic router.
type classic struct{ gateway *Gateway }

func (c *classic) Route(j *Job) (swarm.Route, error) {
	req := swarm.Request{PromptTokens: j.Prompt}
	return c.gateway.scenario.Rules.Route(c.gateway.router, j.Model, req, c.gateway.scenario.Weights)
}

func (c *classic) Rescue(j *Job, route swarm.Route, failed string) (swarm.Route, error) {
	return c.gateway.failover(j, route, failed)
}
