package bench

import (
	"fmt"
	"io"
	"time"

	"hecate/internal/bench/measure"
)

// conclude holds the numbers against what is promised.
func (r *ClusterResult) conclude() {
	r.Judgement = measure.Judged([]measure.Mark{
		seconds("from node --join to serving, median", r.Join.Whole.P50, new(15.0), new(5.0)),
		seconds("a kill is known, p99", r.Kill.P99, new(2.5), new(0.1)),
		seconds("a silence is known, worst", r.Silence.Worst, new(2.5), nil),
		{Name: "answers lost while machines come, go and die", Value: float64(r.Load.lost()), Floor: new(0.0), Lower: true},
		{Name: "times the model left the gateway", Value: float64(r.Weights.Sent) / float64(max(1, r.Weights.Model)), Floor: new(float64(max(1, r.Weights.Nodes))), Aim: new(1.1), Lower: true},
		seconds(fmt.Sprintf("a new plan for %d nodes, p99", r.Plane.Nodes), r.Plane.Replan.P99, new(5.0), new(1.0)),
		{Name: "control plane, each node", Value: r.Plane.Bytes / 1024, Unit: "KiB/s", Floor: new(16.0), Aim: new(4.0), Lower: true},
	}, nil)
}

// Print writes the result for people.
func (r *ClusterResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d runs of each; took %s\n\n", r.Machine, r.Runs, r.Took.Round(time.Second))
	j := measure.NewTable("joining, median of", "enrol", "profile", "attach", "plan", "fetch", "load", "ready", "whole", "whole p99")
	j.Row(fmt.Sprint(r.Join.Whole.Counted), short(r.Join.Enrol), short(r.Join.Profile), short(r.Join.Attach), short(r.Join.Plan),
		short(r.Join.Fetch), short(r.Join.Load), short(r.Join.Ready), short(r.Join.Whole.P50), short(r.Join.Whole.P99))
	if err := j.Print(w); err != nil {
		return err
	}
	fmt.Fprintln(w)
	t := measure.NewTable("known after", "runs", "p50", "p99", "worst")
	for _, g := range []struct {
		name string
		Gaps
	}{{"kill -9, idle", r.Kill}, {"SIGSTOP, idle", r.Silence}, {fmt.Sprintf("a new plan, %d nodes", r.Plane.Nodes), r.Plane.Replan}} {
		t.Row(g.name, fmt.Sprint(g.Counted), short(g.P50), short(g.P99), short(g.Worst))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%d answers while machines came, went and died: %d lost (%v), rescues %v\n", r.Load.Answers, r.Load.lost(), r.Load.Lost, r.Load.Rescues)
	for _, s := range r.Load.Stories {
		fmt.Fprintln(w, s)
	}
	fmt.Fprintf(w, "weights: %d nodes fetched %d bytes of a model of %d; %d left the gateway\n", r.Weights.Nodes, r.Weights.Fetched, r.Weights.Model, r.Weights.Sent)
	moved := measure.NewTable("weights, by node", "layers", "from", "bytes")
	for _, x := range r.Weights.Ranges {
		moved.Row(x.Node, fmt.Sprintf("%d-%d", x.First, x.Last), x.From, fmt.Sprint(x.Bytes))
	}
	if err := moved.Print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "control plane: %.0f bytes a second for each of %d nodes\n\n", r.Plane.Bytes, r.Plane.Nodes)
	return r.Judgement.Print(w)
}
