package answer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
)

// Tries are for one token: an answer that goes on after each failure may meet
// many more of them.
func TestManyDeathsInOneAnswer(t *testing.T) {
	f, j := threeStages(), job(40, 40)
	f.spares["b2"] = "b"
	living, other := "b", "b2"
	got, a, err := generate(t, f.runner(Limits{Tries: 2}), j, func(i int) {
		if i%3 != 2 {
			return
		}
		f.mu.Lock()
		f.raise(other)
		f.mu.Unlock()
		f.kill(living)
		living, other = other, living
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(got, want) || a.Rescues() != 13 {
		t.Errorf("got %v with %d rescues, want %v with 13", got, a.Rescues(), want)
	}
}

// Substitutes that are full for a moment do not end an answer, however often they
// refuse; after the time for a rescue they do.
func TestRefusalsAreBoundedByTime(t *testing.T) {
	for _, c := range []struct {
		full time.Duration
		lost bool
	}{{3 * time.Second, false}, {time.Hour, true}} {
		synctest.Test(t, func(t *testing.T) {
			f, j := threeStages(), job(40, 24)
			f.spares["b2"], f.spares["b"] = "b2", "b2"
			r := f.runner(Limits{Tries: 2, RescueTime: 5 * time.Second})
			full := &fullForAWhile{fakeSwarm: f}
			r.Router, r.Opener = full, full
			began := time.Now()
			got, _, err := generate(t, r, j, func(i int) {
				if i == 10 {
					full.until = time.Now().Add(c.full)
					f.kill("b")
				}
			})
			if c.lost != errors.Is(err, ErrNoWayOn) || !c.lost && !slices.Equal(got, whole(t, j)) {
				t.Errorf("full for %s: %v after %d tokens", c.full, err, len(got))
			}
			if took := time.Since(began); c.lost && (took < 5*time.Second || took > 6*time.Second) {
				t.Errorf("it ended after %s, want 5 s and little more", took)
			}
			if full.opens > 100 {
				t.Errorf("the full node was asked %d times", full.opens)
			}
		})
	}
}

// fullForAWhile is a swarm whose node b2 has no room until then.
type fullForAWhile struct {
	*fakeSwarm
	until time.Time
	opens int
}

func (f *fullForAWhile) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	if node == "b2" && time.Now().Before(f.until) {
		f.opens++
		return nil, &stage.Error{Code: stage.CodeNoCells}
	}
	return f.fakeSwarm.Open(ctx, node, opening, rescue)
}

// Three nodes lose their power at once, and their ends are noticed one after the
// other: a node that does not know yet that it is dead was given the step that
// another one died of. The answer is no query of death. But if it is one, others'
// deaths excuse it once only.
func TestAPowerCutIsNoQueryOfDeath(t *testing.T) {
	for _, deadly := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f, j := threeStages(), job(40, 24)
			f.spares["b2"], f.spares["x"], f.spares["y"], f.spares["c"] = "x", "y", "z", "c2"
			f.mu.Lock()
			f.raise("z")
			f.mu.Unlock()
			life, die := context.WithCancel(t.Context())
			defer die()
			deaths := 0
			f.onStep = func(node string, s stage.Step) {
				if s.Position != 50 || node == "a" || node[0] == 'c' {
					return
				}
				if deaths < 2 || deadly {
					deaths++
					f.kill(node)
				}
				if deaths == 1 {
					time.AfterFunc(100*time.Millisecond, func() {
						f.kill("c")
						die()
					})
				}
			}
			r := f.runner(Limits{})
			r.Router = &informed{fakeSwarm: f, c: life}
			got, _, err := generate(t, r, j, nil)
			if deadly {
				if !errors.Is(err, ErrQueryOfDeath) || deaths != 4 {
					t.Errorf("%v after %d deaths, want ErrQueryOfDeath after 4", err, deaths)
				}
				return
			}
			if err != nil || !slices.Equal(got, whole(t, j)) {
				t.Errorf("%v after %d tokens", err, len(got))
			}
		})
	}
}

// informed is a swarm that hears of the death of node c.
type informed struct {
	*fakeSwarm
	c context.Context
}

func (f *informed) Alive(node string) context.Context {
	if node == "c" {
		return f.c
	}
	return f.fakeSwarm.Alive(node)
}
