package answer

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
)

// A machine that fell idle, in the same blow as the one that computed, and is back
// already, did not die of a step that could not be sent to it any more.
func TestANodeThatDiedIdleIsNotBlamedOnTheQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		f.onStep = func(node string, s stage.Step) {
			if node == "b" && s.Position == 50 {
				f.kill("b")
				f.restart("c")
			}
		}
		got, a, err := generate(t, f.runner(Limits{}), j, nil)
		if err != nil || !slices.Equal(got, whole(t, j)) {
			t.Fatalf("%v after %d tokens", err, len(got))
		}
		if a.Rescues() == 0 {
			t.Error("nothing was rescued")
		}
	})
}

// What another node has computed since kills nobody: a second death at the same
// position, in other layers, is a first one.
func TestDeathsInLayersThatHaveNothingInCommon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		f.onStep = func(node string, s stage.Step) {
			if (node == "b" || node == "c") && s.Position == 50 {
				f.kill(node)
			}
		}
		got, a, err := generate(t, f.runner(Limits{}), j, nil)
		if err != nil || !slices.Equal(got, whole(t, j)) {
			t.Fatalf("%v after %d tokens", err, len(got))
		}
		if !f.nodes["b"].down || !f.nodes["c"].down || a.Rescues() == 0 {
			t.Errorf("the nodes live, %d rescues", a.Rescues())
		}
	})
}

// Two nodes that take the deadly rows in other pieces, and the deadly layer among
// others, die of the same all the same.
func TestAQueryOfDeathInOtherPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(300, 24)
		delete(f.spares, "y")
		f.copies = true // b holds layers 4 to 7, y of the other copy 6 to 11
		died := 0
		f.onStep = func(node string, s stage.Step) {
			if (node == "b" || node == "y") && s.Position <= 205 && 205 < s.Position+s.Rows() {
				died++
				f.kill(node)
			}
		}
		f.maxRows = map[string]int{"y": 50, "x": 50}
		_, _, err := generate(t, f.runner(Limits{}), j, nil)
		if !errors.Is(err, ErrQueryOfDeath) || died != 2 {
			t.Errorf("%v after %d deaths, want ErrQueryOfDeath after 2", err, died)
		}
	})
}

// The choices of one request are no bystanders of each other: a prompt that kills
// nodes takes two with it, however many answers were wanted.
func TestAQueryOfDeathWithSeveralChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		f.spares["b2"], f.spares["x"] = "x", "y"
		died := map[string]bool{}
		f.onStep = func(node string, s stage.Step) {
			if (node == "b" || node == "b2" || node == "x") && s.Position == 45 {
				time.Sleep(10 * time.Millisecond) // so that all of them are there
				f.mu.Lock()
				died[node] = true
				f.mu.Unlock()
				f.kill(node)
			}
		}
		r := f.runner(Limits{})
		r.Events = nil
		var wg sync.WaitGroup
		for i := range 3 {
			j := job(40, 24)
			j.ID, j.Request, j.Choices = fmt.Sprint("job.", i), "job", 3
			wg.Go(func() {
				if _, _, err := generate(t, r, j, nil); !errors.Is(err, ErrQueryOfDeath) {
					t.Errorf("choice %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		if len(died) != 2 {
			t.Errorf("%v died of one request", died)
		}
	})
}
