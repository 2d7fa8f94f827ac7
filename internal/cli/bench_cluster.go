package cli

import (
	"context"

	"hecate/internal/bench"
)

type benchClusterCmd struct {
	Runs  int  `help:"Machines that join, and deaths of each kind." default:"50"`
	Nodes int  `help:"Simulated nodes, for planning." default:"100"`
	JSON  bool `help:"Print the result as JSON."`
}

// Run lets machines join, die and leave, and measures it.
func (b *benchClusterCmd) Run(ctx context.Context, c console) error {
	if err := inRange("--runs", float64(b.Runs), 1, 1000); err != nil {
		return err
	}
	if err := inRange("--nodes", float64(b.Nodes), 4, 1000); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	r, err := bench.Cluster(ctx, bench.ClusterOptions{Runs: b.Runs, Nodes: b.Nodes, Progress: p.say})
	if err != nil {
		return err
	}
	p.clear()
	return showBench(c.out, b.JSON, r)
}
