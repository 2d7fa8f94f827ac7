package answer

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

// places gives shadows the places that it was told, by the stage's node.
type places struct {
	mu    sync.Mutex
	of    map[string][]swarm.Stage
	taken map[uint64]context.CancelFunc
	next  uint64
	asked int

	wide   []int // rooms that shadows grew to
	narrow bool  // none may
}

func newPlaces(of map[string][]swarm.Stage) *places {
	return &places{of: of, taken: map[uint64]context.CancelFunc{}}
}

func (p *places) Standby(_ Need, route swarm.Route, stage int) (Standby, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	stages := p.of[route.Stages[stage].Node]
	if stages == nil {
		return Standby{}, fmt.Errorf("no place")
	}
	p.next++
	ctx, revoke := context.WithCancel(context.Background())
	p.taken[p.next] = revoke
	return Standby{Stages: stages, Token: p.next, Revoked: ctx}, nil
}

func (p *places) Widen(_ uint64, n Need) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wide = append(p.wide, n.Room())
	return !p.narrow
}

func (p *places) Dismiss(token uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revoke := p.taken[token]; revoke != nil {
		revoke()
		delete(p.taken, token)
	}
}

func (p *places) revokeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, revoke := range p.taken {
		revoke()
	}
}

// simple places: each stage's spare holds its layers.
func simplePlaces() *places {
	return newPlaces(map[string][]swarm.Stage{"a": {on("a2", 0, 3)}, "b": {on("b2", 4, 7)}, "c": {on("c2", 8, 11)}})
}

// Every layer of the fake model reads all rows before each row, so that answers
// cannot be as long as those that have shadows in life.
const (
	longPrompt = 200
	shadeFrom  = 100
)

// shaded runs a long answer in which a node dies before token 20, and checks its
// text. It gives how many rows each node computed from then on.
func shaded(t *testing.T, f *fakeSwarm, p *places, victim string, limits Limits, meanwhile func(i int)) (after func(node string) int, a *Answer) {
	t.Helper()
	j := job(longPrompt, 24)
	if limits.ShadeFrom == 0 {
		limits.ShadeFrom = shadeFrom
	}
	r := f.runner(limits)
	r.Standbys = p
	before := map[string]int{}
	out, a, err := generate(t, r, j, func(i int) {
		synctest.Wait() // shadows are as far as they get
		if meanwhile != nil {
			meanwhile(i)
		}
		if i == 20 {
			for n := range f.nodes {
				before[n] = f.rowsOf(n)
			}
			f.kill(victim)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(out, want) {
		t.Fatalf("got %v, want %v", out, want)
	}
	if len(p.taken) != 0 || len(f.grants) != 0 {
		t.Errorf("places %v and grants %v are left", p.taken, f.grants)
	}
	for name, n := range f.nodes {
		if len(n.kept) != 0 {
			t.Errorf("%s still keeps %d states", name, len(n.kept))
		}
	}
	return func(node string) int { return f.rowsOf(node) - before[node] }, a
}

// With a shadow a rescue replays at most 64 positions.
func TestAShadowShortensTheReplay(t *testing.T) {
	for victim, substitute := range map[string]string{"a": "a2", "b": "b2", "c": "c2"} {
		synctest.Test(t, func(t *testing.T) {
			after, a := shaded(t, threeStages(), simplePlaces(), victim, Limits{}, nil)
			if got := after(substitute); got > 64+4 || a.Rescues() != 1 {
				t.Errorf("%s died: %s computed %d rows for 4 tokens, %d rescues", victim, substitute, got, a.Rescues())
			}
		})
		synctest.Test(t, func(t *testing.T) {
			after, _ := shaded(t, threeStages(), simplePlaces(), victim, Limits{ShadeFrom: -1}, nil)
			if got := after(substitute); got < longPrompt {
				t.Errorf("%s died without a shadow, but %s computed %d rows only: the test shows nothing", victim, substitute, got)
			}
		})
	}
}

// Short answers have no shadows.
func TestNoShadowOfAShortAnswer(t *testing.T) {
	p := simplePlaces()
	r := threeStages().runner(Limits{ShadeFrom: shadeFrom})
	r.Standbys = p
	if _, _, err := generate(t, r, job(40, 24), nil); err != nil || p.asked != 0 {
		t.Errorf("%v, asked for %d places", err, p.asked)
	}
}

// Two nodes take a stage's place together: the second is fed by the first.
func TestAShadowOfTwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		chain := []swarm.Stage{on("x", 4, 5), on("y", 6, 7)}
		f.splices = map[string][]swarm.Stage{"b": chain}
		after, a := shaded(t, f, newPlaces(map[string][]swarm.Stage{"b": chain}), "b", Limits{}, nil)
		for _, node := range []string{"x", "y"} {
			if got := after(node); got > 64+4 {
				t.Errorf("%s computed %d rows", node, got)
			}
		}
		if got := after("a"); got > 4 {
			t.Errorf("a survivor computed %d rows for 4 tokens", got)
		}
		if a.Route().String() == "" || len(a.Route().Stages) != 4 {
			t.Errorf("route %s", a.Route())
		}
	})
}

// Two nodes may have the same place to go to, and one node two stages: no two
// shadows are kept of one thing, and their sessions do not meet.
func TestShadowsAtOnePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		f.routes[0] = route(0, on("a", 0, 3), on("b", 4, 7), on("a", 8, 11))
		whole := []swarm.Stage{on("x", 0, 5), on("y", 6, 11)}
		p := newPlaces(map[string][]swarm.Stage{"a": whole, "b": whole})
		f.copies = true
		after, _ := shaded(t, f, p, "b", Limits{}, func(i int) {
			if i == 10 && len(p.taken) != 1 {
				t.Errorf("%d places are taken, want 1", len(p.taken))
			}
		})
		for _, node := range []string{"x", "y"} {
			if got := after(node); got > 64+4 {
				t.Errorf("%s computed %d rows", node, got)
			}
		}
	})
}

