package swarm

import (
	"fmt"
	"math"
)

// Weights say how much each part of a price counts. Every weight is at least
// 0; 0 switches its part off.
type Weights struct {
	Latency  float64 `json:"latency"`  // times the measured latency
	Load     float64 `json:"load"`     // a fully loaded node adds 120 ms times this
	Capacity float64 `json:"capacity"` // a node of score s adds 100/s ms times this
	Hop      float64 `json:"hop"`      // each hop adds 15 ms times this
	Prompt   float64 `json:"prompt"`   // each 1024 prompt tokens add 10 ms times this
}

// DefaultWeights returns the weights that suit most swarms.
func DefaultWeights() Weights {
	return Weights{Latency: 1, Load: 1, Capacity: 0.35, Hop: 1, Prompt: 1}
}

// FastLAN returns the preset for a fast local network of small nodes, where a
// hop costs next to nothing and what a node measured is worth more than what
// it declared.
func FastLAN() Weights {
	return Weights{Latency: 2, Load: 1.5, Capacity: 0.1, Hop: 0.05, Prompt: 0.2}
}

// Validate refuses weights that are negative, infinite or not numbers.
func (w Weights) Validate() error {
	if finite(w.Latency) && finite(w.Load) && finite(w.Capacity) && finite(w.Hop) && finite(w.Prompt) {
		return nil
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"latency", w.Latency}, {"load", w.Load}, {"capacity", w.Capacity}, {"hop", w.Hop}, {"prompt", w.Prompt}} {
		if !finite(f.value) {
			return fmt.Errorf("weight %s is %v: %w", f.name, f.value, ErrInvalid)
		}
	}
	return nil
}

// finite reports whether v is a number from 0 up, infinity excluded.
func finite(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }
