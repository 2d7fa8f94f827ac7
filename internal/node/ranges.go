package node

import (
	"hecate/internal/engine"
	"hecate/swarm"
)

func asRange(r engine.Range) swarm.LayerRange {
	return swarm.LayerRange{First: r.First, Last: r.Last}
}

func keyOfRange(model string, r swarm.LayerRange) fragmentKey {
	return fragmentKey{model, r.First, r.Last}
}

func rangesOf(fs []swarm.Fragment, model string) (out []swarm.LayerRange) {
	for _, f := range fs {
		if f.Model == model {
			out = append(out, f.Layers)
		}
	}
	return out
}

// subtract is what is wanted and not held.
func subtract(want []swarm.Fragment, held []engine.Fragment) (missing []swarm.Fragment) {
	for _, w := range want {
		var have []swarm.LayerRange
		for _, h := range held {
			if h.Model == w.Model {
				have = append(have, asRange(h.Layers))
			}
		}
		for _, r := range without(w.Layers, have) {
			missing = append(missing, swarm.Fragment{Model: w.Model, Layers: r})
		}
	}
	return missing
}

// without gives the maximal runs of r that no range of cut contains.
func without(r swarm.LayerRange, cut []swarm.LayerRange) (left []swarm.LayerRange) {
	covered := func(layer int) bool {
		for _, c := range cut {
			if layer >= c.First && layer <= c.Last {
				return true
			}
		}
		return false
	}
	for layer := r.First; layer <= r.Last; layer++ {
		switch {
		case covered(layer):
		case len(left) > 0 && left[len(left)-1].Last == layer-1:
			left[len(left)-1].Last = layer
		default:
			left = append(left, swarm.LayerRange{First: layer, Last: layer})
		}
	}
	return left
}
