package swarm

import "slices"

// A Router is a plan compiled for a fleet: nodes by index, copies by model. It
// never changes; a new plan gets a new Router on the same Fleet.
type Router struct {
	plan   *Plan
	fleet  *Fleet
	models map[string]*modelCopies
}

// modelCopies is one model's copies, by rising pipeline id.
type modelCopies struct {
	name   string
	id     int32 // the fleet's index of the model
	pipes  []Pipeline
	nodes  [][]int32  // by pipeline and stage: the fleet's index of the node
	window LayerRange // all of the model
}

// NewRouter compiles the plan. The plan must not change afterwards, since
// routes share its stages.
func NewRouter(plan *Plan, fleet *Fleet) *Router {
	r := &Router{plan: plan, fleet: fleet, models: map[string]*modelCopies{}}
	for _, p := range plan.Pipelines {
		m := r.models[p.Model]
		if m == nil {
			m = &modelCopies{name: p.Model, id: fleet.model(p.Model), window: unstated}
			r.models[p.Model] = m
		}
		m.pipes = append(m.pipes, p)
	}
	for _, spec := range plan.Models {
		if r.models[spec.ID] == nil {
			r.models[spec.ID] = &modelCopies{name: spec.ID, id: fleet.model(spec.ID), window: unstated}
		}
		if spec.Layers > 0 {
			r.models[spec.ID].window = LayerRange{First: 0, Last: spec.Layers - 1}
		}
	}
	for _, m := range r.models {
		m.compile(fleet)
	}
	return r
}

func (m *modelCopies) compile(fleet *Fleet) {
	slices.SortStableFunc(m.pipes, func(a, b Pipeline) int { return a.ID - b.ID })
	m.nodes = make([][]int32, len(m.pipes))
	for p := range m.pipes {
		for _, s := range m.pipes[p].Stages {
			m.nodes[p] = append(m.nodes[p], fleet.index(s.Node))
			if m.window.Stated() && m.window.Covers(s.Layers) {
				continue
			}
			m.window = widen(m.window, s.Layers)
		}
	}
}

// widen is the smallest range that contains both.
func widen(a, b LayerRange) LayerRange {
	if !a.Stated() {
		return b
	}
	return LayerRange{First: min(a.First, b.First), Last: max(a.Last, b.Last)}
}

// Plan is the plan that was compiled.
func (r *Router) Plan() *Plan { return r.plan }

// Fleet is the fleet that it was compiled for.
func (r *Router) Fleet() *Fleet { return r.fleet }

// RouteRequest is the package's RouteRequest over the fleet's samples: same
// rules, same code, no look-ups by name. Weights nil: DefaultWeights.
func (r *Router) RouteRequest(model string, req Request, weights *Weights) (Route, error) {
	if err := req.validate(); err != nil {
		return Route{}, err
	}
	w := DefaultWeights()
	if weights != nil {
		w = *weights
	}
	if err := w.Validate(); err != nil {
		return Route{}, err
	}
	m := r.copies(model)
	return chooseCopy(m.pipes, model, &req, &w, fleetSource{known: r.fleet.vitals, index: m.nodes})
}

// noCopies stands for a model that the plan does not have.
var noCopies = modelCopies{id: -1, window: unstated}

func (r *Router) copies(model string) *modelCopies {
	if m := r.models[model]; m != nil {
		return m
	}
	return &noCopies
}

// fleetSource looks samples up by index.
type fleetSource struct {
	known []vitals
	index [][]int32
}

func (f fleetSource) price(p, lo, hi int, w Weights) (Cost, bool) {
	total := Cost(0)
	for _, node := range f.index[p][lo:hi] {
		v := &f.known[node]
		if v.dead {
			return 0, false
		}
		total = total.Add(w.cost(*v))
	}
	return total, true
}

func (f fleetSource) dead(p, s int) bool { return f.known[f.index[p][s]].dead }
