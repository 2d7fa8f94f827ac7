package cli_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// All golden cases through the command, from a file and from standard input.
func TestRouteEvalAnswersTheGoldenCases(t *testing.T) {
	fromTop(t)
	for kind, count := range map[string]int{"score": 121, "failover": 120, "swarm": 120, "swarm_failover": 120} {
		t.Run(kind, func(t *testing.T) {
			file := filepath.Join("swarm", "testdata", "cases", kind+".json")
			cases, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			o := command(t, "", "hecate", "route", "eval", kind, file)
			if o.code != 0 || o.err != "" {
				t.Fatalf("exit status %d: %s", o.code, o.err)
			}
			if piped := command(t, string(cases), "hecate", "route", "eval", kind, "-"); piped != o {
				t.Error("standard input is answered differently than the file")
			}
			checkAnswers(t, cases, []byte(o.out), count)
		})
	}
}

func checkAnswers(t *testing.T, cases, answers []byte, count int) {
	t.Helper()
	var want []struct {
		Name string         `json:"name"`
		Want map[string]any `json:"want"`
	}
	var got []map[string]any
	if err := json.Unmarshal(cases, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(answers, &got); err != nil {
		t.Fatalf("not one JSON array: %v", err)
	}
	if len(want) != count || len(got) != count {
		t.Fatalf("%d cases, %d answers, want %d", len(want), len(got), count)
	}
	for i, c := range want {
		if !sameAnswer(c.Want, got[i]) {
			t.Errorf("%s: got %v, want %v", c.Name, got[i], c.Want)
		}
	}
}

// sameAnswer compares costs to 1e-6 ms and everything else exactly.
func sameAnswer(want, got map[string]any) bool {
	if len(want) != len(got) {
		return false
	}
	for key, w := range want {
		a, isNumber := w.(float64)
		b, alsoNumber := got[key].(float64)
		if key == "cost" && isNumber && alsoNumber {
			if math.Abs(a-b) > 1.0000001e-6 {
				return false
			}
		} else if !reflect.DeepEqual(w, got[key]) {
			return false
		}
	}
	return true
}

func TestRouteEvalBadInput(t *testing.T) {
	dir := t.TempDir()
	object := filepath.Join(dir, "object.json")
	if err := os.WriteFile(object, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.json")
	refused(t, command(t, "", "hecate", "route", "eval", "nonsense", object), `"nonsense"`)
	refused(t, command(t, "", "hecate", "route", "eval", "score", object), object)
	refused(t, command(t, "", "hecate", "route", "eval", "score", missing), missing)
	refused(t, command(t, "", "hecate", "route", "eval", "score", dir), dir)
	refused(t, command(t, "[1", "hecate", "route", "eval", "score", "-"), "-")
	refused(t, command(t, "", "hecate", "route", "eval", "score"), "file")

	// A bad case is answered in its place and does not disturb its neighbours.
	o := command(t, `[{"model":"m","states":[{"node_id":"a","latency_ms":-1}]},{"model":"m","states":[{"node_id":"a","served_layers":[[0,1]]}]}]`,
		"hecate", "route", "eval", "score", "-")
	var got []map[string]any
	if err := json.Unmarshal([]byte(o.out), &got); o.code != 0 || err != nil || len(got) != 2 {
		t.Fatalf("exit status %d, %v: %s", o.code, err, o.out)
	}
	if got[0]["error"] != "invalid" || !strings.Contains(fmt.Sprint(got[0]["detail"]), "latency_ms") || got[1]["cost"] != 1000.0 {
		t.Errorf("answers: %v", got)
	}
	if o := command(t, "[]", "hecate", "route", "eval", "swarm", "-"); o.code != 0 || o.out != "[]\n" {
		t.Errorf("no cases: exit status %d, %q", o.code, o.out)
	}
}

// The terms of every candidate add up to its price, and the chosen one is the
// cheapest of the usable copies.
func TestRouteExplainAddsUp(t *testing.T) {
	fromTop(t)
	o := command(t, "", "hecate", "route", "explain", "--topology", "examples/swarm.json", "--prompt-tokens", "700", "--json")
	var doc struct {
		Model      string `json:"model"`
		Candidates []struct {
			Chosen, Usable bool
			Cost           float64
			Terms          map[string]float64
			Stages         []struct{ Cost float64 }
			Verdict        string
		} `json:"candidates"`
	}
	if err := json.Unmarshal([]byte(o.out), &doc); o.code != 0 || err != nil {
		t.Fatalf("exit status %d, %v, %s", o.code, err, o.err)
	}
	if doc.Model != "home-12" || len(doc.Candidates) < 2 {
		t.Fatalf("explained: %+v", doc)
	}
	for i, c := range doc.Candidates {
		var terms, stages float64
		for _, v := range c.Terms {
			terms += v
		}
		for _, s := range c.Stages {
			stages += s.Cost
		}
		if math.Abs(terms-c.Cost) > 1e-6 || math.Abs(stages-c.Cost) > 1e-6 {
			t.Errorf("candidate %d costs %v, its terms %v, its stages %v", i, c.Cost, terms, stages)
		}
		if c.Chosen != (i == 0) || c.Verdict == "" || c.Usable && c.Cost < doc.Candidates[0].Cost {
			t.Errorf("candidate %d: %+v", i, c)
		}
	}
}
