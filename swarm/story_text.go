package swarm

import (
	"fmt"
	"strings"
)

// String prints a story for people, one paragraph per step.
func (s Story) String() string {
	var b strings.Builder
	for _, step := range s.Steps {
		b.WriteString(step.String())
	}
	fmt.Fprintf(&b, "valid: %v\n", s.Valid)
	if s.Fault != "" {
		fmt.Fprintf(&b, "  %s\n", s.Fault)
	}
	return b.String()
}

// String prints one step: what happened, what the swarm is now, the route or
// what went wrong, and the copies that live.
func (s StoryStep) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", s.Step)
	for _, word := range []string{s.Node, s.Model} {
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	fmt.Fprintf(&b, ": %s, generation %d", s.State, s.Generation)
	if s.MovedBytes > 0 {
		fmt.Fprintf(&b, ", %s to fetch", FormatBytes(s.MovedBytes))
	}
	b.WriteString("\n")
	if s.NoOp {
		fmt.Fprintf(&b, "  nothing to do: %s\n", s.Reason)
	}
	if s.Error != "" {
		fmt.Fprintf(&b, "  error: %s\n", s.Error)
	}
	if s.Route != nil {
		fmt.Fprintf(&b, "  route %s\n", s.Route)
	}
	for _, p := range s.Live {
		fmt.Fprintf(&b, "  live %d %s:", p.ID, p.Model)
		for _, st := range p.Stages {
			b.WriteString(" " + st.String())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// String prints the route as its stages, cost and labels.
func (p *StoryPath) String() string {
	var b strings.Builder
	b.WriteString(p.Model + ":")
	for i, n := range p.Nodes {
		b.WriteString(" " + n)
		if i < len(p.Layers) {
			b.WriteString("[" + p.Layers[i].String() + "]")
		}
	}
	b.WriteString(" " + p.Cost.String())
	if p.Degraded {
		b.WriteString(" degraded")
	}
	for _, r := range p.Replaced {
		fmt.Fprintf(&b, ", %s by %s", r.Layers, r.By)
	}
	if p.Reason != "" {
		b.WriteString(" (" + p.Reason + ")")
	}
	return b.String()
}
