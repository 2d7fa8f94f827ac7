package swarm

import (
	"fmt"
	"slices"
)

// ReasonNotOnRoute is the reason of a route that a failure left unchanged.
const ReasonNotOnRoute = "not on the route"

// FailoverOptions tunes Failover and FailoverInSwarm. The zero value is the
// default: no degradation, default weights.
type FailoverOptions struct {
	// FallbackModel, when named, allows degradation to that model, labelled.
	FallbackModel string

	PromptTokens int      // part of the price of the new route, >= 0
	Weights      *Weights // nil: DefaultWeights, or the State's own
	Base         string   // the model that NodeState.Served speaks of; "" when unknown

	// Window is the layer range of a route that does not state its ranges;
	// nil: what the redundancy map spans.
	Window *LayerRange

	// ConfirmedOnly lets only nodes take over whose own telemetry says that
	// they hold the layers; otherwise the redundancy map is believed too.
	ConfirmedOnly bool
}

// Failover repairs one route after a node failed, without a plan.
//
// A node that is not on the route leaves it unchanged, with ReasonNotOnRoute.
// Otherwise each lost layer goes to the cheapest living holder (ties by id).
// When some layer has none, the result is a degraded route over the survivors
// if a fallback model is named, else an UnrecoverableError. Other nodes of the
// route that telemetry calls dead count as failed too.
func Failover(route Route, redundancy Redundancy, failed string, states map[string]NodeState, opts FailoverOptions) (Route, error) {
	b, err := newBreak(route, failed, opts)
	if err != nil {
		return Route{}, err
	}
	if !route.Uses(failed) {
		route.Reason = ReasonNotOnRoute
		return route, nil
	}
	b.lookup(states, redundancy, opts.Base)
	spliced, err := b.splice()
	if err == nil {
		return spliced, nil
	}
	if opts.FallbackModel != "" {
		return b.survivors(), nil
	}
	return Route{}, err
}

// broken is a route in the middle of being repaired.
type broken struct {
	route   Route
	opts    FailoverOptions
	weights Weights
	failed  []string // the failed node, then the route's other dead ones
	holders holders
}

func newBreak(route Route, failed string, opts FailoverOptions) (*broken, error) {
	b := &broken{route: route, opts: opts, weights: DefaultWeights(), failed: []string{failed}}
	if opts.Weights != nil {
		b.weights = *opts.Weights
	}
	if err := b.weights.Validate(); err != nil {
		return nil, err
	}
	if err := (Request{Window: opts.Window, PromptTokens: opts.PromptTokens}).validate(); err != nil {
		return nil, err
	}
	if err := checkShape(route); err != nil {
		return nil, err
	}
	return b, nil
}

// checkShape refuses a route whose ranges are stated in part or do not follow
// one another: its repair could not be checked.
func checkShape(route Route) error {
	if !slices.ContainsFunc(route.Stages, func(s Stage) bool { return s.Layers.Stated() }) {
		return nil
	}
	if err := checkCover(route.Stages, route.Window()); err != nil {
		return fmt.Errorf("route to repair: %w", err)
	}
	return nil
}

// lookup notes who holds what and which other nodes of the route are dead.
func (b *broken) lookup(states map[string]NodeState, redundancy Redundancy, base string) {
	for _, s := range b.route.Stages {
		if states[s.Node].Dead && !slices.Contains(b.failed, s.Node) {
			b.failed = append(b.failed, s.Node)
		}
	}
	b.holders = holders{model: b.route.Model, base: base, nodes: states, failed: b.failed}
	if !b.opts.ConfirmedOnly {
		b.holders.redundancy = redundancy
	}
}

// splice puts substitutes in the place of the failed nodes, or says which
// layers nobody can take over.
func (b *broken) splice() (Route, error) {
	out := Route{Model: b.route.Model, PipelineID: -1}
	lost := b.lost()
	ranked := b.holders.ranked(&b.weights)
	var missing []LayerRange
	known := false
	for i, s := range b.route.Stages {
		if !slices.Contains(b.failed, s.Node) {
			out.Stages = appendStage(out.Stages, s)
			continue
		}
		for _, r := range lost[i] {
			known = true
			subs, none := b.holders.substitutes(ranked, r)
			missing = append(missing, none...)
			for _, sub := range subs {
				out.Replaced = appendReplacement(out.Replaced, Replacement{By: sub.Node, Layers: sub.Layers})
				if !s.Layers.Stated() {
					sub.Layers = unstated
				}
				out.Stages = appendStage(out.Stages, sub)
			}
		}
	}
	if len(missing) > 0 || !known {
		return Route{}, b.unrecoverable(missing, known)
	}
	if err := b.checkSplice(out); err != nil {
		return Route{}, err
	}
	out.Cost = b.weights.RouteCost(out.Stages, b.holders.nodes, b.opts.PromptTokens)
	return out, nil
}

func (b *broken) unrecoverable(missing []LayerRange, known bool) error {
	err := &UnrecoverableError{Model: b.route.Model, Window: b.route.Window(), Failed: b.failed, Lost: missing}
	if !known {
		err.Reason = "nothing says which layers it ran"
	}
	return err
}

// checkSplice verifies a spliced route before anybody runs it: the whole
// window once, every substitute a living holder, no failed node left.
func (b *broken) checkSplice(out Route) error {
	if window := b.route.Window(); window.Stated() {
		if err := checkCover(out.Stages, window); err != nil {
			return fmt.Errorf("spliced route: %w", err)
		}
	}
	for _, r := range out.Replaced {
		if !b.holders.holdsAll(r.By, r.Layers) {
			return fmt.Errorf("spliced route: %s does not hold layers %s of %q: %w", r.By, r.Layers, out.Model, ErrInvalid)
		}
	}
	return nil
}

// appendReplacement merges consecutive layers that went to the same node.
func appendReplacement(list []Replacement, r Replacement) []Replacement {
	if n := len(list); n > 0 && list[n-1].By == r.By && list[n-1].Layers.Last+1 == r.Layers.First {
		list[n-1].Layers.Last = r.Layers.Last
		return list
	}
	return append(list, r)
}

// survivors is the degraded route of last resort: the nodes that are left, in
// order, under the fallback's name. It states no layers: the survivors' ranges
// are those of another model.
func (b *broken) survivors() Route {
	out := Route{Model: b.opts.FallbackModel, PipelineID: -1, Degraded: true,
		Reason: fmt.Sprintf("survivors of %q, which has lost layers without a holder", b.route.Model)}
	for _, s := range b.route.Stages {
		if !slices.Contains(b.failed, s.Node) {
			out.Stages = appendStage(out.Stages, Stage{Node: s.Node, Layers: unstated})
		}
	}
	out.Cost = b.weights.RouteCost(out.Stages, b.holders.nodes, b.opts.PromptTokens)
	return out
}
