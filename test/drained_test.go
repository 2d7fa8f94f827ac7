//go:build !noengine

package test

import (
	"testing"
	"time"

	"hecate/internal/report"
	"hecate/test/harness"
)

// TestDrainedNodesServeWhatNobodyCanTakeOver: of three nodes two are to be emptied,
// and the third has no room for the model. It goes on being served as before, and
// is said to be.
func TestDrainedNodesServeWhatNobodyCanTakeOver(t *testing.T) {
	t.Parallel()
	s := harness.Up(t)
	want := s.Ask(harness.Story, nil).Text()
	nodes := s.Status().Nodes
	first, second := nodes[0].ID, nodes[1].ID
	s.Do("node", "drain", first, "--now")
	s.Await("others have taken over from "+first, time.Minute, func() bool { return len(s.Node(first).Fragments) == 0 })
	before := s.Status().Generation
	s.Do("node", "drain", second, "--now")
	s.Await("all follow a plan without "+second, time.Minute, func() bool {
		return s.Status().Generation > before && s.Node(second).Desired == "evacuated"
	})
	if len(s.Node(second).Fragments) == 0 {
		t.Errorf("%s gave up what nobody took over", second)
	}
	model := func() report.Model { return s.Status().Models[0] }
	if m := model(); !m.Ready {
		t.Errorf("it is served and said not to be ready: %s", m.Missing)
	}
	if got := s.Ask(harness.Story, nil).Text(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
