package swarm

import "fmt"

// Signals is what the gateway itself knows of a node, besides the node's own
// sample. The zero value is "nothing": no measurement, circuit closed.
type Signals struct {
	RoundTripMS Reading // gateway to node and back, from the data plane's pings, milliseconds
	LayerMS     Reading // one decode step through one layer, link excluded, milliseconds
	PrefillMS   Reading // 1024 prompt tokens through one layer, milliseconds

	Slots   int     // sessions that the node runs at once without queueing; 0: DefaultSlots
	KVFree  Reading // KV cells (tokens) free
	KVTotal Reading // KV cells in all
	Errors  Reading // share of recent requests that failed, 0..1; see Circuit.ErrorRate

	Circuit CircuitState // Open: the node is not used; HalfOpen: one probe at a time
}

// Validate refuses numbers that cannot be; the error names node and field.
func (s *Signals) Validate(node string) error {
	for _, f := range []struct {
		name string
		r    Reading
	}{
		{"round_trip_ms", s.RoundTripMS}, {"layer_ms", s.LayerMS}, {"prefill_ms", s.PrefillMS},
		{"kv_free", s.KVFree}, {"kv_total", s.KVTotal}, {"errors", s.Errors},
	} {
		if f.r.Known && !finite(f.r.Value) {
			return &FieldError{Node: node, Field: f.name, Problem: problemOf(f.r.Value)}
		}
	}
	switch {
	case s.Slots < 0:
		return &FieldError{Node: node, Field: "slots", Problem: "is negative"}
	case s.Errors.Value > 1:
		return &FieldError{Node: node, Field: "errors", Problem: "is a share above 1"}
	case s.Circuit < CircuitClosed || s.Circuit > CircuitHalfOpen:
		return &FieldError{Node: node, Field: "circuit", Problem: fmt.Sprintf("has no state %d", s.Circuit)}
	}
	return nil
}
