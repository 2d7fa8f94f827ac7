//go:build !noengine

package test

import (
	"slices"
	"testing"

	"hecate/internal/report"
	"hecate/pool"
	"hecate/test/harness"
)

// A node whose connections fall silent for a while connects by itself, since it
// cannot be dialled; when it can be again, the gateway goes back to that, and no
// answer is lost on the way.
func TestANodeOutOfReachComesBackIntoReach(t *testing.T) {
	t.Parallel()
	s := harness.Up(t, "--nodes", "2", "--copies", "1", "--allow-chaos")
	want := s.Ask(harness.Story, nil).Text()
	s.Do("chaos", "arm", "--stage", "0", "--at-token", "5", "--action", "drop")
	if got := s.Ask(harness.Story, nil).Text(); got != want {
		t.Errorf("over the drop: %q, want %q", got, want)
	}
	reversed := func() bool {
		return slices.ContainsFunc(s.Status().Nodes, func(n report.Node) bool { return n.Reverse })
	}
	s.Await("a node connects by itself", patience, reversed)
	s.Await("it is dialled again", patience, func() bool { return !reversed() && s.Status().State == "healthy" })
	s.Await("all connections are dialled ones", patience, func() bool {
		return !slices.ContainsFunc(poolNow(s).Writers, func(w pool.WriterSnapshot) bool { return w.Endpoint == "reverse" })
	})
	if got := s.Ask(harness.Story, nil).Text(); got != want {
		t.Errorf("afterwards: %q, want %q", got, want)
	}
	if lost := s.Status().Answers.Lost; lost != 0 {
		t.Errorf("%d answers were lost", lost)
	}
}
