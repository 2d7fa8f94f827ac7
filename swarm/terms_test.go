package swarm

import (
	"encoding/json"
	"testing"
)

func TestTermsRoundTrip(t *testing.T) {
	want := Terms{TermLink: CostOf(3), TermExplore: -CostOf(1)}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Terms
	if err := json.Unmarshal(b, &got); err != nil || got != want {
		t.Errorf("%s came back as %v, %v", b, got, err)
	}
	if json.Unmarshal([]byte(`{"luck":1}`), &got) == nil {
		t.Error("an unknown term was taken")
	}
}
