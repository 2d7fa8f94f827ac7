package swarm

import (
	"fmt"
	"math"
	"time"
)

// Constants of the adaptive price. Each is a stated assumption, used only
// where nothing was measured, or the size of a penalty.
const (
	// DefaultOutputTokens is expected of an answer when neither the request
	// nor experience says how long it will be.
	DefaultOutputTokens = 256
	// MaxExpectedTokens clips a request's own limit, which clients like to set
	// far above what they will get.
	MaxExpectedTokens = 1024
	// DefaultSlots is how many sessions a node runs at once when it does not say.
	DefaultSlots = 4

	assumedRoundTripMS = hopMS // a link that was never measured
	prefillSpeedup     = 8     // prompt tokens are read in batches, this much faster than steps
	unmeasuredStepMS   = 100   // per token over the whole window, on a node of unknown speed
	errorMS            = 10000 // what one error counts as a latency sample
	kvMS               = 200   // for a session that takes all the KV room that is left

	defaultExplore = 0.05
	defaultMargin  = 0.2
	defaultStale   = 3 * time.Second
	defaultHalf    = 10 * time.Second
)

// A ChoiceMode says how one of the live copies is chosen.
type ChoiceMode int

const (
	// Cheapest prices every copy and takes the cheapest: deterministic.
	Cheapest ChoiceMode = iota
	// TwoChoices prices two live copies, drawn from the request's Draw, and
	// takes the cheaper. It spreads a burst over gateways that do not see
	// each other's reservations, and its cost does not grow with the number
	// of copies.
	TwoChoices
)

// An AssembleMode says when a chain outside the plan's copies may be used.
type AssembleMode int

const (
	// AssembleCheaper assembles when no copy can be used, and when a chain is
	// cheaper than the best copy by the margin. Looking for it prices every
	// node; with TwoChoices, whose point is not to, it is AssembleBroken.
	AssembleCheaper AssembleMode = iota
	// AssembleBroken assembles only when no copy can be used.
	AssembleBroken
	// AssembleNever takes whole copies or nothing.
	AssembleNever
)

// A Policy tunes the adaptive choice. The zero value is the default.
type Policy struct {
	Weights  *Weights // Load and Capacity are used; the rest is measured here. Nil: DefaultWeights
	Choice   ChoiceMode
	Assemble AssembleMode

	// Margin is the share of the best copy's price that an assembled chain
	// must save to be preferred, 0..1. 0 means 0.2; negative: any saving.
	Margin float64
	// Explore is the share of requests that may go to a node of unknown
	// speed, or on probation, as if it were fast, one at a time. 0 means
	// 0.05; negative: none.
	Explore float64
	// KVReserve is the share of each node's KV cache that is sold to rescues
	// only, 0..1.
	KVReserve float64
	// StaleAfter is the age from which a sample counts as old; 0 means 3 s.
	// From there half of the way to the unmeasured price is gone after
	// StaleHalf, three quarters after three times that; 0 means 10 s.
	StaleAfter, StaleHalf time.Duration
	// ConfirmedOnly uses a planned stage only when the node's own sample says
	// that it holds it. Otherwise a node that has said nothing is believed to
	// hold what the plan gives it.
	ConfirmedOnly bool
}

// Validate refuses shares outside their range and durations below zero.
func (p Policy) Validate() error {
	if p.Weights != nil {
		if err := p.Weights.Validate(); err != nil {
			return err
		}
	}
	switch {
	case !(p.Margin <= 1):
		return fmt.Errorf("margin %v is above 1: %w", p.Margin, ErrInvalid)
	case !(p.Explore <= 1):
		return fmt.Errorf("explore share %v is above 1: %w", p.Explore, ErrInvalid)
	case !(p.KVReserve >= 0 && p.KVReserve <= 1):
		return fmt.Errorf("KV reserve %v is outside 0..1: %w", p.KVReserve, ErrInvalid)
	case p.StaleAfter < 0 || p.StaleHalf < 0:
		return fmt.Errorf("staleness limits %v, %v are below zero: %w", p.StaleAfter, p.StaleHalf, ErrInvalid)
	}
	return nil
}

// onlyBroken reports whether chains are left alone while a copy can be used.
func (p *Policy) onlyBroken() bool {
	return p.Assemble == AssembleBroken || p.Choice == TwoChoices
}

// withDefaults fills in what was left at zero.
func (p Policy) withDefaults() Policy {
	if p.Margin == 0 {
		p.Margin = defaultMargin
	}
	if p.Explore == 0 {
		p.Explore = defaultExplore
	}
	if p.StaleAfter == 0 {
		p.StaleAfter = defaultStale
	}
	if p.StaleHalf == 0 {
		p.StaleHalf = defaultHalf
	}
	return p
}

// An AdaptiveRequest is what the adaptive router is asked for. The zero value
// asks for the whole model, no prompt and an answer of unknown length.
type AdaptiveRequest struct {
	Window       *LayerRange // nil: the whole model
	PromptTokens int         // >= 0
	OutputTokens int         // expected, see ExpectedTokens; 0: DefaultOutputTokens
	KVTokens     int         // KV cells that each stage needs; 0: prompt and output
	Rescue       bool        // may use the share of the KV cache kept for rescues

	// Now is when the choice is made; samples are as old as it says. Zero:
	// every sample is fresh.
	Now time.Time
	// Draw decides chance: whether this request explores, and which two copies
	// TwoChoices looks at. The same draw gives the same choice; a counter will do.
	Draw uint64
}

func (r *AdaptiveRequest) validate() error {
	if r.PromptTokens < 0 || r.OutputTokens < 0 || r.KVTokens < 0 {
		return fmt.Errorf("tokens below zero (prompt %d, output %d, kv %d): %w",
			r.PromptTokens, r.OutputTokens, r.KVTokens, ErrInvalid)
	}
	return Request{Window: r.Window}.validate()
}

// ExpectedTokens estimates how long an answer will be: the model's moving
// average of past answers, else the request's own limit clipped to
// MaxExpectedTokens, else DefaultOutputTokens; never more than the limit, when
// there is one (maxTokens > 0).
func ExpectedTokens(maxTokens int, average Reading) int {
	switch {
	case average.Known && finite(average.Value):
		expect := int(math.Ceil(min(average.Value, math.MaxInt32)))
		if maxTokens > 0 {
			expect = min(expect, maxTokens)
		}
		return max(1, expect)
	case maxTokens > 0:
		return min(maxTokens, MaxExpectedTokens)
	}
	return DefaultOutputTokens
}
