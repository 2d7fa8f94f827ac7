package swarm

import "fmt"

// A State is what a route is chosen from: the plan, expensive and rarely
// changed, and the telemetry, cheap and always changing. They are separate so
// that pricing anew never plans anew.
type State struct {
	Plan  *Plan
	Nodes map[string]NodeState // by node id; a node that is absent is alive and unmeasured

	Weights *Weights // nil: DefaultWeights
}

// StateFromPlan returns the plan with cold telemetry: every node alive,
// unmeasured, and holding what the plan gives it. Without a plan (nil) there
// are no nodes.
func StateFromPlan(plan *Plan) State {
	if plan == nil {
		return State{Nodes: map[string]NodeState{}}
	}
	nodes := make(map[string]NodeState, len(plan.Nodes))
	for _, n := range plan.Nodes {
		state := NodeState{ID: n.Profile.ID}
		for _, f := range n.Fragments {
			state.Fragments = append(state.Fragments, Fragment{Model: f.Model, Layers: f.Layers})
		}
		nodes[state.ID] = state
	}
	for _, p := range plan.Pipelines {
		for _, s := range p.Stages {
			addStage(nodes, p.Model, s)
		}
	}
	return State{Plan: plan, Nodes: nodes}
}

// addStage makes a stage's node hold the stage's layers, unless one of its
// fragments contains them already.
func addStage(nodes map[string]NodeState, model string, s Stage) {
	n := nodes[s.Node]
	n.ID = s.Node
	for _, f := range n.Fragments {
		if f.Model == model && f.Layers.Covers(s.Layers) {
			nodes[s.Node] = n
			return
		}
	}
	n.Fragments = append(n.Fragments, Fragment{Model: model, Layers: s.Layers})
	nodes[s.Node] = n
}

// StateFromProfiles is StateFromPlan with each node's declared latency and
// score and no load, which counts as measured. A profile of a node that the
// plan does not know adds a node that holds nothing.
func StateFromProfiles(plan *Plan, profiles []NodeProfile) State {
	st := StateFromPlan(plan)
	for _, p := range profiles {
		n := st.Nodes[p.ID]
		n.ID = p.ID
		n.LatencyMS, n.Load, n.Score = Measured(p.LatencyMS), Measured(0), Measured(p.Score)
		st.Nodes[p.ID] = n
	}
	return st
}

// Validate checks the weights, every sample, and that each sample stands under
// its own id.
func (s State) Validate() error {
	if err := s.weights().Validate(); err != nil {
		return err
	}
	for id, n := range s.Nodes {
		if n.ID != id {
			return fmt.Errorf("telemetry of node %q stands under %q: %w", n.ID, id, ErrInvalid)
		}
		if err := n.Validate(); err != nil {
			return err
		}
	}
	return nil
}

func (s State) weights() Weights {
	if s.Weights == nil {
		return DefaultWeights()
	}
	return *s.Weights
}

// base is the model that NodeState.Served speaks of: the plan's one model that
// is neither an expert nor a fallback, "" when that is not one.
func (s State) base() string {
	base := ""
	if s.Plan == nil {
		return base
	}
	for i := range s.Plan.Models {
		m := &s.Plan.Models[i]
		if m.Expert || m.FallbackFor != "" {
			continue
		}
		if base != "" {
			return ""
		}
		base = m.ID
	}
	return base
}
