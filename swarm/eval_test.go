package swarm

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// The golden cases were found by enumerating every chain, independently of any
// dynamic programme.
func TestGoldenCases(t *testing.T) {
	want := map[string]int{"score": 121, "failover": 120, "swarm": 120, "swarm_failover": 120}
	for _, kind := range EvalKinds() {
		t.Run(kind, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "cases", kind+".json"))
			if err != nil {
				t.Fatal(err)
			}
			out, err := Eval(kind, data)
			if err != nil {
				t.Fatal(err)
			}
			var cases []struct {
				Name string         `json:"name"`
				Want map[string]any `json:"want"`
			}
			var got []map[string]any
			mustDecode(t, data, &cases)
			mustDecode(t, out, &got)
			if len(cases) != want[kind] || len(got) != len(cases) {
				t.Fatalf("%d cases, %d answers, want %d of both", len(cases), len(got), want[kind])
			}
			for i, c := range cases {
				if diff := answerDiff(c.Want, got[i]); diff != "" {
					t.Errorf("%s: %s", c.Name, diff)
				}
			}
		})
	}
}

func mustDecode(t *testing.T, data []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// answerDiff compares field by field: the same fields, costs to 1e-6 ms.
func answerDiff(want, got map[string]any) string {
	if len(want) != len(got) {
		return fmt.Sprintf("got %v, want %v", got, want)
	}
	for key, w := range want {
		g := got[key]
		if key == "cost" {
			wf, _ := w.(float64)
			gf, ok := g.(float64)
			if !ok || math.Abs(wf-gf) > 1.0000001e-6 {
				return fmt.Sprintf("cost %v, want %v", g, w)
			}
			continue
		}
		if !reflect.DeepEqual(w, g) {
			return fmt.Sprintf("%s: got %v, want %v", key, g, w)
		}
	}
	return ""
}

func TestEvalBadInput(t *testing.T) {
	if _, err := Eval("nonsense", []byte("[]")); err == nil {
		t.Error("an unknown kind was accepted")
	}
	if _, err := Eval("score", []byte("{}")); err == nil {
		t.Error("something that is not an array was accepted")
	}
	out, err := Eval("score", []byte(`[
		{"model":"m","states":[{"node_id":"a","latency_ms":-1}]},
		{"model":"m","states":[{"node_id":"a"},{"node_id":"a"}]},
		{"model":"m","states":[],"layer_range":[3,2]},
		{"model":"m","states":[],"weights":{"hop":-1}},
		{"model":"m","states":[],"prompt_tokens":-1},
		{"model":"m","states":[{"node_id":"a","served_layers":[[0,1]]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	mustDecode(t, out, &got)
	for i, g := range got[:5] {
		if g["error"] != "invalid" || g["detail"] == "" {
			t.Errorf("case %d: %v, want an invalid one with its detail", i, g)
		}
	}
	if got[5]["cost"] != 1000.0 {
		t.Errorf("a good case among bad ones: %v, want a cost of 1000", got[5])
	}
}
