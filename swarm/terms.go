package swarm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Term is one named part of an adaptive price.
type Term int

// The terms of the adaptive price, each in milliseconds-equivalent per stage.
// T is the number of output tokens expected, k the layers that the stage runs,
// P the prompt tokens.
const (
	// TermDecode is T steps on the node: T * k * LayerMS, or T * latency_ms
	// where the time per layer was not measured.
	TermDecode Term = iota
	// TermLink is T round trips between gateway and node, which stand in a
	// star: every stage pays its own.
	TermLink
	// TermPrefill is the time to read the prompt.
	TermPrefill
	// TermLoad is load * (120 ms + the stage's own work), where load is the
	// larger of what the node reports and what the gateway has in flight on
	// it per slot: work counts at once, before any telemetry arrives.
	TermLoad
	// TermCapacity is 100 ms / score, as in the classic price.
	TermCapacity
	// TermUnmeasured stands in for the work of a node whose speed nobody knows.
	TermUnmeasured
	// TermStale draws the price of an old sample towards the unmeasured one.
	TermStale
	// TermErrors is 10 s times the share of recent requests that failed: a
	// node that fails fast must not look idle.
	TermErrors
	// TermCircuit is the price of a node on probation (circuit half open).
	TermCircuit
	// TermKV rises as the session would fill what is left of the KV cache.
	TermKV
	// TermExplore takes back, as a negative price, what was only assumed or
	// feared of a node, for a request that is to find out about it.
	TermExplore
	numTerms
)

var termNames = [numTerms]string{
	"decode", "link", "prefill", "load", "capacity", "unmeasured", "stale", "errors", "circuit", "kv", "explore",
}

func (t Term) String() string { return termNames[t] }

// Terms is a price taken apart. In JSON it is an object of the terms that are
// not zero, in milliseconds.
type Terms [numTerms]Cost

// Total adds the terms up, saturating at Infinite.
func (t *Terms) Total() Cost {
	sum, bits := Cost(0), Cost(0)
	for _, c := range t[:TermExplore] {
		sum += c
		bits |= c
	}
	// None of them was so large that eleven could overflow: no need to look at
	// each sum, which is what choosing spends its time on.
	if bits >= 1<<59 {
		sum = t.saturated()
	}
	if sum == Infinite {
		return sum
	}
	return max(0, sum+t[TermExplore])
}

func (t *Terms) saturated() Cost {
	sum := Cost(0)
	for _, c := range t[:TermExplore] {
		sum = sum.Add(c)
	}
	return sum
}

// add adds n times other, term by term.
func (t *Terms) add(other *Terms, n int) {
	for i, c := range other[:TermExplore] {
		t[i] = t[i].Add(c.Times(n))
	}
	t[TermExplore] -= (-other[TermExplore]).Times(n)
}

// String prints the terms that are not zero: "decode=128ms link=12.8ms".
func (t Terms) String() string {
	var parts []string
	for i, c := range t {
		if c != 0 {
			parts = append(parts, fmt.Sprintf("%s=%s", Term(i), c))
		}
	}
	return strings.Join(parts, " ")
}

// round is Cost.round of each.
func (t Terms) round() Terms {
	for i := range t {
		t[i] = t[i].round()
	}
	return t
}

// MarshalJSON writes the terms that are not zero by name.
func (t Terms) MarshalJSON() ([]byte, error) {
	m := map[string]Cost{}
	for i, c := range t {
		if c != 0 {
			m[Term(i).String()] = c
		}
	}
	return json.Marshal(m)
}

// UnmarshalJSON reads what MarshalJSON wrote; an unknown term is an error.
func (t *Terms) UnmarshalJSON(data []byte) error {
	m := map[string]float64{} // one term, explore, is negative
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("terms of a price: %w", err)
	}
	*t = Terms{}
	for name, c := range m {
		i := slices.Index(termNames[:], name)
		if i < 0 {
			return fmt.Errorf("terms of a price: there is no term %q: %w", name, ErrInvalid)
		}
		t[i] = CostOf(math.Abs(c))
		if c < 0 {
			t[i] = -t[i]
		}
	}
	return nil
}
