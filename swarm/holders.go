package swarm

import (
	"cmp"
	"maps"
	"slices"
)

// holders answers who may take over a layer of one model: living nodes whose
// telemetry serves it, and those that the redundancy map names.
type holders struct {
	model, base string
	nodes       map[string]NodeState
	redundancy  Redundancy // nil: telemetry alone counts
	failed      []string   // count as dead
}

func (h *holders) alive(node string) bool {
	return !h.nodes[node].Dead && !slices.Contains(h.failed, node)
}

// holds reports whether a living node holds the layer.
func (h *holders) holds(node string, layer int) bool {
	if !h.alive(node) {
		return false
	}
	n := h.nodes[node]
	return n.HoldsLayer(h.model, h.base, layer) || slices.Contains(h.redundancy[layer], node)
}

// holdsAll reports whether a living node holds every layer of the range.
func (h *holders) holdsAll(node string, r LayerRange) bool {
	for layer := r.First; layer <= r.Last; layer++ {
		if !h.holds(node, layer) {
			return false
		}
	}
	return true
}

// ranked lists every living node that telemetry or the redundancy map knows,
// cheapest first, ties by id.
func (h *holders) ranked(w *Weights) []string {
	known := map[string]Cost{}
	add := func(id string) {
		if _, seen := known[id]; !seen && h.alive(id) {
			known[id] = w.NodeCost(h.nodes[id])
		}
	}
	for id := range h.nodes {
		add(id)
	}
	for _, ids := range h.redundancy {
		for _, id := range ids {
			add(id)
		}
	}
	return slices.SortedFunc(maps.Keys(known), func(a, b string) int {
		return cmp.Or(cmp.Compare(known[a], known[b]), cmp.Compare(a, b))
	})
}

// substitutes finds for each layer of the range the first of the ranked nodes
// that holds it, consecutive layers of one node merged. Layers without one
// come back as missing.
func (h *holders) substitutes(ranked []string, lost LayerRange) (subs []Stage, missing []LayerRange) {
	for layer := lost.First; layer <= lost.Last; layer++ {
		i := slices.IndexFunc(ranked, func(id string) bool { return h.holds(id, layer) })
		if i < 0 {
			missing = appendLayer(missing, layer)
			continue
		}
		subs = appendStage(subs, Stage{Node: ranked[i], Layers: LayerRange{First: layer, Last: layer}})
	}
	return subs, missing
}

// appendLayer adds a layer to ranges in rising order, growing the last one
// where it can.
func appendLayer(ranges []LayerRange, layer int) []LayerRange {
	if n := len(ranges); n > 0 && ranges[n-1].Last+1 == layer {
		ranges[n-1].Last = layer
		return ranges
	}
	return append(ranges, LayerRange{First: layer, Last: layer})
}

// appendStage adds a stage, collapsing it with the one before when the same
// node goes on. Only neighbours collapse: a node that comes back later keeps
// its later stage, or its layers would be lost.
func appendStage(stages []Stage, s Stage) []Stage {
	if n := len(stages); n > 0 && stages[n-1].Node == s.Node {
		last := &stages[n-1].Layers
		switch {
		case !last.Stated() || !s.Layers.Stated():
			*last = unstated
			return stages
		case last.Last+1 == s.Layers.First:
			last.Last = s.Layers.Last
			return stages
		}
	}
	return append(stages, s)
}
