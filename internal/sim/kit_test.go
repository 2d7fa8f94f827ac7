package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hecate/swarm"
)

// A plan by hand: copies of a model of that many layers, cut at the stages'
// nodes, all of them alike (score 1).
func planOf(layers int, copies ...[]swarm.Stage) *swarm.Plan {
	p := &swarm.Plan{Models: []swarm.ModelSpec{{ID: "m", Layers: layers}}, Redundancy: map[string]swarm.Redundancy{"m": {}}}
	seen := map[string]bool{}
	for i, stages := range copies {
		p.Pipelines = append(p.Pipelines, swarm.Pipeline{ID: i, Model: "m", Stages: stages})
		for _, s := range stages {
			if !seen[s.Node] {
				seen[s.Node] = true
				p.Nodes = append(p.Nodes, swarm.NodePlan{Profile: swarm.NodeProfile{ID: s.Node, Score: 1}})
			}
			for l := s.Layers.First; l <= s.Layers.Last; l++ {
				p.Redundancy["m"][l] = append(p.Redundancy["m"][l], s.Node)
			}
		}
	}
	return p
}

func stage(node string, first, last int) swarm.Stage {
	return swarm.Stage{Node: node, Layers: swarm.Layers(first, last)}
}

// whole is n copies, each on one node of its own: n0, n1, ...
func whole(layers, n int) *swarm.Plan {
	var copies [][]swarm.Stage
	for i := range n {
		copies = append(copies, []swarm.Stage{stage(fmt.Sprintf("n%d", i), 0, layers-1)})
	}
	return planOf(layers, copies...)
}

// exact hardware leaves nothing to chance: 1 ms per layer and token, prompts
// at an eighth of it, no link.
func exact() Hardware {
	return Hardware{LayerTime: time.Millisecond, BatchCost: 0.5, Slots: 2, RoundTrip: -1, Jitter: -1}
}

func policy(tb testing.TB, name string) Policy {
	tb.Helper()
	p, err := PoliciesNamed(name)
	if err != nil {
		tb.Fatal(err)
	}
	return p[0]
}

func run(tb testing.TB, s Scenario, name string) Result {
	tb.Helper()
	r, err := Run(context.Background(), s, policy(tb, name))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// newWorldOf is a world that has not begun to turn.
func newWorldOf(tb testing.TB, s Scenario, name string) *world {
	tb.Helper()
	s = s.withDefaults()
	if err := s.validate(); err != nil {
		tb.Fatal(err)
	}
	return newWorld(&s, policy(tb, name))
}

// lived is run with a look at the world that is left.
func lived(tb testing.TB, s Scenario, name string) (*world, Result) {
	tb.Helper()
	w := newWorldOf(tb, s, name)
	if err := w.run(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return w, w.result(name)
}

func generated(tb testing.TB, size Size) *swarm.Plan {
	tb.Helper()
	t, err := Generate(size, 1)
	if err != nil {
		tb.Fatal(err)
	}
	plan, err := swarm.Planner{}.Plan(t.Nodes, t.Models, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return plan
}

func at(ms int, prompt, output int32) Arrival {
	return Arrival{At: time.Duration(ms) * time.Millisecond, Prompt: prompt, Output: output}
}

// stages of a copy from nodes and how many layers each runs.
func stages(nodesAndLayers ...any) []swarm.Stage {
	var out []swarm.Stage
	first := 0
	for i := 0; i < len(nodesAndLayers); i += 2 {
		n := nodesAndLayers[i+1].(int)
		out = append(out, stage(nodesAndLayers[i].(string), first, first+n-1))
		first += n
	}
	return out
}
