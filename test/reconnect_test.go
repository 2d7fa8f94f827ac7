//go:build !noengine

package test

import (
	"syscall"
	"testing"

	"hecate/test/harness"
)

// Every connection of a node is reset in the middle of an answer, and the node
// lives: the answer goes on there, with the state that the node kept. Nobody
// computes a row twice, nobody dies, and the client sees nothing but a pause.
func TestAllConnectionsOfALivingNodeBreak(t *testing.T) {
	t.Parallel()
	r := rehearse(t)
	want := r.Ask(harness.Story, limit64(nil)).Text()
	for stage := range 2 {
		for _, pieces := range resetAt {
			struck := false
			for n := 0; n < aims && !struck; n++ {
				struck = r.tryReset(t, stage, pieces, want)
			}
			if !struck {
				t.Errorf("reset of stage %d after %d pieces: no answer went on where it was", stage, pieces)
			}
		}
	}
}

// tryReset resets the links of a stage's node after so many pieces of text; false
// when that came too late for the answer, or the node was too slow to be seen to live.
func (r *rehearsal) tryReset(t *testing.T, stage, pieces int, want string) bool {
	t.Helper()
	r.AwaitHealthy()
	r.slow(t, slowLink)
	computed, before := steady(r.Swarm), r.Status()
	st := r.during(t, pieces, func(route string) { r.link(t, nodesOf(route)[stage], "reset") })
	if st.Text != want {
		t.Errorf("reset of stage %d after %d pieces: got %q, want %q", stage, pieces, st.Text, want)
	}
	if st.Rescues == 0 {
		return false
	}
	r.tries++
	kinds := rescued(before, r.Status())
	for k, n := range kinds {
		r.kinds[k] += n
	}
	if kinds["reconnect"] != st.Rescues || len(kinds) != 1 {
		return false // a busy machine does not answer a connect within lost_after
	}
	first := st.Header.Get("X-Hecate-Route")
	if st.Route != first {
		t.Errorf("reset of stage %d after %d pieces: the route went from %s to %s", stage, pieces, first, st.Route)
	}
	if n := changed(pidsIn(before), pidsOf(r.Swarm)); n != 0 {
		t.Errorf("reset of stage %d after %d pieces: %d processes were started anew", stage, pieces, n)
	}
	r.expectNothingTwice(trial{}, before, computed, first, st.Route)
	return true
}

// A node dies right after its connections were reset: that is found like any
// other death.
func TestAKillRightAfterAReset(t *testing.T) {
	t.Parallel()
	r := rehearse(t)
	want := r.Ask(harness.Story, limit64(nil)).Text()
	for stage := range 2 {
		struck := false
		for n := 0; n < aims && !struck; n++ {
			r.AwaitHealthy()
			r.slow(t, slowLink)
			before := r.Status()
			st := r.during(t, 20, func(route string) {
				node := nodesOf(route)[stage]
				r.link(t, node, "reset")
				if err := syscall.Kill(pidsIn(before)[node], syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			})
			if st.Text != want {
				t.Errorf("stage %d: got %q, want %q", stage, st.Text, want)
			}
			kinds := rescued(before, r.Status())
			struck = st.Rescues > 0
			if struck && kinds["splice"]+kinds["copy"] == 0 {
				t.Errorf("stage %d: %d rescues, %v; want somebody else to go on", stage, st.Rescues, kinds)
			}
			r.expectDeaths(trial{}, before, 1)
		}
		if !struck {
			t.Errorf("stage %d: no answer was met in its middle", stage)
		}
	}
}
