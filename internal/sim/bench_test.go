package sim

import (
	"context"
	"testing"
	"time"

	"hecate/swarm"
)

// BenchmarkRun lives through 100,000 requests on 1,000 nodes that hold 10
// models. go test -bench Run -benchtime 1x ./internal/sim
func BenchmarkRun(b *testing.B) {
	t, err := Generate(Size{Nodes: 1000, Models: 10}, 1)
	if err != nil {
		b.Fatal(err)
	}
	plan, err := swarm.Planner{}.Plan(t.Nodes, t.Models, nil)
	if err != nil {
		b.Fatal(err)
	}
	s := Scenario{Plan: plan, Telemetry: Telemetry{Delay: 2 * time.Second}, Seed: 1, Policy: swarm.Policy{Assemble: swarm.AssembleBroken}}
	s.Arrivals = Poisson(100_000, 0.6*Capacity(plan, s.Hardware, Lengths{}), Lengths{}, Traffic(plan), 1)
	for _, policy := range Policies() {
		b.Run(policy.Name, func(b *testing.B) {
			b.ReportAllocs()
			var events int64
			for b.Loop() {
				r, err := Run(context.Background(), s, policy)
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(b.N*len(s.Arrivals))/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
