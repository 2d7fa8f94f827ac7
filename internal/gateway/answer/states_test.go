package answer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"hecate/internal/stage"
	"hecate/swarm"
)

// collected keeps all rows, and complains of gaps and of rows that come twice.
type collected struct {
	t    *testing.T
	rows []float32
}

func (c *collected) Collected() int { return len(c.rows) }

func (c *collected) Collect(position int, rows []float32, width int) {
	if position > len(c.rows) || position+len(rows) <= len(c.rows) {
		c.t.Errorf("rows %d to %d came when there were %d", position, position+len(rows)-1, len(c.rows))
		return
	}
	c.rows = append(c.rows, rows[len(c.rows)-position:]...)
}

// states computes the states of a prompt of so many tokens.
func states(t *testing.T, f *fakeSwarm, prompt int) (*collected, *Answer, error) {
	t.Helper()
	c := &collected{t: t}
	j := job(prompt, 1)
	j.States = c
	a, err := f.runner(Limits{}).Start(context.Background(), j)
	if err != nil {
		return c, a, err
	}
	defer a.Close()
	return c, a, a.States()
}

// Whoever dies at whichever step, every row comes once and is the one that a
// single node gives.
func TestStatesSurviveAKillAtAnyStep(t *testing.T) {
	for _, prompt := range []int{1, 2, 64, 150} {
		solo := newFakeSwarm("solo")
		solo.routes = []swarm.Route{route(0, on("solo", 0, layers-1))}
		want, _, err := states(t, solo, prompt)
		if err != nil || len(want.rows) != prompt {
			t.Fatal(err, len(want.rows))
		}
		for _, victim := range []string{"", "a", "b", "c"} {
			for _, copies := range []bool{false, true} {
				for at := range 1 + (prompt-1)/64 {
					f := threeStages()
					f.copies = copies
					steps := 0
					f.onStep = func(node string, _ stage.Step) {
						if node != victim {
							return
						}
						if steps == at {
							f.kill(victim)
						}
						steps++
					}
					got, a, err := states(t, f, prompt)
					what := fmt.Sprintf("%d tokens, %q killed at step %d, copies %v", prompt, victim, at, copies)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					if !slices.Equal(got.rows, want.rows) {
						t.Errorf("%s: other rows", what)
					}
					if (a.Rescues() > 0) != (victim != "") {
						t.Errorf("%s: %d rescues", what, a.Rescues())
					}
				}
			}
		}
	}
}

// A connection breaks after the last stage has computed rows and before they came:
// the node that kept the state is asked for them again, and none is left out.
func TestStatesThatWereComputedAndNeverCame(t *testing.T) {
	for _, prompt := range []int{40, 150} {
		solo := newFakeSwarm("solo")
		solo.routes = []swarm.Route{route(0, on("solo", 0, layers-1))}
		want, _, err := states(t, solo, prompt)
		if err != nil {
			t.Fatal(err)
		}
		for at := range 1 + (prompt-1)/64 {
			f := threeStages()
			steps := 0
			f.onDone = func(node string, _ stage.Step) {
				if node != "c" {
					return
				}
				if steps == at {
					f.cut("c")
				}
				steps++
			}
			got, a, err := states(t, f, prompt)
			if err != nil || a.Rescues() != 1 || !slices.Equal(got.rows, want.rows) {
				t.Errorf("%d tokens, cut after step %d: %v, %d rescues, %d rows", prompt, at, err, a.Rescues(), len(got.rows))
			}
		}
	}
}
