package swarm

import (
	"fmt"
	"slices"
)

// MinimumNodeMemory is the smallest budget in bytes that lets that many equal
// nodes hold that many copies of the model so that the plan validates, the
// default headroom included. See Planner.MinimumNodeMemory.
func MinimumNodeMemory(spec ModelSpec, nodes, copies int) (int64, error) {
	return Planner{}.MinimumNodeMemory(spec, nodes, copies)
}

// MinimumNodeMemory is the smallest budget in bytes that lets that many equal
// nodes hold that many copies of the model so that the plan validates. With
// three nodes and two copies it is a good two thirds of the model: each node
// holds two thirds of the layers, and headroom.
//
// More copies than nodes are an error: copies lie on distinct nodes.
func (pl Planner) MinimumNodeMemory(spec ModelSpec, nodes, copies int) (int64, error) {
	switch {
	case nodes < 1:
		return 0, fmt.Errorf("minimum memory for %d nodes: %w", nodes, ErrInvalid)
	case copies < 1:
		return 0, fmt.Errorf("minimum memory for %d copies: %w", copies, ErrInvalid)
	case copies > nodes:
		return 0, fmt.Errorf("%d copies need %d nodes and there are %d: %w", copies, copies, nodes, ErrInvalid)
	}
	if err := pl.Validate(); err != nil {
		return 0, err
	}
	spec.Copies, spec.Expert, spec.FallbackFor = copies, false, ""
	if err := spec.Validate(); err != nil {
		return 0, fmt.Errorf("minimum memory: %w", err)
	}
	s := newSheet(&spec)
	usable := leastUsable(s, nodes, copies)
	budget := pl.budgetFor(usable)
	plan, err := pl.Plan(equalNodes(nodes, budget), []ModelSpec{spec}, nil)
	if err != nil {
		return 0, err
	}
	if err := plan.Validate(); err != nil {
		panic("BUG: the smallest budget does not hold: " + err.Error())
	}
	return budget, nil
}

// leastUsable searches the smallest usable memory per node with which the
// slots of all copies can be dealt from some layer on. More memory never
// reaches less far, so halving finds it.
func leastUsable(s *sheet, nodes, copies int) int64 {
	low, high := int64(0), s.total()
	for low < high {
		mid := low + (high-low)/2
		if dealable(s, nodes, copies, mid) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

func dealable(s *sheet, nodes, copies int, usable int64) bool {
	d := &dealer{s: s, desk: &desk{seats: slices.Repeat([]seat{{free: usable}}, nodes)}}
	order := make([]int, nodes)
	for i := range order {
		order[i] = i
	}
	for from := range beginnings(s.layers, nodes, copies) {
		to := from + copies*s.layers
		if _, end := d.fill(order, from, to, Infinite, false); end == to {
			return true
		}
	}
	return false
}

// budgetFor is the smallest budget whose usable part is at least that much.
func (pl Planner) budgetFor(usable int64) int64 {
	low, high := usable, maxNodeBytes
	for low < high {
		mid := low + (high-low)/2
		if mid-pl.headroom(mid) >= usable {
			high = mid
		} else {
			low = mid + 1
		}
	}
	return high
}

func equalNodes(n int, budget int64) []NodeProfile {
	out := make([]NodeProfile, n)
	for i := range out {
		out[i] = NodeProfile{ID: fmt.Sprintf("node-%05d", i), MemoryBytes: budget, Score: 1}
	}
	return out
}
