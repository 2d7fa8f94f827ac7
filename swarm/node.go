package swarm

import "slices"

// A Reading is a measured number, or the absence of one: the zero value is
// "unmeasured".
type Reading struct {
	Value float64
	Known bool
}

// Measured returns a known reading.
func Measured(v float64) Reading { return Reading{Value: v, Known: true} }

// sampleWeight is what a new sample counts in a moving average.
const sampleWeight = 0.2

// Observe returns the moving average after one more sample: the first sample
// as it is, each later one with weight 0.2.
func (r Reading) Observe(sample float64) Reading {
	if !r.Known {
		return Measured(sample)
	}
	// The conversions keep compilers from fusing the products, which would
	// round differently on some platforms.
	return Measured(float64(sampleWeight*sample) + float64((1-sampleWeight)*r.Value))
}

// A NodeState is what one node last said of itself. The zero value is a node
// of which nothing is known: alive and unmeasured.
type NodeState struct {
	ID        string
	LatencyMS Reading      // moving average, milliseconds, >= 0
	Load      Reading      // 0 idle, 1 fully loaded, above 1 a queue
	Score     Reading      // relative compute capacity, >= 0
	Served    []LayerRange // fragments of the base model; never merged, overlaps are legal
	Fragments []Fragment   // fragments of every model, the base model's included
	Dead      bool
}

// Alive is the opposite of Dead.
func (n NodeState) Alive() bool { return !n.Dead }

// IsMeasured reports whether the node has everything that its price needs.
func (n NodeState) IsMeasured() bool { return n.LatencyMS.Known && n.Load.Known && n.Score.Known }

// Unmeasured returns the state with its numbers forgotten: same fragments,
// same life.
func (n NodeState) Unmeasured() NodeState {
	n.LatencyMS, n.Load, n.Score = Reading{}, Reading{}, Reading{}
	return n
}

// Holds calls yield with every fragment of model that the node says it holds.
//
// A list of fragments speaks of all models. The older list of served layers
// speaks of the base model alone: it counts when model is base, or, with base
// unknown (""), when it is all that the node says.
func (n *NodeState) Holds(model, base string, yield func(LayerRange) bool) {
	if model == base || (base == "" && len(n.Fragments) == 0) {
		for _, r := range n.Served {
			if !yield(r) {
				return
			}
		}
	}
	for i := range n.Fragments {
		if n.Fragments[i].Model == model && !yield(n.Fragments[i].Layers) {
			return
		}
	}
}

// HoldsLayer reports whether some fragment of model contains the layer.
func (n *NodeState) HoldsLayer(model, base string, layer int) bool {
	found := false
	n.Holds(model, base, func(r LayerRange) bool {
		found = r.Contains(layer)
		return !found
	})
	return found
}

// Validate refuses numbers that are negative, infinite or not numbers, and
// ranges that are inverted; the error names node and field.
func (n *NodeState) Validate() error {
	if n.ID == "" {
		return &FieldError{Field: "node_id", Problem: "is missing"}
	}
	for _, f := range []struct {
		name string
		r    Reading
	}{{"latency_ms", n.LatencyMS}, {"current_load", n.Load}, {"capacity_score", n.Score}} {
		if f.r.Known && !finite(f.r.Value) {
			return &FieldError{Node: n.ID, Field: f.name, Problem: problemOf(f.r.Value)}
		}
	}
	if len(n.Served) > MaxFragments || len(n.Fragments) > MaxFragments {
		return &FieldError{Node: n.ID, Field: "fragments", Problem: "has too many entries"}
	}
	if i := slices.IndexFunc(n.Served, func(r LayerRange) bool { return !r.Valid() }); i >= 0 {
		return &FieldError{Node: n.ID, Field: "served_layers", Problem: "has no such range as " + n.Served[i].String()}
	}
	for _, f := range n.Fragments {
		if f.Model == "" {
			return &FieldError{Node: n.ID, Field: "fragments", Problem: "has an entry without a model"}
		}
		if !f.Layers.Valid() {
			return &FieldError{Node: n.ID, Field: "fragments", Problem: "has no such range as " + f.Layers.String()}
		}
	}
	return nil
}

func problemOf(v float64) string {
	switch {
	case v != v:
		return "is not a number"
	case v < 0:
		return "is negative"
	}
	return "is infinite"
}
