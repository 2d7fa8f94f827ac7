package answer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/stage"
	"hecate/swarm"
)

const layers = 12

func route(id int, stages ...swarm.Stage) swarm.Route {
	return swarm.Route{Model: "m", PipelineID: id, Stages: stages}
}

func on(node string, first, last int) swarm.Stage {
	return swarm.Stage{Node: node, Layers: swarm.LayerRange{First: first, Last: last}}
}

func job(prompt, tokens int) Job {
	j := Job{ID: "job", Model: "m", Layers: layers, MaxTokens: tokens}
	for i := range prompt {
		j.Prompt = append(j.Prompt, int32(i*7%fakeVocab))
	}
	return j
}

func (f *fakeSwarm) runner(l Limits) *Runner {
	return &Runner{Router: f, Queue: f, Opener: f, Limits: l, Poison: &Poison{}, Events: func(e Event) { f.events = append(f.events, e) }}
}

// generate runs a whole answer; between(i) is called before token i is asked for.
func generate(t *testing.T, r *Runner, j Job, between func(i int)) ([]int32, *Answer, error) {
	t.Helper()
	a, err := r.Start(context.Background(), j)
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	var out []int32
	for i := range j.MaxTokens {
		if between != nil {
			between(i)
		}
		token, err := a.Next()
		if err != nil {
			return out, a, err
		}
		out = append(out, token.ID)
	}
	return out, a, nil
}