// The place that a rescue takes need not be the shadow's.
func TestARescueElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(map[string][]swarm.Stage{"b": {on("x", 4, 7)}})
		after, _ := shaded(t, threeStages(), p, "b", Limits{}, nil)
		if got := after("b2"); got < longPrompt {
			t.Errorf("b2 computed %d rows", got)
		}
	})
}

// A shadow ends when its room is wanted, when its node dies, and when its input
// is dropped; the answer does not notice.
func TestAShadowEnds(t *testing.T) {
	for name, end := range map[string]func(f *fakeSwarm, p *places){
		"revoked":       func(_ *fakeSwarm, p *places) { p.revokeAll() },
		"its node dies": func(f *fakeSwarm, _ *places) { f.kill("c2") },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPlaces(map[string][]swarm.Stage{"c": {on("c2", 8, 11)}})
			f := threeStages()
			f.spares["c"] = "y"
			shaded(t, f, p, "c", Limits{}, func(i int) {
				if i == 10 {
					if len(p.taken) != 1 {
						t.Errorf("%s: %d shadows", name, len(p.taken))
					}
					end(f, p)
					p.of = nil
					synctest.Wait()
				}
				if i == 12 && name == "revoked" && len(p.taken) != 0 {
					t.Errorf("%s: its room is still taken", name)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := simplePlaces()
		shaded(t, threeStages(), p, "b", Limits{SessionBytes: 1}, nil)
		if p.asked != 1 {
			t.Errorf("%d places were asked for; without memory for boundary states only the first stage's shadow can be fed", p.asked)
		}
	})
}

// A place that keeps failing is not tried for ever.
func TestAShadowIsNotTriedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		f.kill("c2")
		p := newPlaces(map[string][]swarm.Stage{"c": {on("c2", 8, 11)}})
		r := f.runner(Limits{ShadeFrom: shadeFrom})
		r.Standbys = p
		if _, _, err := generate(t, r, job(longPrompt, 24), func(int) { time.Sleep(time.Second) }); err != nil {
			t.Fatal(err)
		}
		if p.next != shadowTries {
			t.Errorf("%d places were taken, want %d", p.next, shadowTries)
		}
	})
}

// The second failure of an answer finds a shadow as well.
func TestShadowsAfterARescue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, p, j := threeStages(), simplePlaces(), job(longPrompt, 40)
		f.spares["b2"] = "x"
		p.of["b2"] = []swarm.Stage{on("x", 4, 7)}
		r := f.runner(Limits{ShadeFrom: shadeFrom})
		r.Standbys = p
		rows := 0
		out, a, err := generate(t, r, j, func(i int) {
			synctest.Wait()
			switch i {
			case 10:
				f.kill("b")
			case 11, 12:
				time.Sleep(time.Second) // long enough to look for a place again
			case 30:
				rows = f.rowsOf("x")
				f.kill("b2")
			}
		})
		if err != nil || !slices.Equal(out, whole(t, j)) || a.Rescues() != 2 {
			t.Fatalf("%v, %d rescues", err, a.Rescues())
		}
		if got := f.rowsOf("x") - rows; got > 64+10 {
			t.Errorf("x computed %d rows for 10 tokens", got)
		}
	})
}

// Whenever a shadow is taken over or ended, also in the middle of a step, the
// text is the same.
func TestShadowsUnderFire(t *testing.T) {
	j := job(longPrompt, 30)
	want := whole(t, j)
	for seed := range 24 {
		f, p := threeStages(), simplePlaces()
		victim := []string{"a", "b", "c"}[seed%3]
		at := 1 + seed/3%29
		var once sync.Once
		f.onStep = func(node string, s stage.Step) {
			if node == victim+"2" && s.Position >= 32*(seed%7) {
				once.Do(func() { time.Sleep(time.Duration(seed%5) * 100 * time.Microsecond) })
			}
		}
		r := f.runner(Limits{Chunk: 64, ShadeFrom: shadeFrom})
		r.Standbys = p
		out, a, err := generate(t, r, j, func(i int) {
			if i == at {
				f.kill(victim)
			}
		})
		if err != nil || !slices.Equal(out, want) || a.Rescues() != 1 {
			t.Fatalf("seed %d: %v, %d rescues, got %v, want %v", seed, err, a.Rescues(), out, want)
		}
		if len(p.taken) != 0 {
			t.Fatalf("seed %d: places left", seed)
		}
	}
}

// A shadow's steps come after all others at a node, so one may take very long. That is
// no sign of anything.
func TestAShadowIsPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := threeStages()
		taken := 0
		f.onStep = func(node string, s stage.Step) {
			if node == "b2" && s.Rows() == shadowChunk {
				time.Sleep(3 * f.patience)
			}
		}
		p := newPlaces(map[string][]swarm.Stage{"b": {on("b2", 4, 7)}})
		after, _ := shaded(t, f, p, "b", Limits{}, func(i int) {
			if i < 20 {
				time.Sleep(20 * f.patience)
			}
			taken = int(p.next)
		})
		if got := after("b2"); got > 64+4 || taken != 1 {
			t.Errorf("b2 computed %d rows for 4 tokens; %d places were taken, want 1", got, taken)
		}
	})
}
