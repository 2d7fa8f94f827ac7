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

func (s State) weights() Weights {
	if s.Weights == nil {
		return DefaultWeights()
	}
	return *s.Weights
}

// Validate checks every sample and that each stands under its own id.
func (s State) Validate() error {
	for id, n := range s.Nodes {
		if err := n.Validate(); err != nil {
			return err
		}
		if n.ID != id {
			return fmt.Errorf("telemetry of node %q stands under %q: %w", n.ID, id, ErrInvalid)
		}
	}
	return nil
}
