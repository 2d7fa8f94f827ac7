package swarm

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/graph/path"
	"gonum.org/v1/gonum/graph/simple"
)

// The price of the best chain, found by somebody else's shortest path: a
// vertex is a node standing at a boundary; running a fragment moves it along,
// and changing nodes costs the other node and a hop.
func oracleCost(states map[string]NodeState, window LayerRange, w Weights) float64 {
	g := simple.NewWeightedDirectedGraph(0, math.Inf(1))
	ids := []string{}
	for id, n := range states {
		if !n.Dead {
			ids = append(ids, id)
		}
	}
	vertex := func(boundary, node int) simple.Node { return simple.Node(2 + boundary*len(ids) + node) }
	edge := func(from, to simple.Node, cost Cost) {
		if e := g.WeightedEdge(int64(from), int64(to)); e == nil || e.Weight() > float64(cost) {
			g.SetWeightedEdge(g.NewWeightedEdge(from, to, float64(cost)))
		}
	}
	const source, sink = simple.Node(0), simple.Node(1)
	for i, id := range ids {
		n := states[id]
		edge(source, vertex(window.First, i), w.NodeCost(n))
		edge(vertex(window.Last+1, i), sink, 0)
		for boundary := window.First + 1; boundary <= window.Last; boundary++ {
			for j := range ids {
				if i != j {
					edge(vertex(boundary, j), vertex(boundary, i), w.NodeCost(n).Add(w.HopCost()))
				}
			}
		}
		n.Holds("m", "", func(f LayerRange) bool {
			if window.Covers(f) {
				edge(vertex(f.First, i), vertex(f.Last+1, i), 0)
			}
			return true
		})
	}
	return path.DijkstraFrom(source, g).WeightTo(int64(sink))
}

func TestScoreRouteAgainstShortestPathLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	found := 0
	for i := range 60 {
		states := map[string]NodeState{}
		layers := 10 + r.IntN(31)
		for k := range 5 + r.IntN(20) {
			n := sample(fmt.Sprintf("node-%02d", k), r.Float64()*60, r.Float64()*1.5, 0.5+r.Float64()*20)
			n.Dead = r.IntN(10) == 0
			for range 1 + r.IntN(6) {
				first := r.IntN(layers)
				n.Fragments = append(n.Fragments, Fragment{"m", Layers(first, first+r.IntN(min(12, layers-first)))})
			}
			states[n.ID] = n
		}
		window, w := Layers(0, layers-1), DefaultWeights()
		want := oracleCost(states, window, w)
		got, err := ScoreRoute(Request{Window: &window}, states, w, "m")
		if math.IsInf(want, 1) {
			if !errors.Is(err, ErrNoRoute) {
				t.Fatalf("swarm %d: got %v, %v where no path exists", i, got, err)
			}
			continue
		}
		found++
		if err != nil || float64(got.Cost) != want {
			t.Fatalf("swarm %d: got %v, %v, want a cost of %v", i, got, err, Cost(want))
		}
	}
	if found < 20 {
		t.Errorf("only %d swarms had a route", found)
	}
}
