package swarm

import (
	"fmt"
	"slices"
	"time"
)

// pricing holds what is the same for every node while one request is priced.
type pricing struct {
	fleet   *Fleet
	model   int32
	window  LayerRange
	policy  Policy
	weights Weights
	req     AdaptiveRequest
	need    float64 // KV cells per stage
	explore bool    // this request may find out about a node
	failed  []int32 // nodes that count as dead
	relaxed bool    // an open circuit is no obstacle: nothing else is left
	lenient leniency
}

// A nodePrice is affine in the layers that a stage runs, so that the price of
// a chain is a sum over its layers and its stages.
type nodePrice struct{ enter, layer Cost }

func (p nodePrice) of(layers int) Cost { return p.enter.Add(p.layer.Times(layers)) }

// An obstacle says why a node may not run a stage.
type obstacle int

const (
	noObstacle obstacle = iota
	isDead
	isNotHolding
	isOpen
	isProbed
	isFull
)

// usable says whether a node may run these layers now.
func (p *pricing) usable(node int32, layers LayerRange) obstacle {
	if o := p.available(node); o != noObstacle {
		return o
	}
	n := &p.fleet.nodes[node]
	if p.lenient == hopeful {
		return noObstacle
	}
	// A node that has not said what it holds is believed to hold what the plan
	// gives it, unless that must be confirmed.
	if n.speaks || p.policy.ConfirmedOnly {
		if !n.holds(p.model, layers) {
			return isNotHolding
		}
	}
	return noObstacle
}

// available says whether a node may be used at all.
func (p *pricing) available(node int32) obstacle {
	n := &p.fleet.nodes[node]
	switch {
	case p.lenient == hopeful:
	case n.state.Dead || slices.Contains(p.failed, node):
		return isDead
	case n.signals.Circuit != CircuitClosed && !p.relaxed:
		if n.signals.Circuit == CircuitOpen {
			return isOpen
		}
		if n.inFlight > 0 {
			return isProbed
		}
	}
	if n.signals.KVFree.Known && p.lenient != roomless && p.need > p.kvRoom(n) {
		return isFull
	}
	return noObstacle
}

func (n *fleetNode) holds(model int32, layers LayerRange) bool {
	for _, h := range n.held {
		if h.model == model && int(h.first) <= layers.First && layers.Last <= int(h.last) {
			return true
		}
	}
	return false
}

// kvRoom is how many KV cells this request may have: what the node reports
// free or what the leases leave, whichever is less, since the report is late;
// without the part kept for rescues.
func (p *pricing) kvRoom(n *fleetNode) float64 {
	room := n.signals.KVFree.Value
	if total := n.signals.KVTotal; total.Known {
		room = min(room, total.Value-float64(n.kvTokens))
		if p.lenient >= emptied {
			room = total.Value
		}
		if !p.req.Rescue {
			room -= float64(p.policy.KVReserve * total.Value)
		}
	}
	return max(0, room)
}

// why puts an obstacle into words.
func (p *pricing) why(node int32, layers LayerRange, o obstacle) string {
	n := &p.fleet.nodes[node]
	switch o {
	case isDead:
		return "is dead"
	case isNotHolding:
		return fmt.Sprintf("does not hold layers %s", layers)
	case isOpen:
		return "fails too often (circuit open)"
	case isProbed:
		return "is on probation and already probed (circuit half-open)"
	case isFull:
		return fmt.Sprintf("has no room in its KV cache: %.0f tokens needed, %.0f to be had", p.need, p.kvRoom(n))
	}
	panic("BUG: no words for this obstacle")
}

// price adds a node's terms up.
func (p *pricing) price(node int32) nodePrice {
	var enter, layer Terms
	p.terms(node, &enter, &layer)
	return nodePrice{enter.Total(), layer.Total()}
}

