package dispatch

import (
	"context"
	"fmt"
	"testing"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// A survivor that takes lost layers over beside its own keeps its own stage, and what
// it holds of it: it computes nothing again. Only where that is less than what a
// further round trip with every token costs it is one stage.
func TestASurvivorKeepsItsStage(t *testing.T) {
	for name, c := range map[string]struct {
		trip, compute time.Duration // of a step of n1: on the way, and for a row
		tokens, left  int           // so far, and to come
		kept          bool          // the boundary states
		want          string
	}{
		"nothing was measured":  {0, 0, 8000, 64, true, "n1[0-5] n1[6-11]"},
		"a long context":        {time.Millisecond, time.Millisecond, 8000, 64, true, "n1[0-5] n1[6-11]"},
		"a short one, far away": {20 * time.Millisecond, time.Millisecond, 20, 1000, true, "n1[0-11]"},
		"without the states":    {0, 0, 8000, 64, false, "n1[0-11]"},
	} {
		w := newWorld(Config{Policy: swarm.Policy{Explore: -1, Assemble: swarm.AssembleNever}}, halves(1), 2, 20000)
		if c.compute > 0 {
			w.d.Observe("n1", answer.Sample{Rows: 1, Layers: 6, Timing: stage.Timing{Compute: c.compute}, Wall: c.compute + c.trip})
			w.d.Observe("n1", answer.Sample{Rows: 100, Layers: 6, Timing: stage.Timing{Compute: 100 * c.compute}, Wall: 100*c.compute + c.trip})
		}
		n := answer.Need{Job: "j", Model: "m", Layers: layers, PromptTokens: c.tokens, OutputTokens: c.left}
		g, err := w.d.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		next, _, err := w.d.Rescue(context.Background(), n, g, []answer.Failure{{Node: "n0", Kind: answer.Gone}}, answer.Progress{Tokens: c.tokens, StatesKept: c.kept})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for i, s := range next.Route.Stages {
			if i > 0 {
				got += " "
			}
			got += fmt.Sprintf("%s[%d-%d]", s.Node, s.Layers.First, s.Layers.Last)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		w.d.Release(next)
		w.idle(t)
	}
}

// Where nothing was computed yet there is nothing to keep.
func TestASurvivorThatHoldsNothingKeepsNothing(t *testing.T) {
	w := newWorld(Config{Policy: swarm.Policy{Explore: -1, Assemble: swarm.AssembleNever}}, halves(1), 2, 1000)
	g := w.choose(t, 100)
	next, _, err := w.d.Rescue(t.Context(), need(100), g, broken("n0"), answer.Progress{Tokens: 99, StatesKept: true})
	if err != nil || len(next.Route.Stages) != 1 {
		t.Fatalf("%s, %v", next.Route, err)
	}
	w.d.Release(next)
	w.idle(t)
}

// Every layer has cells of its own, so two stages of an answer on one node take as
// many of those that a node has as one.
func TestTwoStagesOnANodeShareItsCells(t *testing.T) {
	plan := &swarm.Plan{Models: []swarm.ModelSpec{{ID: "m", Layers: layers}}, Pipelines: []swarm.Pipeline{
		{ID: 0, Model: "m", Stages: []swarm.Stage{on(0, 0, 3), on(1, 4, 7), on(0, 8, 11)}},
	}}
	w := newWorld(Config{Policy: swarm.Policy{Explore: -1, Assemble: swarm.AssembleNever}}, plan, 2, 1000)
	g := w.choose(t, 400)
	for _, id := range []string{"n0", "n1"} {
		if left := w.room(id); left != Sellable(1000)-400 {
			t.Errorf("%d cells are left at %s, want %d", left, id, Sellable(1000)-400)
		}
	}
	n := need(700)
	if err := w.d.Grow(t.Context(), n, g); err != nil {
		t.Error(err)
	}
	w.d.Release(g)
	w.idle(t)
}

// So a shadow has room also where its own answer runs other layers.
func TestAShadowBesideItsAnswer(t *testing.T) {
	w := newWorld(Config{Policy: swarm.Policy{Explore: -1, Assemble: swarm.AssembleNever}}, halves(1), 2, 1000)
	g := w.choose(t, 490)
	s, err := w.d.Standby(need(490), g.Route, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Stages) != 1 || s.Stages[0] != on(1, 0, 5) {
		t.Errorf("the shadow is kept at %v", s.Stages)
	}
	w.d.Dismiss(s.Token)
	w.d.Release(g)
	w.idle(t)
}
