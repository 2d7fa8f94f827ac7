package swarm

import (
	"fmt"
	"slices"
)

// A source knows the nodes of the pipeline at index p. Routing over a map of
// samples and over indexed samples differ in this alone.
type source interface {
	// price sums the prices of the nodes of stages lo..hi-1; false when one of
	// them is dead.
	price(p, lo, hi int, w Weights) (Cost, bool)
	// dead reports whether the node of stage s is.
	dead(p, s int) bool
}

// A pick is a priced copy: an index into the pipelines and the stages that
// run, lo..hi-1.
type pick struct {
	pipeline, lo, hi int
	cost             Cost
}

// cheapestCopy prices every whole, living copy of the model and returns the
// cheapest; ties go to the smaller pipeline id. It does not allocate.
func cheapestCopy[S source](pipes []Pipeline, model string, req *Request, w *Weights, src S) (pick, bool) {
	best, found := pick{}, false
	hop, prompt := w.HopCost(), w.PromptCost(req.PromptTokens)
	for p := range pipes {
		if pipes[p].Model != model {
			continue
		}
		lo, hi, ok := clipStages(pipes[p].Stages, req.Window)
		if !ok {
			continue
		}
		cost, alive := src.price(p, lo, hi, *w)
		if !alive {
			continue
		}
		cost = cost.Add(hop.Times(hi - lo - 1)).Add(prompt)
		if !found || cost < best.cost || (cost == best.cost && pipes[p].ID < pipes[best.pipeline].ID) {
			best, found = pick{p, lo, hi, cost}, true
		}
	}
	return best, found
}

// clipStages finds the whole stages that make up the window, all of them for
// no window; false when the window cuts a stage or reaches beyond the copy.
func clipStages(stages []Stage, window *LayerRange) (lo, hi int, ok bool) {
	if window == nil {
		return 0, len(stages), len(stages) > 0
	}
	for lo < len(stages) && stages[lo].Layers.First != window.First {
		lo++
	}
	for hi = lo; hi < len(stages); hi++ {
		if stages[hi].Layers.Last == window.Last {
			return lo, hi + 1, true
		}
	}
	return 0, 0, false
}

// routeOf is the route that a pick stands for. It shares the plan's stages.
func routeOf(pipes []Pipeline, k pick) Route {
	p := &pipes[k.pipeline]
	return Route{Model: p.Model, PipelineID: p.ID, Stages: p.Stages[k.lo:k.hi:k.hi], Cost: k.cost}
}

// rejections says, in the order of the ids, what is wrong with each copy of
// the model. Only errors pay for it.
func rejections[S source](pipes []Pipeline, model string, req *Request, src S) []Rejection {
	var out []Rejection
	for p := range pipes {
		if pipes[p].Model == model {
			out = append(out, reject(&pipes[p], p, req, src))
		}
	}
	slices.SortStableFunc(out, func(a, b Rejection) int { return a.PipelineID - b.PipelineID })
	return out
}

func reject[S source](pl *Pipeline, p int, req *Request, src S) Rejection {
	r := Rejection{PipelineID: pl.ID}
	lo, hi, ok := clipStages(pl.Stages, req.Window)
	switch {
	case len(pl.Stages) == 0:
		r.Reason = "has no stages"
	case !ok:
		r.Reason = fmt.Sprintf("has no whole stages over layers %s", req.Window)
	}
	for s := lo; s < hi; s++ {
		if src.dead(p, s) {
			r.Node, r.Reason = pl.Stages[s].Node, "is dead"
			break
		}
	}
	return r
}

// chooseCopy is RouteRequest over any source.
func chooseCopy[S source](pipes []Pipeline, model string, req *Request, w *Weights, src S) (Route, error) {
	if best, ok := cheapestCopy(pipes, model, req, w, src); ok {
		return routeOf(pipes, best), nil
	}
	err := &NoRouteError{Model: model, Window: unstated, Furthest: -1, Rejected: rejections(pipes, model, req, src)}
	if req.Window != nil {
		err.Window = *req.Window
	}
	if len(err.Rejected) == 0 {
		err.Reason = "the plan has no copy of it"
	}
	return Route{}, err
}
