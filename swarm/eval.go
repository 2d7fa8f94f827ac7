package swarm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// EvalKinds names the rules that Eval can be asked about.
func EvalKinds() []string { return []string{"score", "failover", "swarm", "swarm_failover"} }

// Eval answers an array of cases with an array of answers in the same order,
// so that anyone can check the rules from outside. Kinds: "score" asks
// ScoreRoute, "swarm" RouteRequest, "failover" Failover, "swarm_failover"
// FailoverInSwarm. A case that is malformed is answered by
// {"error":"invalid","detail":...} and does not disturb its neighbours; the
// error is for an unknown kind and for what is not an array.
//
// A case has "states" (samples), "model", and may have "weights" (missing ones
// are the defaults), "prompt_tokens", "layer_range", "pipelines", "route",
// "failed", "redundancy" (layer to nodes) and "fallback_model".
func Eval(kind string, cases []byte) ([]byte, error) {
	answer, ok := map[string]func(*evalCase) any{
		"score": evalScore, "failover": evalFailover, "swarm": evalSwarm, "swarm_failover": evalSwarmFailover,
	}[kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind %q, want one of %q: %w", kind, EvalKinds(), ErrInvalid)
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(cases, &raw); err != nil {
		return nil, fmt.Errorf("reading the array of cases: %w", err)
	}
	answers := make([]any, len(raw))
	for i, r := range raw {
		c, err := decodeCase(r)
		if err != nil {
			answers[i] = evalError(err)
			continue
		}
		answers[i] = answer(c)
	}
	return json.MarshalIndent(answers, "", "  ")
}

// An evalCase is one case, decoded.
type evalCase struct {
	Model        string       `json:"model"`
	States       []NodeState  `json:"states"`
	Weights      *Weights     `json:"weights"`
	PromptTokens int          `json:"prompt_tokens"`
	Window       *LayerRange  `json:"layer_range"`
	Pipelines    []Pipeline   `json:"pipelines"`
	Route        []routePlace `json:"route"`
	Failed       string       `json:"failed"`
	Redundancy   Redundancy   `json:"redundancy"`
	Fallback     string       `json:"fallback_model"`
	nodes        map[string]NodeState
}

// A routePlace is a stage, or just the name of its node.
type routePlace Stage

func (p *routePlace) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*p = routePlace{Layers: unstated}
		return json.Unmarshal(data, &p.Node)
	}
	return (*Stage)(p).UnmarshalJSON(data)
}

func decodeCase(data []byte) (*evalCase, error) {
	defaults := DefaultWeights()
	c := &evalCase{Weights: &defaults}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, err
	}
	if c.Weights == nil { // "weights": null
		c.Weights = &defaults
	}
	c.nodes = make(map[string]NodeState, len(c.States))
	for _, n := range c.States {
		if n.ID == "" {
			return nil, &FieldError{Field: "node_id", Problem: "is missing"}
		}
		if _, twice := c.nodes[n.ID]; twice {
			return nil, &FieldError{Node: n.ID, Field: "node_id", Problem: "is given twice"}
		}
		c.nodes[n.ID] = n
	}
	return c, nil
}

func (c *evalCase) request() Request {
	return Request{Window: c.Window, PromptTokens: c.PromptTokens}
}

func (c *evalCase) state() State {
	return State{Plan: &Plan{Pipelines: c.Pipelines}, Nodes: c.nodes, Weights: c.Weights}
}

func (c *evalCase) route() Route {
	r := Route{Model: c.Model, PipelineID: -1}
	for _, p := range c.Route {
		r.Stages = append(r.Stages, Stage(p))
	}
	return r
}

func (c *evalCase) options() FailoverOptions {
	return FailoverOptions{FallbackModel: c.Fallback, PromptTokens: c.PromptTokens, Weights: c.Weights, Window: c.Window}
}

func evalScore(c *evalCase) any {
	r, err := ScoreRoute(c.request(), c.nodes, *c.Weights, c.Model)
	if err != nil {
		return evalError(err)
	}
	return answer{"nodes": r.Nodes(), "stages": r.Stages, "cost": r.Cost, "hops": r.Hops()}
}

func evalSwarm(c *evalCase) any {
	r, err := RouteRequest(c.Model, c.request(), c.state())
	if err != nil {
		return evalError(err)
	}
	return answer{"pipeline_id": r.PipelineID, "nodes": r.Nodes(), "cost": r.Cost}
}

func evalFailover(c *evalCase) any {
	r, err := Failover(c.route(), c.Redundancy, c.Failed, c.nodes, c.options())
	switch {
	case err != nil:
		return evalError(err)
	case r.Reason == ReasonNotOnRoute:
		return answer{"nodes": r.Nodes(), "degraded": r.Degraded, "reason": r.Reason}
	case r.Degraded:
		return answer{"nodes": r.Nodes(), "degraded": true, "model": r.Model}
	case !r.Window().Stated():
		return answer{"nodes": r.Nodes(), "degraded": false}
	}
	return answer{"nodes": r.Nodes(), "stages": r.Stages, "degraded": false, "cost": r.Cost}
}

func evalSwarmFailover(c *evalCase) any {
	r, err := FailoverInSwarm(c.route(), c.Failed, c.state(), c.options())
	if err != nil {
		return evalError(err)
	}
	out := answer{"nodes": r.Nodes(), "degraded": r.Degraded}
	if r.Reason == ReasonNotOnRoute {
		out["reason"] = r.Reason
		return out
	}
	out["model"] = r.Model
	switch {
	case r.PipelineID >= 0:
		out["pipeline_id"], out["cost"] = r.PipelineID, r.Cost
	case !r.Degraded:
		out["stages"], out["replaced"], out["cost"] = r.Stages, r.Replaced, r.Cost
	}
	return out
}

type answer map[string]any

func evalError(err error) answer {
	kinds := []error{ErrNoRoute, ErrUnrecoverable}
	names := []string{"no_route", "unrecoverable"}
	if i := slices.IndexFunc(kinds, func(k error) bool { return errors.Is(err, k) }); i >= 0 {
		return answer{"error": names[i]}
	}
	return answer{"error": "invalid", "detail": err.Error()}
}
