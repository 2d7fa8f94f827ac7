package gateway

import (
	"encoding/json"
	"math"
	"testing"
)

// What a node says of itself, as far as it may go, can be drawn.
func TestRoughNumbersCanBeWritten(t *testing.T) {
	for _, v := range []float64{0, 1.26, 1e300, math.MaxFloat64} {
		r := rough(&v, 10)
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%g: %v", v, err)
		}
		if *r > v*1.1 || *r < v*0.9 {
			t.Errorf("%g became %g", v, *r)
		}
	}
	if rough(nil, 10) != nil {
		t.Error("nothing became something")
	}
}
