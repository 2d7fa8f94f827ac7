package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"hecate/internal/report"
	"hecate/swarm"
)

type statusCmd struct {
	where
	JSON bool `help:"Print the whole document as JSON."`
	Pool bool `help:"Show the data plane: connections by node, floors, generation, losses."`
}

// Run prints the swarm once; it fails when the swarm does not serve.
func (s *statusCmd) Run(ctx context.Context, c console) error {
	if s.Pool {
		return s.pool(ctx, c)
	}
	var st report.Status
	if err := s.get(ctx, "/v1/swarm", &st); err != nil {
		return err
	}
	if s.JSON {
		return printJSON(c.out, st)
	}
	printStatus(c.out, st)
	if st.State == "failed" {
		return errQuiet
	}
	return nil
}

func printStatus(w io.Writer, st report.Status) {
	fmt.Fprintf(w, "swarm %s, plan generation %d\n", st.State, st.Generation)
	for _, why := range st.Why {
		fmt.Fprintf(w, "  %s\n", why)
	}
	fmt.Fprintln(w)
	t := table(w)
	fmt.Fprintln(t, "NODE\tSTATE\tPID\tLATENCY\tLOAD\tMEMORY\tTOKENS\tHOLDS\tIF IT DIES")
	for _, n := range st.Nodes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s of %s\t%d\t%s\t%s\n", n.ID, lifeOf(n), pidOf(n), number(n.LatencyMS, "%.1f ms"), number(n.Load, "%.2f"),
			sizeOf(n.MemoryUsed), sizeOf(n.MemoryBudget), n.TokensComputed, fragmentsOf(n.Fragments), deathOf(n))
	}
	_ = t.Flush()
	printTransfers(w, st)
	for _, m := range st.Models {
		printModel(w, m)
	}
	printAnswers(w, st.Answers)
}

func printModel(w io.Writer, m report.Model) {
	state := "ready"
	if !m.Ready {
		state = "not ready: " + m.Missing
	}
	if m.Demo {
		state += " (a demo: it makes mistakes and knows next to nothing)"
	}
	if m.FallbackFor != "" {
		state += ", stands in for " + m.FallbackFor
	}
	fmt.Fprintf(w, "\nmodel %s: %d layers, %s, %s\n", m.ID, m.Layers, sizeOf(m.Bytes), state)
	for _, p := range m.Pipelines {
		life := "live"
		if !p.Live {
			life = "broken"
		}
		fmt.Fprintf(w, "  copy %d, %s: %s\n", p.ID, life, routeOf(p.Stages))
	}
}

func printAnswers(w io.Writer, a report.Answers) {
	var kinds []string
	for k, n := range a.Rescues {
		kinds = append(kinds, fmt.Sprintf("%d by %s", n, k))
	}
	slices.Sort(kinds)
	rescued := "none rescued"
	if len(kinds) > 0 {
		rescued = "rescued " + strings.Join(kinds, ", ")
	}
	fmt.Fprintf(w, "\nanswers: %d running, %d queued, %d finished, %s, %d lost", a.Running, a.Queued, a.Finished, rescued, a.Lost)
	if a.GaveWay > 0 {
		fmt.Fprintf(w, ", gave way %d times", a.GaveWay)
	}
	if a.Degraded > 0 {
		fmt.Fprintf(w, ", %d put to a fallback model", a.Degraded)
	}
	fmt.Fprintln(w)
}

// routeOf prints stages as the header X-Hecate-Route does.
func routeOf(stages []swarm.Stage) string {
	parts := make([]string, len(stages))
	for i, s := range stages {
		parts[i] = fmt.Sprintf("%s[%d-%d]", s.Node, s.Layers.First, s.Layers.Last)
	}
	return strings.Join(parts, ",")
}

func fragmentsOf(fs []swarm.Fragment) string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = fmt.Sprintf("%s[%d-%d]", f.Model, f.Layers.First, f.Layers.Last)
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ",")
}

func lifeOf(n report.Node) string {
	switch {
	case !n.Alive:
		return "dead"
	case n.Desired != "" && n.Desired != "active":
		return n.Desired
	}
	return "alive"
}

func pidOf(n report.Node) string {
	if n.PID == 0 {
		return "-"
	}
	return fmt.Sprint(n.PID)
}

func number(v *float64, format string) string {
	if v == nil {
		return "?"
	}
	return fmt.Sprintf(format, *v)
}

func deathOf(n report.Node) string {
	var parts []string
	for model, means := range n.IfItDies {
		if r := n.Recovery[model]; r != "" && r != "none" && r != "instant" {
			means += " (" + r + ")"
		}
		parts = append(parts, model+": "+means)
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
