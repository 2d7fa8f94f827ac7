package swarm

import (
	"errors"
	"testing"
	"time"
)

// Why there is no route decides whether waiting helps, and for what.
func TestLack(t *testing.T) {
	cells := func(free, total float64) Signals {
		return Signals{KVFree: Measured(free), KVTotal: Measured(total)}
	}
	for _, c := range []struct {
		name string
		set  func(f *Fleet)
		need int
		want Lack
	}{
		{"all dead", func(f *Fleet) { f.MarkDead("a"); f.MarkDead("b") }, 10, LackNodes},
		{"one dead, one full", func(f *Fleet) { f.MarkDead("a"); signal(t, f, "b", cells(5, 100)) }, 10, LackRoom},
		{"one dead, one too small", func(f *Fleet) { f.MarkDead("a"); signal(t, f, "b", cells(100, 100)) }, 90, LackNodes},
		{"both full to the last cell", func(f *Fleet) { signal(t, f, "a", cells(0, 100)); signal(t, f, "b", cells(0, 100)) }, 10, LackRoom},
		{"leases fill them", func(f *Fleet) {
			for _, n := range []string{"a", "b"} {
				signal(t, f, n, cells(100, 100))
				f.Reserve(Route{Stages: []Stage{{Node: n}}}, 80)
			}
		}, 10, LackRoom},
		{"both too small", func(f *Fleet) { signal(t, f, "a", cells(0, 100)); signal(t, f, "b", cells(100, 100)) }, 88, LackSize},
		{"too small and dead", func(f *Fleet) {
			signal(t, f, "a", cells(100, 100))
			signal(t, f, "b", cells(100, 100))
			f.MarkDead("a")
			f.MarkDead("b")
		}, 88, LackNodes},
		{"full and failing", func(f *Fleet) {
			for _, n := range []string{"a", "b"} {
				s := cells(0, 100)
				s.Circuit = CircuitOpen
				signal(t, f, n, s)
			}
		}, 10, LackNodes},
		{"loading", func(f *Fleet) {
			for _, n := range []string{"a", "b"} {
				if err := f.Observe(NodeState{ID: n, Fragments: []Fragment{}}, time.Time{}); err != nil {
					t.Fatal(err)
				}
			}
		}, 10, LackNodes},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := NewFleet("")
			router := NewRouter(twins(2), f)
			c.set(f)
			_, err := router.Choose("m", AdaptiveRequest{KVTokens: c.need}, Policy{KVReserve: 0.125})
			var no *NoRouteError
			if !errors.As(err, &no) || no.Lack != c.want {
				t.Errorf("%v: lacks %v, want %v", err, no, c.want)
			}
		})
	}
	_, err := NewRouter(twins(1), NewFleet("")).Choose("other", AdaptiveRequest{}, Policy{})
	var no *NoRouteError
	if !errors.As(err, &no) || no.Lack != LackNodes {
		t.Errorf("a model that nobody planned: %v", err)
	}
}
