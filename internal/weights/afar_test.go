package weights

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"
)

// Who cannot be reached is avoided for all pieces, for a while; who answers
// badly, for one piece only.
func TestNeighboursOutOfReachAreNotAskedAgain(t *testing.T) {
	var a afar
	now := time.Unix(1000, 0)
	a.note("far", fmt.Errorf("get: %w", &net.OpError{Op: "dial", Err: errors.New("i/o timeout")}), now)
	a.note("bad", &net.OpError{Op: "read", Err: errors.New("reset")}, now)
	a.note("", &net.OpError{Op: "dial", Err: errors.New("refused")}, now)
	pieces, avoid := []string{"0", "1"}, map[string][]string{"1": {"bad"}}
	got := a.avoid(pieces, avoid, now.Add(afarFor-1))
	if !slices.Equal(got["0"], []string{"far"}) || !slices.Equal(got["1"], []string{"bad", "far"}) {
		t.Errorf("avoided: %v", got)
	}
	if got := a.avoid(pieces, avoid, now.Add(afarFor)); len(got["0"]) != 0 || len(got["1"]) != 1 {
		t.Errorf("avoided after a while: %v", got)
	}
	if len(avoid["1"]) != 1 {
		t.Error("the caller's list was changed")
	}
}