// whole is the answer that one stage gives: what every split must give too.
func whole(t *testing.T, j Job) []int32 {
	t.Helper()
	f := newFakeSwarm("solo")
	f.routes = []swarm.Route{route(0, on("solo", 0, layers-1))}
	out, _, err := generate(t, f.runner(Limits{}), j, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func threeStages() *fakeSwarm {
	f := newFakeSwarm("a", "b", "c", "a2", "b2", "c2", "x", "y")
	f.routes = []swarm.Route{
		route(0, on("a", 0, 3), on("b", 4, 7), on("c", 8, 11)),
		route(1, on("x", 0, 5), on("y", 6, 11)),
	}
	f.spares = map[string]string{"a": "a2", "b": "b2", "c": "c2"}
	return f
}

func TestASplitAnswersLikeTheWhole(t *testing.T) {
	for _, prompt := range []int{1, 2, 63, 64, 65, 300} {
		j := job(prompt, 20)
		got, a, err := generate(t, threeStages().runner(Limits{Chunk: 17}), j, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("prompt of %d: got %v, want %v", prompt, got, want)
		}
		if a.Rescues() != 0 {
			t.Errorf("prompt of %d: %d rescues in an undisturbed answer", prompt, a.Rescues())
		}
	}
}

// Every stage dies before every token, by every way of going on.
func TestTheAnswerSurvivesAtEveryToken(t *testing.T) {
	j := job(40, 24)
	want := whole(t, j)
	for _, way := range []RescueKind{Splice, Copy, Reconnect} {
		for _, victim := range []string{"a", "b", "c"} {
			for at := range j.MaxTokens {
				f := threeStages()
				f.copies = way == Copy
				strike := f.kill
				if way == Reconnect {
					strike = f.cut
				}
				got, a, err := generate(t, f.runner(Limits{Chunk: 16}), j, func(i int) {
					if i == at {
						strike(victim)
					}
				})
				if err != nil {
					t.Fatalf("%s, %s dies at %d: %v", way, victim, at, err)
				}
				if !slices.Equal(got, want) {
					t.Fatalf("%s, %s dies at %d: got %v, want %v", way, victim, at, got, want)
				}
				wantKind := way
				if at == 0 && way != Reconnect {
					wantKind = Reroute
				}
				if a.Rescues() != 1 || len(f.events) != 1 || f.events[0].Rescue != wantKind {
					t.Fatalf("%s, %s dies at %d: rescues %d, events %+v", way, victim, at, a.Rescues(), f.events)
				}
				if len(f.grants) != 0 {
					t.Fatalf("%s, %s dies at %d: reservations left: %v", way, victim, at, f.grants)
				}
			}
		}
	}
}

// A splice replays only into the substitute: survivors compute each row once.
func TestASpliceLeavesSurvivorsAlone(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	_, _, err := generate(t, f.runner(Limits{Chunk: 16}), j, func(i int) {
		if i == 10 {
			f.kill("b")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	once := len(j.Prompt) + j.MaxTokens - 1
	for _, survivor := range []string{"a", "c"} {
		if got := f.rowsOf(survivor); got != once {
			t.Errorf("%s computed %d rows, want %d", survivor, got, once)
		}
	}
	if got := f.rowsOf("b2"); got != once {
		t.Errorf("the substitute computed %d rows, want all %d", got, once)
	}
}

// Without room for boundary states a rescue falls back to prefill.
func TestWithoutBudgetASpliceBecomesAPrefill(t *testing.T) {
	for _, victim := range []string{"a", "b", "c"} {
		f, j := threeStages(), job(40, 24)
		got, _, err := generate(t, f.runner(Limits{Chunk: 16, SessionBytes: 1}), j, func(i int) {
			if i == 10 {
				f.kill(victim)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", victim, got, want)
		}
	}
}

func TestBudgetIsGivenBack(t *testing.T) {
	f := threeStages()
	r := f.runner(Limits{})
	r.Budget = NewBudget(1 << 20)
	if _, _, err := generate(t, r, job(40, 24), func(i int) {
		if i == 3 {
			f.kill("b")
		}
		if i > 0 && r.Budget.Used() == 0 {
			t.Error("nothing is accounted while an answer runs")
		}
	}); err != nil {
		t.Fatal(err)
	}
	if r.Budget.Used() != 0 {
		t.Errorf("%d bytes are still accounted after the answer", r.Budget.Used())
	}
}

func TestTwoDeathsInOneAnswer(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	got, a, err := generate(t, f.runner(Limits{}), j, func(i int) {
		switch i {
		case 5:
			f.kill("b")
		case 9:
			f.kill("c")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(got, want) || a.Rescues() != 2 {
		t.Errorf("got %v with %d rescues, want %v with 2", got, a.Rescues(), want)
	}
}

// The substitute dies while it replays what was proven: not the query's fault.
func TestDeathDuringReplayIsSurvived(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	f.spares["b2"] = "x"
	f.onStep = func(node string, s stage.Step) {
		if node == "b2" && s.Position >= 16 && s.Position < 32 {
			f.kill("b2")
		}
	}
	got, _, err := generate(t, f.runner(Limits{Chunk: 16}), j, func(i int) {
		if i == 10 {
			f.kill("b")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A query of death takes two nodes with it, not three, and is then refused.
func TestAQueryOfDeathIsContained(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	f.spares["b2"] = "x"
	died := 0
	f.onStep = func(node string, s stage.Step) {
		if (node == "b" || node == "b2" || node == "x") && s.Position == 50 {
			died++
			f.kill(node)
		}
	}
	r := f.runner(Limits{})
	out, _, err := generate(t, r, j, nil)
	if !errors.Is(err, ErrQueryOfDeath) || died != 2 {
		t.Fatalf("got %v after %d deaths, want ErrQueryOfDeath after 2", err, died)
	}
	if want := whole(t, j); !slices.Equal(out, want[:len(out)]) {
		t.Errorf("what was emitted, %v, is no prefix of %v", out, want)
	}
	if _, err := r.Start(context.Background(), j); !errors.Is(err, ErrQueryOfDeath) {
		t.Errorf("the same prompt again: got %v, want ErrQueryOfDeath", err)
	}
	other := job(41, 24)
	if a, err := r.Start(context.Background(), other); err == nil {
		a.Close()
	} else if errors.Is(err, ErrQueryOfDeath) {
		t.Errorf("another prompt is refused too: %v", err)
	}
}

func TestNoWayOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		delete(f.spares, "b")
		_, _, err := generate(t, f.runner(Limits{RescueTime: 5 * time.Second}), j, func(i int) {
			if i == 10 {
				f.kill("b")
			}
		})
		if !errors.Is(err, ErrNoWayOn) || !errors.Is(err, swarm.ErrUnrecoverable) {
			t.Errorf("got %v, want ErrNoWayOn because of ErrUnrecoverable", err)
		}
		if len(f.events) != 1 || f.events[0].Kind != "lost" {
			t.Errorf("events %+v, want one loss", f.events)
		}
		if len(f.grants) != 0 {
			t.Errorf("reservations left: %v", f.grants)
		}
	})
}

// All holders are dead, then one returns: the answer waited for it.
func TestTheAnswerWaitsForAReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		f.kill("b2")
		got, _, err := generate(t, f.runner(Limits{}), j, func(i int) {
			if i == 10 {
				f.kill("b")
				time.AfterFunc(3*time.Second, func() {
					f.mu.Lock()
					defer f.mu.Unlock()
					f.raise("b2")
				})
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if gap := f.events[0].Gap; gap < 3*time.Second || gap > 3*time.Second+2*retryPause {
			t.Errorf("gap %s, want about 3 s", gap)
		}
	})
}

// A node that computes for ever is left after its patience.
func TestASilentStageIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(40, 24)
		f.patience = 800 * time.Millisecond
		began := time.Time{}
		f.onStep = func(node string, s stage.Step) {
			if node == "b" && s.Position == 50 {
				began = time.Now()
				time.Sleep(time.Second) // fake time: longer than the patience
			}
		}
		got, _, err := generate(t, f.runner(Limits{}), j, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if began.IsZero() || f.events[0].Node != "b" {
			t.Errorf("events %+v, want b to be left", f.events)
		}
	})
}

func TestALeavingClientFreesEverything(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	ctx, leave := context.WithCancel(context.Background())
	a, err := f.runner(Limits{}).Start(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Next(); err != nil {
		t.Fatal(err)
	}
	leave()
	if _, err := a.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the cancellation", err)
	}
	a.Close()
	a.Close()
	for name, n := range f.nodes {
		if len(n.kept) != 0 {
			t.Errorf("%s keeps %d states", name, len(n.kept))
		}
	}
	if len(f.grants) != 0 || len(f.events) != 0 {
		t.Errorf("grants %v, events %+v, want none", f.grants, f.events)
	}
}

func TestStartRoutesAroundANodeThatRefuses(t *testing.T) {
	f, j := threeStages(), job(5, 8)
	f.nodes["b"].down = false
	f.kill("b")
	f.nodes["b"].down = true
	got, a, err := generate(t, f.runner(Limits{}), j, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if fmt.Sprint(a.Route().Stages[0].Node) != "x" {
		t.Errorf("route %v, want the copy that lives", a.Route().Stages)
	}
}

// A first token that is late is asked for once more, around the slow node.
func TestALateFirstTokenIsHedged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, j := threeStages(), job(5, 8)
		f.usual, f.patience = 10*time.Millisecond, time.Minute
		f.onStep = func(node string, s stage.Step) {
			if node == "b" {
				time.Sleep(20 * time.Second) // fake time: alive, and far too slow
			}
		}
		began := time.Now()
		a, err := f.runner(Limits{}).Start(context.Background(), j)
		if err != nil {
			t.Fatal(err)
		}
		a, token, err := a.First()
		if err != nil {
			t.Fatal(err)
		}
		got := []int32{token.ID}
		for range j.MaxTokens - 1 {
			token, err := a.Next()
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, token.ID)
		}
		if want := whole(t, j); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if d := time.Since(began); d > 21*time.Second {
			t.Errorf("took %s", d)
		}
		if !a.Route().Uses("x") || len(f.events) != 1 || f.events[0].Rescue != Hedge || f.events[0].Node != "b" {
			t.Errorf("route %v, events %+v, want the copy on x and y because b was slow", a.Route(), f.events)
		}
		a.Close()
		if len(f.grants) != 0 {
			t.Errorf("reservations left: %v", f.grants)
		}
	})
}

// Impatience has a budget: a loaded swarm is not asked everything twice.
func TestHedgesAreFew(t *testing.T) {
	var h hedges
	allowed := 0
	for range 200 {
		h.answers.Add(1)
		if h.allow() {
			allowed++
		}
	}
	if allowed > 200/hedgeShare+hedgeSpare {
		t.Errorf("%d of 200 answers were hedged", allowed)
	}
}

// A node that has no room after all is no failure: the answer waits for room,
// and its story does not speak of it. A refusal is no loss.
func TestNoRoomAfterAllIsNoRescue(t *testing.T) {
	for _, refused := range []bool{false, true} {
		f, j := threeStages(), job(40, 24)
		r := f.runner(Limits{Tries: 2})
		full := &fullRouter{fakeSwarm: f, times: 5}
		if refused {
			full.err = fmt.Errorf("too many: %w", ErrRefused)
		}
		r.Router, r.Opener = full, full
		got, a, err := generate(t, r, j, nil)
		if refused {
			if !errors.Is(err, ErrRefused) || errors.Is(err, ErrNoWayOn) || len(f.events) != 0 {
				t.Errorf("%v, events %+v", err, f.events)
			}
		} else if err != nil || !slices.Equal(got, whole(t, j)) || a.Rescues() != 0 || len(f.events) != 0 {
			t.Errorf("%v, %d rescues, events %+v", err, a.Rescues(), f.events)
		}
		if len(f.grants) != 0 {
			t.Errorf("reservations left: %v", f.grants)
		}
	}
}

// fullRouter is a swarm whose node b has no room for a while.
type fullRouter struct {
	*fakeSwarm
	times int
	err   error
}

func (f *fullRouter) Open(ctx context.Context, node string, opening []byte, rescue bool) (Session, error) {
	if node == "b" && f.times > 0 {
		f.times--
		return nil, &stage.Error{Code: stage.CodeNoCells}
	}
	return f.fakeSwarm.Open(ctx, node, opening, rescue)
}

func (f *fullRouter) Rescue(_ context.Context, _ Need, g Grant, _ []Failure, _ Progress) (Grant, RescueKind, error) {
	return g, Again, f.err
}

// Nodes that fall silent may be cut off or busy: that convicts nobody.
func TestSilenceConvictsNoQuery(t *testing.T) {
	f, j := threeStages(), job(40, 24)
	f.spares["b2"] = "x"
	f.onStep = func(node string, s stage.Step) {
		if (node == "b" || node == "b2") && s.Position == 50 {
			f.mu.Lock()
			f.nodes[node].down = true
			f.nodes[node].die(fmt.Errorf("%w: pings unanswered", ErrSilence))
			f.mu.Unlock()
		}
	}
	got, _, err := generate(t, f.runner(Limits{}), j, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := whole(t, j); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
