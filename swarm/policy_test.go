package swarm

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

func TestPolicyValidate(t *testing.T) {
	bad := Weights{Load: -1}
	for says, p := range map[string]Policy{
		"load":        {Weights: &bad},
		"margin":      {Margin: 1.5},
		"explore":     {Explore: math.NaN()},
		"KV reserve":  {KVReserve: -0.1},
		"staleness":   {StaleAfter: -time.Second},
		"staleness l": {StaleHalf: -1},
	} {
		if err := p.Validate(); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%+v: %v, want ErrInvalid about %s", p, err, says)
		}
	}
	for _, p := range []Policy{{}, {Margin: -1, Explore: -1}, {Margin: 1, Explore: 1, KVReserve: 1}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestSignalsValidate(t *testing.T) {
	f := NewFleet("m")
	for field, s := range map[string]Signals{
		"round_trip_ms": {RoundTripMS: Measured(-1)}, "layer_ms": {LayerMS: Measured(math.NaN())}, "prefill_ms": {PrefillMS: Measured(math.Inf(1))},
		"kv_free": {KVFree: Measured(-1)}, "kv_total": {KVTotal: Measured(-1)}, "errors": {Errors: Measured(1.1)},
		"slots": {Slots: -1}, "circuit": {Circuit: 7},
	} {
		err := f.Signal("mini", s)
		var field2 *FieldError
		if !errors.As(err, &field2) || field2.Node != "mini" || field2.Field != field {
			t.Errorf("%+v: %v, want a FieldError about %s of mini", s, err, field)
		}
	}
	if n, known := f.Node("mini"); known {
		t.Errorf("refused signals left a node behind: %+v", n)
	}
	if err := f.Observe(NodeState{ID: "mini", Load: Measured(-1)}, time.Time{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a broken sample: %v", err)
	}
}

func TestTermsSaturateAndPrint(t *testing.T) {
	huge := Terms{TermDecode: Infinite - 5, TermLink: 10}
	if got := huge.Total(); got != Infinite {
		t.Errorf("a huge price adds up to %v, want +Inf", got)
	}
	large := Terms{TermDecode: Infinite / 2, TermLoad: 7, TermExplore: -3}
	if got := large.Total(); got != Infinite/2+4 {
		t.Errorf("a large price adds up to %d, want %d", got, Infinite/2+4)
	}
	small := Terms{TermDecode: 1500000, TermExplore: -500000}
	if data, err := json.Marshal(small); err != nil || string(data) != `{"decode":1.5,"explore":-0.5}` {
		t.Errorf("written as %s, %v", data, err)
	}
	if text, err := CircuitHalfOpen.MarshalText(); err != nil || string(text) != "half-open" {
		t.Errorf("a circuit state is written as %s, %v", text, err)
	}
}

// Absurd measurements must not overflow into attractive prices.
func TestAbsurdMeasurementsStayDear(t *testing.T) {
	f := NewFleet("m")
	observe(t, f, "a", math.MaxFloat64, math.MaxFloat64, 1e-300, time.Time{})
	observe(t, f, "b", 900, 5, 1, time.Time{})
	router := NewRouter(twins(2), f)
	if r, err := router.Choose("m", AdaptiveRequest{OutputTokens: 1000, PromptTokens: 100000}, Policy{}); err != nil || !r.Uses("b") {
		t.Errorf("adaptive: %v, %v, want b", r, err)
	}
	if r, err := router.RouteRequest("m", Request{PromptTokens: 100000}, nil); err != nil || !r.Uses("b") {
		t.Errorf("classic: %v, %v, want b", r, err)
	}
	f.MarkDead("b")
	if r, err := router.Choose("m", AdaptiveRequest{}, Policy{}); err != nil || !r.Uses("a") || r.Cost != Infinite {
		t.Errorf("nothing else lives: %v, %v, want a at any price", r, err)
	}
}
