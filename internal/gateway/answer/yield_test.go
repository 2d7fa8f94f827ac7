package answer

import (
	"slices"
	"testing"

	"hecate/swarm"
)

// An answer leaves a node that gives its layers up: the same text, the old
// node's state freed, and nobody counted as dead.
func TestAnAnswerMakesWay(t *testing.T) {
	j := job(5, 20)
	want := whole(t, j)
	for _, at := range []int{0, 1, 7, 19} {
		f := threeStages()
		r := f.runner(Limits{})
		given := false
		r.Yields = func(node, _ string, l swarm.LayerRange) bool {
			return given && node == "b" && l.Overlaps(swarm.Layers(4, 7))
		}
		out, a, err := generate(t, r, j, func(i int) { given = given || i == at })
		if err != nil || !slices.Equal(out, want) {
			t.Fatalf("given up before token %d: %v, %v, want %v", at, out, err, want)
		}
		if a.Route().Uses("b") || a.Rescues() != 1 || len(f.events) != 1 {
			t.Errorf("given up before token %d: route %s, %d rescues, events %v", at, a.Route(), a.Rescues(), f.events)
		}
		if n := len(f.nodes["b"].kept); n != 0 {
			t.Errorf("given up before token %d: the old node still keeps %d states", at, n)
		}
	}
}

// Without anywhere to go it stays, and nothing is lost.
func TestAnAnswerThatCannotMakeWayStays(t *testing.T) {
	j := job(5, 20)
	f := newFakeSwarm("solo")
	f.routes = []swarm.Route{route(0, on("solo", 0, layers-1))}
	r := f.runner(Limits{})
	r.Yields = func(string, string, swarm.LayerRange) bool { return true }
	out, a, err := generate(t, r, j, nil)
	if want := whole(t, j); err != nil || !slices.Equal(out, want) {
		t.Fatalf("%v, %v, want %v", out, err, want)
	}
	if a.Rescues() != 0 || len(f.events) != 0 {
		t.Errorf("%d rescues, events %v, want none", a.Rescues(), f.events)
	}
}

// Whose client reads nothing leaves what is to be given up, with or without a place
// to go, and begins anew once somebody wants the next token.
func TestAnAnswerStepsAside(t *testing.T) {
	j := job(5, 20)
	for _, somewhere := range []bool{true, false} {
		f := threeStages()
		if !somewhere {
			f.spares = nil
		}
		r := f.runner(Limits{})
		given := false
		r.Yields = func(node, _ string, _ swarm.LayerRange) bool { return given && node == "b" }
		a, err := r.Start(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		var out []int32
		for i := range j.MaxTokens {
			if i == 7 {
				given = true
				for range 3 {
					a.StepAside()
				}
				if n := len(f.nodes["b"].kept); n != 0 {
					t.Errorf("somewhere to go %v: the node still keeps %d states", somewhere, n)
				}
				if n := len(f.nodes["c"].kept); n != 1 {
					t.Errorf("somewhere to go %v: the other node keeps %d states, want 1", somewhere, n)
				}
				given = somewhere
			}
			token, err := a.Next()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, token.ID)
		}
		a.Close()
		if want := whole(t, j); !slices.Equal(out, want) {
			t.Errorf("somewhere to go %v: %v, want %v", somewhere, out, want)
		}
		if rows := f.rowsOf("c"); rows != len(j.Prompt)+j.MaxTokens-1 {
			t.Errorf("somewhere to go %v: the stage that stayed computed %d rows", somewhere, rows)
		}
		if len(f.grants) != 0 {
			t.Errorf("reservations left: %v", f.grants)
		}
	}
}