// terms prices a node, once per stage and per layer. Every term is rounded on
// its own, so that the named terms add up to the price exactly.
func (p *pricing) terms(node int32, enter, layer *Terms) {
	n := &p.fleet.nodes[node]
	sig := &n.signals
	out := float64(p.req.OutputTokens)

	roundTrip := sig.RoundTripMS.Value
	if !sig.RoundTripMS.Known {
		roundTrip = assumedRoundTripMS
	}
	enter[TermLink] = CostOf(out * roundTrip)
	unknown := !sig.LayerMS.Known && !n.state.IsMeasured()
	if unknown {
		enter[TermUnmeasured], layer[TermUnmeasured] = p.unmeasured()
	} else {
		p.work(n, enter, layer)
	}
	p.loadTerms(n, enter, layer)
	if n.state.Score.Known {
		enter[TermCapacity] = CostOf(float64(p.weights.Capacity*capacityMS) / max(n.state.Score.Value, leastScore))
	}
	p.staleTerms(n, enter, layer)
	if sig.Errors.Known {
		enter[TermErrors] = CostOf(sig.Errors.Value * errorMS)
	}
	if sig.KVFree.Known {
		enter[TermKV] = CostOf(kvMS * p.need / max(p.kvRoom(n), 1))
	}
	if sig.Circuit != CircuitClosed {
		enter[TermCircuit] = UnmeasuredCost
	}
	if p.explore && p.unknown(n) {
		enter[TermExplore] = -(enter[TermUnmeasured] + enter[TermCircuit])
		if !sig.RoundTripMS.Known {
			enter[TermExplore] -= enter[TermLink]
		}
		layer[TermExplore] = -layer[TermUnmeasured]
	}
}

// unknown reports whether somebody should find out about the node: its speed
// is not known or it is on probation, and nobody is at it already.
func (p *pricing) unknown(n *fleetNode) bool {
	return n.inFlight == 0 && (n.signals.Circuit == CircuitHalfOpen ||
		n.signals.Circuit == CircuitClosed && !n.signals.LayerMS.Known && !n.state.IsMeasured())
}

// unmeasured is the work assumed of a node whose speed nobody knows: the
// penalty once, and per layer its part of a slow step over the whole window.
func (p *pricing) unmeasured() (enter, layer Cost) {
	prompt := float64(promptMS*p.req.PromptTokens) / promptTokensMS
	whole := float64(unmeasuredStepMS*p.req.OutputTokens) + prompt
	return UnmeasuredCost, CostOf(whole / float64(p.window.Len()))
}

// work is decoding and reading the prompt, by the best measurement there is:
// per layer where that was measured, else per step.
func (p *pricing) work(n *fleetNode, enter, layer *Terms) {
	out, prompt := float64(p.req.OutputTokens), float64(p.req.PromptTokens)
	step := n.state.LatencyMS.Value
	if n.signals.LayerMS.Known {
		step = n.signals.LayerMS.Value
		layer[TermDecode] = CostOf(out * step)
		layer[TermPrefill] = CostOf(prompt * step / prefillSpeedup)
	} else {
		enter[TermDecode] = CostOf(out * step)
		enter[TermPrefill] = CostOf(prompt * step / prefillSpeedup)
	}
	if n.signals.PrefillMS.Known {
		enter[TermPrefill] = 0
		layer[TermPrefill] = CostOf(prompt * n.signals.PrefillMS.Value / promptTokensMS)
	}
}

// loadTerms charges for waiting: the share of the node that is taken, times
// what a busy node adds and what this stage itself will do there.
func (p *pricing) loadTerms(n *fleetNode, enter, layer *Terms) {
	slots := n.signals.Slots
	if slots == 0 {
		slots = DefaultSlots
	}
	load := float64(n.inFlight) / float64(slots)
	if n.state.Load.Known {
		load = max(load, n.state.Load.Value)
	}
	if load == 0 {
		return
	}
	factor := p.weights.Load * load
	work := enter[TermDecode].Add(enter[TermPrefill]).Add(enter[TermUnmeasured])
	enter[TermLoad] = CostOf(float64(factor*fullLoadMS) + float64(factor*work.Milliseconds()))
	work = layer[TermDecode].Add(layer[TermPrefill]).Add(layer[TermUnmeasured])
	layer[TermLoad] = CostOf(factor * work.Milliseconds())
}

// staleTerms draws the price of an old sample towards the unmeasured one,
// never below what it was.
func (p *pricing) staleTerms(n *fleetNode, enter, layer *Terms) {
	gone := fading(p.age(n)-p.policy.StaleAfter, p.policy.StaleHalf)
	if gone == 0 {
		return
	}
	once, each := p.unmeasured()
	enter[TermStale] = CostOf(gone * max(0, once-enter.Total()).Milliseconds())
	layer[TermStale] = CostOf(gone * max(0, each-layer.Total()).Milliseconds())
}

// age is how old a node's sample is at the time of the request.
func (p *pricing) age(n *fleetNode) time.Duration {
	if p.req.Now.IsZero() || !n.sampled {
		return 0
	}
	return p.req.Now.Sub(n.seenAt)
}
