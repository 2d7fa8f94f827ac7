package swarm

import "testing"

func TestStateWithoutAPlan(t *testing.T) {
	st := StateFromProfiles(nil, []NodeProfile{{ID: "a", Score: 2, LatencyMS: 5}})
	if n, ok := st.Nodes["a"]; !ok || !n.IsMeasured() || len(n.Fragments) != 0 {
		t.Errorf("the profile becomes %+v, want a measured node that holds nothing", n)
	}
	if len(StateFromPlan(nil).Nodes) != 0 {
		t.Error("nodes out of no plan")
	}
}
