package swarm

import (
	"fmt"
	"slices"
	"strings"
)

// Nodes lists the node of each stage, in order.
func (r Route) Nodes() []string {
	ids := make([]string, len(r.Stages))
	for i, s := range r.Stages {
		ids[i] = s.Node
	}
	return ids
}

// Hops is the number of boundaries between stages.
func (r Route) Hops() int { return max(0, len(r.Stages)-1) }

// Uses reports whether the node runs a stage of the route.
func (r Route) Uses(node string) bool {
	return slices.ContainsFunc(r.Stages, func(s Stage) bool { return s.Node == node })
}

// Window is the layer range from the first stage to the last, Unstated when
// the route has no stages or does not state its ranges.
func (r Route) Window() LayerRange {
	if len(r.Stages) == 0 || !r.Stages[0].Layers.Stated() {
		return unstated
	}
	return LayerRange{First: r.Stages[0].Layers.First, Last: r.Stages[len(r.Stages)-1].Layers.Last}
}

// String prints model, stages and price: "ncm: mini[0-7] laptop[8-11] 71.5ms".
func (r Route) String() string {
	var b strings.Builder
	b.WriteString(r.Model + ":")
	for _, s := range r.Stages {
		b.WriteString(" " + s.String())
	}
	b.WriteString(" " + r.Cost.String())
	if r.Degraded {
		b.WriteString(" degraded")
	}
	return b.String()
}

// A RouteCheck says what ValidateRoute must find.
type RouteCheck struct {
	Window *LayerRange // the layers that must be covered; nil: the route's own window

	// ConfirmedOnly wants each node's own telemetry to say that it holds its
	// stage. Otherwise the plan's redundancy map is believed too.
	ConfirmedOnly bool
}

// ValidateRoute checks a route from scratch: its stages are contiguous, cover
// the window exactly, and each stage's node is a living holder of the stage's
// layers. The error (ErrInvalid) names the stage at fault.
func ValidateRoute(route Route, st State, check RouteCheck) error {
	h := holders{model: route.Model, base: st.base(), nodes: st.Nodes}
	if st.Plan != nil && !check.ConfirmedOnly {
		h.redundancy = st.Plan.Redundancy[route.Model]
	}
	window := route.Window()
	if check.Window != nil {
		window = *check.Window
	}
	if err := checkCover(route.Stages, window); err != nil {
		return fmt.Errorf("route for model %q: %w", route.Model, err)
	}
	return h.check(route.Stages)
}

// checkCover demands stages that follow one another and make up the window.
func checkCover(stages []Stage, window LayerRange) error {
	if len(stages) == 0 {
		return fmt.Errorf("no stages: %w", ErrInvalid)
	}
	next := window.First
	for i, s := range stages {
		switch {
		case !s.Layers.Valid():
			return fmt.Errorf("stage %d, %s, states no layers: %w", i, s, ErrInvalid)
		case s.Layers.First != next:
			return fmt.Errorf("stage %d, %s, does not begin at layer %d: %w", i, s, next, ErrInvalid)
		}
		next = s.Layers.Last + 1
	}
	if next != window.Last+1 {
		return fmt.Errorf("stages end at layer %d, window %s: %w", next-1, window, ErrInvalid)
	}
	return nil
}

// check demands that each stage's node is a living holder of it.
func (h *holders) check(stages []Stage) error {
	for i, s := range stages {
		switch {
		case !h.alive(s.Node):
			return fmt.Errorf("stage %d, %s, of model %q: the node is dead: %w", i, s, h.model, ErrInvalid)
		case !h.holdsAll(s.Node, s.Layers):
			return fmt.Errorf("stage %d, %s, of model %q: the node does not hold these layers: %w", i, s, h.model, ErrInvalid)
		}
	}
	return nil
}
