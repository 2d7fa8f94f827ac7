package swarm

import (
	"encoding/json"
	"math"
	"testing"
)

func TestCostArithmetic(t *testing.T) {
	for _, c := range []struct {
		name      string
		got, want Cost
	}{
		{"half rounds away from zero", CostOf(0.0000005), 1},
		{"below a half rounds down", CostOf(0.00000049), 0},
		{"a large odd half", CostOf(4503599627.3704955), 4503599627370496},
		{"not a number", CostOf(math.NaN()), Infinite},
		{"too large", CostOf(1e300), Infinite},
		{"below zero", CostOf(-1), 0},
		{"sum", Cost(2).Add(3), 5},
		{"sum saturates", Infinite.Add(1), Infinite},
		{"large sum saturates", (Infinite - 1).Add(Infinite - 1), Infinite},
		{"product", Cost(7).Times(3), 21},
		{"product saturates", (Infinite / 2).Times(3), Infinite},
		{"no hops", Cost(7).Times(-1), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, c.got, c.want)
		}
	}
}

func TestCostPrints(t *testing.T) {
	for c, want := range map[Cost]string{
		0: "0ms", 1: "0.000001ms", 71500000: "71.5ms", Millisecond: "1ms", Infinite: "+Inf", -1500000: "-1.5ms",
	} {
		if got := c.String(); got != want {
			t.Errorf("%d prints %q, want %q", c, got, want)
		}
	}
}

func TestCostJSON(t *testing.T) {
	for _, c := range []Cost{0, 1, 999999, Millisecond, 71500000, 1<<53 + 1, Infinite - 1, Infinite} {
		data, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		var back Cost
		if err := json.Unmarshal(data, &back); err != nil || back != c {
			t.Errorf("%d is written as %s and read as %d, %v", c, data, back, err)
		}
	}
	for text, want := range map[string]Cost{"1e3": 1000 * Millisecond, "0.1234567": 123457, "1e300": Infinite} {
		var got Cost
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s is read as %d, %v, want %d", text, got, err, want)
		}
	}
	for _, bad := range []string{"-1", `"12"`, "{}", "true"} {
		var c Cost
		if err := json.Unmarshal([]byte(bad), &c); err == nil {
			t.Errorf("%s was accepted as %v", bad, c)
		}
	}
}

// A route without stages is infinitely dear, and a node without telemetry is
// neither free nor skipped.
func TestPriceOfNothing(t *testing.T) {
	w := DefaultWeights()
	if got := w.RouteCost(nil, nil, 0); got != Infinite {
		t.Errorf("no stages cost %v, want +Inf", got)
	}
	for _, n := range []NodeState{
		{},
		{LatencyMS: Measured(1), Load: Measured(0)},
		{LatencyMS: Measured(1), Score: Measured(1)},
		{Load: Measured(0), Score: Measured(1)},
	} {
		if got := w.NodeCost(n); got != UnmeasuredCost {
			t.Errorf("%+v costs %v, want %v", n, got, UnmeasuredCost)
		}
	}
}

func TestNodeCost(t *testing.T) {
	for _, c := range []struct {
		n    NodeState
		w    Weights
		want string
	}{
		{sample("a", 10, 0, 10), DefaultWeights(), "13.5ms"},
		{sample("a", 10, 2.5, 10), DefaultWeights(), "313.5ms"},
		{sample("a", 10, 0, 0), DefaultWeights(), "3510ms"},
		{sample("a", 6.4, 1, 28), FastLAN(), "193.157143ms"},
	} {
		if got := c.w.NodeCost(c.n).String(); got != c.want {
			t.Errorf("%+v costs %s, want %s", c.n, got, c.want)
		}
	}
	if got := DefaultWeights().PromptCost(4096).String(); got != "40ms" {
		t.Errorf("4096 prompt tokens cost %s, want 40ms", got)
	}
	if got := DefaultWeights().HopCost().String(); got != "15ms" {
		t.Errorf("a hop costs %s, want 15ms", got)
	}
}

func TestMovingAverage(t *testing.T) {
	var r Reading
	r = r.Observe(10)
	if r != Measured(10) {
		t.Errorf("the first sample gives %v, want 10", r)
	}
	if r = r.Observe(20); r != Measured(12) {
		t.Errorf("the second gives %v, want 12", r)
	}
}

func FuzzCostJSON(f *testing.F) {
	for _, s := range []string{"1", "1.5", `"+Inf"`, "-0", "1e999", "00", "1.", "9223372036854.775807", "9223372036854.775808"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c, back Cost
		if json.Unmarshal(data, &c) != nil {
			return
		}
		if c < 0 {
			t.Fatalf("%s is read as %d", data, c)
		}
		again, err := json.Marshal(c)
		if err != nil || json.Unmarshal(again, &back) != nil || back != c {
			t.Fatalf("%s is read as %d, written as %s, read as %d", data, c, again, back)
		}
	})
}
