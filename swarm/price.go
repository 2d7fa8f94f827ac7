package swarm

import "fmt"

// Constants of the price formula, in milliseconds.
const (
	fullLoadMS     = 120  // what a fully loaded node adds
	capacityMS     = 100  // divided by the node's score
	leastScore     = 0.01 // a smaller score counts as this
	hopMS          = 15   // moving from one node to the next
	promptMS       = 10   // per promptTokensMS prompt tokens
	promptTokensMS = 1024
)

// A Request is what a route is wanted for. The zero value asks for all of the
// model and no prompt.
type Request struct {
	// Window is the inclusive layer range to run. Nil means: for RouteRequest
	// the whole copy; for ScoreRoute from the lowest to the highest layer that
	// a living node holds, a window that shrinks when the tail's holders die.
	Window *LayerRange `json:"layer_range,omitempty"`

	// PromptTokens is the length of the prompt, >= 0. It moves the price of
	// every candidate alike, never the winner or the coverage.
	PromptTokens int `json:"prompt_tokens"`

	// Base names the model that NodeState.Served speaks of; "" when unknown.
	Base string `json:"-"`
}

func (r Request) validate() error {
	if r.PromptTokens < 0 {
		return fmt.Errorf("prompt of %d tokens: %w", r.PromptTokens, ErrInvalid)
	}
	if r.Window != nil && !r.Window.Valid() {
		return fmt.Errorf("layer range [%d, %d] holds no layer of 0..%d: %w",
			r.Window.First, r.Window.Last, MaxLayer, ErrInvalid)
	}
	return nil
}

// NodeCost prices one stage on a node:
//
//	latency*latency_ms + load*current_load*120 + capacity*100/max(score, 0.01)
//
// rounded once. A node without full telemetry costs UnmeasuredCost whatever
// the weights.
func (w Weights) NodeCost(n NodeState) Cost { return w.cost(n.vitals()) }

// vitals is the part of a sample that a price needs, small enough to travel in
// registers: pricing looks at nothing else.
type vitals struct {
	latency, load, score float64 // all three or none are measured
	measured, dead       bool
}

func (n *NodeState) vitals() vitals {
	return vitals{n.LatencyMS.Value, n.Load.Value, n.Score.Value, n.IsMeasured(), n.Dead}
}

func (w Weights) cost(v vitals) Cost {
	if !v.measured {
		return UnmeasuredCost
	}
	// Each product is rounded before it is added: a fused multiply-add would
	// give other last digits on other processors, and ties must be real ties.
	ms := float64(w.Latency*v.latency) +
		float64(float64(w.Load*v.load)*fullLoadMS) +
		float64(w.Capacity*capacityMS)/max(v.score, leastScore)
	return CostOf(ms)
}

// HopCost is the price of moving from one stage to the next, rounded once.
func (w Weights) HopCost() Cost { return CostOf(float64(w.Hop * hopMS)) }

// PromptCost is the price of a prompt of that many tokens, rounded once.
func (w Weights) PromptCost(tokens int) Cost {
	return CostOf(float64(float64(w.Prompt*promptMS)*float64(tokens)) / promptTokensMS)
}

// RouteCost prices stages as they are: every stage's node, the hops between
// them and the prompt. No stages cost Infinite.
func (w Weights) RouteCost(stages []Stage, nodes map[string]NodeState, promptTokens int) Cost {
	if len(stages) == 0 {
		return Infinite
	}
	total := w.HopCost().Times(len(stages) - 1).Add(w.PromptCost(promptTokens))
	for _, s := range stages {
		total = total.Add(w.NodeCost(nodes[s.Node]))
	}
	return total
}
