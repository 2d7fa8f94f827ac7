package swarm

import "slices"

// lost lists, per stage of the route, the layers that are gone with its node.
func (b *broken) lost() map[int][]LayerRange {
	if b.route.Window().Stated() {
		return b.lostStages()
	}
	out := map[int][]LayerRange{}
	for _, node := range b.failed {
		b.deal(node, b.served(node), out)
	}
	return out
}

func (b *broken) lostStages() map[int][]LayerRange {
	out := map[int][]LayerRange{}
	for i, s := range b.route.Stages {
		if slices.Contains(b.failed, s.Node) {
			out[i] = []LayerRange{s.Layers}
		}
	}
	return out
}

// served guesses what a node ran on a route that does not say: what its
// telemetry says it serves, else what the redundancy map gives it, clipped to
// the window.
func (b *broken) served(node string) []LayerRange {
	window, bounded := b.spanned()
	var layers []int
	n := b.holders.nodes[node]
	n.Holds(b.holders.model, b.holders.base, func(r LayerRange) bool {
		if c, ok := r.Clip(window); ok || !bounded {
			if !bounded {
				c = r
			}
			for l := c.First; l <= c.Last; l++ {
				layers = append(layers, l)
			}
		}
		return true
	})
	if len(layers) == 0 {
		for l, ids := range b.holders.redundancy {
			if slices.Contains(ids, node) && (!bounded || window.Contains(l)) {
				layers = append(layers, l)
			}
		}
	}
	slices.Sort(layers)
	var runs []LayerRange
	for _, l := range slices.Compact(layers) {
		runs = appendLayer(runs, l)
	}
	return runs
}

// spanned is the window of a route that does not state its ranges.
func (b *broken) spanned() (LayerRange, bool) {
	if b.opts.Window != nil {
		return *b.opts.Window, true
	}
	window := LayerRange{First: MaxLayer, Last: -1}
	for l := range b.holders.redundancy {
		window.First, window.Last = min(window.First, l), max(window.Last, l)
	}
	return window, window.Last >= 0
}

// deal hands a node's runs of layers to its places on the route, in order; its
// last place takes what is left.
func (b *broken) deal(node string, runs []LayerRange, out map[int][]LayerRange) {
	var places []int
	for i, s := range b.route.Stages {
		if s.Node == node {
			places = append(places, i)
		}
	}
	for i, run := range runs {
		at := places[min(i, len(places)-1)]
		out[at] = append(out[at], run)
	}
}
