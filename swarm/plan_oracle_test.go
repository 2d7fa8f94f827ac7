package swarm

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
)

// uniform deals nodes whose budgets are whole layers, with equal speed.
func uniform(rng *rand.Rand, n, most int) ([]NodeProfile, []int) {
	nodes, caps := make([]NodeProfile, n), make([]int, n)
	for i := range nodes {
		caps[i] = rng.IntN(most + 1)
		nodes[i] = NodeProfile{ID: fmt.Sprintf("n%02d", i), MemoryBytes: int64(caps[i]), Score: 1}
	}
	return nodes, caps
}

// With equal layers, K copies on distinct nodes are possible exactly when the
// nodes' layers, each node counted for one model at most, add up (McNaughton).
// The planner must find a valid plan exactly then, however many nodes.
func TestPlanFitsExactlyWhenItCan(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	yes, no := 0, 0
	for i := range 3000 {
		layers, k := 1+rng.IntN(20), 1+rng.IntN(3)
		n := 1 + rng.IntN(9)
		if i%8 == 0 {
			n = 10 + rng.IntN(12)
		}
		nodes, caps := uniform(rng, n, 1+min(layers+2, 4*k*layers/n))
		sum := 0
		for _, c := range caps {
			sum += min(c, layers)
		}
		m := flat("m", layers, 1)
		m.Copies = k
		p := mustPlan(t, bare, nodes, []ModelSpec{m}, nil)
		fits := sum >= k*layers
		if (p.Validate() == nil) != fits {
			t.Fatalf("case %d: %d copies of %d layers on %v: fits %v, but %v\n%s", i, k, layers, caps, fits, p.Validate(), chainsText(p))
		}
		if fits {
			yes++
		} else {
			no++
			if u := p.unplaced("m"); u.ShortfallBytes != int64(k*layers-sum) {
				t.Fatalf("case %d: short of %d, says %d", i, k*layers-sum, u.ShortfallBytes)
			}
		}
	}
	t.Logf("%d fit, %d do not", yes, no)
	if yes < 300 || no < 300 {
		t.Error("the cases are one-sided")
	}
}

// Over all ways to form k disjoint sets of nodes that each hold the model: the
// fewest nodes in all, -1 when there is no way.
func fewestStages(caps []int, layers, k int) int {
	full := 1<<len(caps) - 1
	holds := func(set int) bool {
		sum := 0
		for i, c := range caps {
			if set>>i&1 == 1 {
				sum += c
			}
		}
		return sum >= layers
	}
	var search func(free, k int) int
	search = func(free, k int) int {
		if k == 0 {
			return 0
		}
		best := -1
		for set := free; set > 0; set = (set - 1) & free {
			if !holds(set) {
				continue
			}
			if rest := search(free&^set, k-1); rest >= 0 {
				if sum := rest + bits.OnesCount(uint(set)); best < 0 || sum < best {
					best = sum
				}
			}
		}
		return best
	}
	return search(full, k)
}

func TestPlanUsesTheFewestStages(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	apart := 0
	for i := range 600 {
		layers, k, n := 1+rng.IntN(16), 1+rng.IntN(2), 1+rng.IntN(7)
		nodes, caps := uniform(rng, n, layers+1)
		m := flat("m", layers, 1)
		m.Copies = k
		p := mustPlan(t, bare, nodes, []ModelSpec{m}, nil)
		want := fewestStages(caps, layers, k)
		if want < 0 {
			continue
		}
		apart++
		if got := stageCount(p); got != want || len(p.SharedNodes) > 0 {
			t.Fatalf("case %d: %d copies of %d layers on %v: %d stages (shared %v), want %d\n%s", i, k, layers, caps, got, p.SharedNodes, want, chainsText(p))
		}
	}
	if apart < 200 {
		t.Errorf("only %d cases", apart)
	}
}

// The most loaded node, against every way to cut the model over two nodes.
func TestPlanBalancesTwoNodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(35, 36))
	for i := range 500 {
		m := randomModel(rng, "m")
		m.Copies = 1
		total := m.TotalBytes()
		nodes := []NodeProfile{
			{ID: "a", MemoryBytes: total/2 + rng.Int64N(total/2), Score: float64(1 + rng.IntN(9)), LatencyMS: float64(rng.IntN(9))},
			{ID: "b", MemoryBytes: total/2 + rng.Int64N(total/2), Score: float64(1 + rng.IntN(9)), LatencyMS: float64(rng.IntN(9))},
		}
		p := mustPlan(t, bare, nodes, []ModelSpec{m}, nil)
		if len(p.Pipelines) == 0 {
			continue
		}
		w := bare.begin(nodes, []ModelSpec{m}, nil)
		d := w.dealer(0, nil)
		got := d.merit(d.s, d.chainsOf(p)).slowest
		for cut := 1; cut < m.Layers; cut++ {
			for _, c := range []chain{{{0, 0, cut - 1}, {1, cut, m.Layers - 1}}, {{1, 0, cut - 1}, {0, cut, m.Layers - 1}}} {
				// The deal is from the first layer on or the other way round,
				// so one cut is as good as another of the same price.
				if d.holds(c) && d.merit(d.s, layout{c}).slowest < got {
					t.Fatalf("case %d: %s counts %s, the cut %v only %s", i, chainsText(p), got, c, d.merit(d.s, layout{c}).slowest)
				}
			}
		}
	}
}

// In a large swarm the loss of one node moves that node's layers, not others'.
func TestLargeSwarmMovesLittle(t *testing.T) {
	nodes, models := benchSwarm(100)
	p := mustPlan(t, Planner{}, nodes, models, nil)
	for _, gone := range []string{p.Pipelines[0].Stages[1].Node, p.Idle[3].Node} {
		rest := slices.DeleteFunc(slices.Clone(nodes), func(n NodeProfile) bool { return n.ID == gone })
		q := mustPlan(t, Planner{}, rest, models, p)
		if q.Validate() != nil || stageCount(q) > stageCount(p) {
			t.Fatalf("without %s: %v\n%s\n%s", gone, q.Validate(), chainsText(p), chainsText(q))
		}
		same := 0
		for i := range p.Pipelines {
			for _, st := range p.Pipelines[i].Stages {
				if slices.ContainsFunc(q.Pipelines, func(pl Pipeline) bool { return slices.Contains(pl.Stages, st) }) {
					same++
				}
			}
		}
		if same < stageCount(p)-1 {
			t.Errorf("without %s only %d of %d stages stay, %s move\n%s\n%s", gone, same, stageCount(p), FormatBytes(q.MovedBytes), chainsText(p), chainsText(q))
		}
		t.Logf("without %s: %s moved", gone, FormatBytes(q.MovedBytes))
	}
}
