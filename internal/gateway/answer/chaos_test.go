package answer

import "testing"

// An order holds for whoever computes the stage, until it has struck.
func TestAnOrderHoldsUntilItStruck(t *testing.T) {
	a := &Answer{job: Job{Chaos: []Chaos{
		{Stage: 0, AtToken: 10, Action: "kill"}, {Stage: 1, AtToken: 11, Action: "kill"}, {Stage: 0, AtToken: 39, Action: "kill", Rescues: 1},
	}}}
	at := func(stage int, rescue bool) int {
		if c, _ := a.chaos(stage, rescue); c != nil {
			return c.AtToken
		}
		return -1
	}
	if at(0, false) != 10 || at(1, false) != 11 {
		t.Errorf("the first route: %d and %d", at(0, false), at(1, false))
	}
	a.links = []*link{{order: 2}}
	a.bear()
	if at(1, true) != -1 {
		t.Error("a living link carries the order, and another one got it")
	}
	a.links = nil
	a.bear()
	a.strikes(1)
	a.story.attempts = 3 // tries of one rescue are no rescues
	if at(0, true) != 39 || at(1, true) != 11 {
		t.Errorf("the first rescue: %d and %d, want 39 and the 11 that is not struck yet", at(0, true), at(1, true))
	}
	a.strikes(2)
	a.strikes(3)
	a.strikes(0)
	if at(0, true) != -1 || at(1, true) != -1 {
		t.Errorf("all have struck, but %d and %d", at(0, true), at(1, true))
	}
}
