package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/gateway/answer"
)

// Failures that belong together befall one request, in the order of arming.
func TestArmedFailuresWaitForTheirRequest(t *testing.T) {
	a := armory{allowed: true}
	for _, o := range []ChaosOrder{
		{Model: "other", Stage: 0, Action: "stop"},
		{Stage: 1, AtToken: 20, Action: "kill"},
		{Stage: 1, AtToken: 40, Action: "kill", Rescues: 1, Also: true},
		{Stage: 0, AtToken: 3, Action: "drop"},
	} {
		if fault := a.arm(o); fault != nil {
			t.Fatal(fault)
		}
	}
	for _, want := range [][]answer.Chaos{
		{{Stage: 1, AtToken: 20, Action: "kill"}, {Stage: 1, AtToken: 40, Action: "kill", Rescues: 1}},
		{{Stage: 0, AtToken: 3, Action: "drop"}},
		nil,
	} {
		if diff := cmp.Diff(want, a.take("mine")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if got := a.take("other"); len(got) != 1 {
		t.Errorf("%v for the other model, want one failure", got)
	}
}

func TestArmedFailuresAreChecked(t *testing.T) {
	for code, o := range map[string]ChaosOrder{
		"invalid_value": {Action: "explode"},
		"negative":      {Action: "kill", Rescues: -1},
		"nothing armed": {Action: "kill", Also: true},
	} {
		a := armory{allowed: true}
		if fault := a.arm(o); fault == nil || fault.Status != 400 || len(a.armed) != 0 {
			t.Errorf("%s: %v, %d armed", code, fault, len(a.armed))
		}
	}
	a := armory{}
	if fault := a.arm(ChaosOrder{Action: "kill"}); fault == nil || fault.Status != 403 {
		t.Errorf("without leave: %v", fault)
	}
}
