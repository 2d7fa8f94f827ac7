package dispatch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// A burst sees itself: equal copies get equal shares, before any telemetry.
func TestABurstSpreads(t *testing.T) {
	for _, c := range []struct {
		name     string
		copies   int
		requests int
		tokens   int
		measured bool
	}{
		{"64 long prompts", 8, 64, 3000, true}, {"64 long prompts, nothing measured", 8, 64, 3000, false},
		{"64 short ones", 8, 64, 20, true}, {"200 on three", 3, 200, 300, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(Config{}, copies(c.copies), c.copies, 64000)
			if c.measured {
				for i := range c.copies {
					w.d.Observe(name(i), sample(1, 20))
				}
			}
			var mu sync.Mutex
			load := map[string]int{}
			var wg sync.WaitGroup
			var grants []answer.Grant
			for range c.requests {
				wg.Go(func() {
					g, err := w.d.Choose(context.Background(), answer.Need{Model: "m", Layers: layers, PromptTokens: c.tokens, OutputTokens: 100})
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						t.Error(err)
						return
					}
					load[nodeOf(g)]++
					grants = append(grants, g)
				})
			}
			wg.Wait()
			least, most := c.requests, 0
			for i := range c.copies {
				least, most = min(least, load[name(i)]), max(most, load[name(i)])
			}
			if least == 0 || float64(most)/float64(least) > 1.3 {
				t.Errorf("from %d to %d requests per copy: %v", least, most, load)
			}
			for _, g := range grants {
				w.d.Release(g)
			}
			w.idle(t)
		})
	}
}

func sample(rows int, ms int) answer.Sample {
	d := time.Duration(ms) * time.Millisecond
	return answer.Sample{Rows: rows, Layers: layers, Timing: stage.Timing{Compute: d}, Wall: d}
}

// A node that fails at once always looks idle; it must not get more than a few
// requests, and is found again when it works.
func TestANodeThatFailsFastDoesNotAttract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{Policy: swarm.Policy{Explore: -1}}, copies(4), 4, 64000)
		for i := range 4 {
			w.d.Observe(name(i), sample(1, 20))
		}
		// Eight requests at any time, each for 20 ms; on n2 they fail at once.
		var running []answer.Grant
		hits := 0
		for i := range 2000 {
			if i%100 == 0 {
				w.report()
			}
			g := w.choose(t, 500)
			if nodeOf(g) == "n2" {
				hits++
				next, _, err := w.d.Rescue(t.Context(), need(500), g, broken("n2"), answer.Progress{Tokens: 499})
				if err != nil {
					t.Fatal(err)
				}
				g = next
			}
			if running = append(running, g); len(running) == 8 {
				time.Sleep(20 * time.Millisecond / 8)
				w.d.Observe(nodeOf(running[0]), sample(1, 20))
				w.d.Release(running[0])
				running = running[1:]
			}
		}
		for _, g := range running {
			w.d.Release(g)
		}
		t.Logf("%d of 2000", hits)
		if hits == 0 || hits > 12 {
			t.Errorf("%d of 2000 requests went to a node that fails all", hits)
		}
		time.Sleep(2 * time.Minute) // errors are half forgotten every 30 s
		w.report()
		used := false
		var held []answer.Grant
		for range 12 {
			g := w.choose(t, 500)
			used = used || nodeOf(g) == "n2"
			held = append(held, g)
		}
		for _, g := range held {
			w.d.Release(g)
		}
		if !used {
			t.Errorf("a node that works again is not used; its circuit is %s", circuitOf(w.d, "n2"))
		}
		w.idle(t)
	})
}

// A node that breaks every connection comes back each time as the same
// incarnation: it keeps its record. A new incarnation starts clean.
func TestAFlappingNodeKeepsItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(2), 2, 1000)
		n := w.node("n0")
		for range 3 {
			w.d.Blame(need(10), []answer.Failure{{Node: "n0", Kind: answer.Gone, Err: errors.New("reset")}})
			n.status = control.StatusDead
			w.show()
			n.status = control.StatusAlive
			time.Sleep(1500 * time.Millisecond)
			w.report()
		}
		if got := circuitOf(w.d, "n0"); got != swarm.CircuitOpen {
			t.Errorf("after three broken connections the circuit is %s", got)
		}
		n.incarnation++
		w.report()
		if got := circuitOf(w.d, "n0"); got != swarm.CircuitClosed {
			t.Errorf("a new incarnation's circuit is %s", got)
		}
	})
}

func circuitOf(d *Dispatcher, node string) swarm.CircuitState {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.nodes[node].circuit.State(time.Now())
}

// A lease belongs to the nodes that it was taken on; plans come and go.
func TestLeasesOutliveThePlan(t *testing.T) {
	w := newWorld(Config{Policy: swarm.Policy{Assemble: swarm.AssembleNever}}, copies(2), 4, 1000)
	var old []answer.Grant
	for range 8 {
		old = append(old, w.choose(t, 200)) // four on each
	}
	if _, err := w.d.Choose(context.Background(), need(200)); !errors.Is(err, ErrFull) {
		t.Fatalf("a ninth of 200 in 2 x 875: %v", err)
	}
	w.d.SetPlan(halves(2))
	if a, b := w.room("n0"), w.room("n2"); a != 75 || b != 875 {
		t.Errorf("after another plan: %d and %d cells, want 75 and 875", a, b)
	}
	g := w.choose(t, 200)
	if g.Route.Stages[0].Node != "n2" || len(g.Route.Stages) != 2 {
		t.Errorf("with n0 and n1 full the route is %s", g.Route)
	}
	for _, o := range old {
		w.d.Release(o)
	}
	if got := w.room("n0"); got != 875 {
		t.Errorf("%d cells after the old leases ended, want 875", got)
	}
	w.d.SetPlan(copies(1))
	w.d.Release(g)
	w.idle(t)
}

func TestALeaseIsReleasedOnce(t *testing.T) {
	w := newWorld(Config{}, copies(1), 1, 1000)
	g := w.choose(t, 100)
	w.d.Release(g)
	defer func() {
		if recover() == nil {
			t.Error("a second release went unnoticed")
		}
		w.idle(t)
	}()
	w.d.Release(g)
}

// What is kept for rescues is not offered to others, and rescues get it.
func TestTheLastEighthIsForRescues(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 800)
	var held []answer.Grant
	for range 14 {
		held = append(held, w.choose(t, 100))
	}
	if _, err := w.d.Choose(context.Background(), need(1)); !errors.Is(err, ErrFull) {
		t.Errorf("one cell more than 700 of 800: %v", err)
	}
	g, kind, err := w.d.Rescue(context.Background(), need(100), held[0], []answer.Failure{{Node: nodeOf(held[0]), Kind: answer.Gone}}, answer.Progress{Tokens: 50})
	if err != nil || kind != answer.Copy || nodeOf(g) == nodeOf(held[0]) {
		t.Fatalf("a rescue into the last eighth: %v, %s", err, kind)
	}
	_, _, err = w.d.Rescue(context.Background(), need(100), held[1], []answer.Failure{{Node: nodeOf(held[1]), Kind: answer.Gone}}, answer.Progress{Tokens: 50})
	if nodeOf(held[1]) != nodeOf(held[0]) && err == nil {
		t.Error("the last copy died and there is a rescue")
	}
	for _, x := range append(held[1:], g) {
		w.d.Release(x)
	}
	w.idle(t)
}

// Why there is no route decides whether waiting helps.
func TestWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(w *world)
		cells int
		full  bool
		large bool
	}{
		{"full to the last cell", func(w *world) {
			for range 14 {
				_, _ = w.d.Choose(context.Background(), need(125))
			}
		}, 1, true, false},
		{"others fill it", func(w *world) { w.node("n0").free, w.node("n1").free = 130, 140; w.report() }, 100, true, false},
		{"too large", func(*world) {}, 876, false, true},
		{"all dead", func(w *world) {
			for _, n := range w.nodes {
				n.status = control.StatusDead
			}
			w.show()
		}, 10, false, false},
		{"one dead, one full", func(w *world) {
			w.node("n0").status = control.StatusDead
			w.node("n1").free = 0
			w.report()
		}, 10, true, false},
		{"loading", func(w *world) {
			for _, n := range w.nodes {
				n.layers = swarm.Layers(0, 3)
			}
			w.report()
		}, 10, false, false},
	} {
		w := newWorld(Config{}, copies(2), 2, 1000)
		c.do(w)
		_, err := w.d.Choose(context.Background(), need(c.cells))
		if errors.Is(err, ErrFull) != c.full || errors.Is(err, ErrTooLarge) != c.large || !errors.Is(err, swarm.ErrNoRoute) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := New(Config{}).Choose(context.Background(), need(1)); !errors.Is(err, ErrNoPlan) || !errors.Is(err, swarm.ErrNoRoute) {
		t.Errorf("no plan: %v", err)
	}
}

func TestDeathAndReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(2), 2, 1000)
		n := w.node("n0")
		alive := w.d.Alive("n0")
		g := w.choose(t, 10)
		n.status = control.StatusSuspect
		w.show()
		if alive.Err() != nil {
			t.Error("a suspect counts as dead")
		}
		n.status = control.StatusDead
		w.show()
		if !errors.Is(context.Cause(alive), errDied) {
			t.Errorf("its context says %v", context.Cause(alive))
		}
		if w.d.Alive("n0").Err() == nil {
			t.Error("a dead node's context lives")
		}
		for range 5 {
			x := w.choose(t, 10)
			if nodeOf(x) == "n0" {
				t.Error("a dead node is chosen")
			}
			w.d.Release(x)
		}
		ch := w.d.Changed()
		n.status, n.incarnation = control.StatusAlive, 2
		w.report()
		if w.d.Alive("n0").Err() != nil || !changed(ch) {
			t.Error("its return is not taken note of")
		}
		seen := map[string]bool{}
		var held []answer.Grant
		for range 6 {
			held = append(held, w.choose(t, 10))
			seen[nodeOf(held[len(held)-1])] = true
		}
		if !seen["n0"] {
			t.Error("it is not used again")
		}
		for _, x := range append(held, g) {
			w.d.Release(x)
		}
		w.idle(t)
	})
}

// A node that is enrolled no more is dead, not forgotten in its last good state.
func TestARemovedNodeIsNotUsed(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	alive := w.d.Alive("n0")
	w.node("n0").gone = true
	w.show()
	if alive.Err() == nil {
		t.Error("its context lives")
	}
	for range 4 {
		if g := w.choose(t, 10); nodeOf(g) == "n0" {
			t.Error("it is chosen")
		}
	}
}

// What we saw fail stays away until it is heard of, whatever others report.
func TestACondemnedNodeWaitsForItsOwnReport(t *testing.T) {
	for _, c := range []struct {
		name string
		f    answer.Failure
	}{
		{"gone", answer.Failure{Node: "n0", Kind: answer.Gone}},
		{"silent", answer.Failure{Node: "n0", Kind: answer.Silent}},
		{"paused", answer.Failure{Node: "n0", Kind: answer.Refused, Err: &stage.Error{Code: stage.CodePaused}}},
		{"without the layers", answer.Failure{Node: "n0", Kind: answer.Refused, Err: &stage.Error{Code: stage.CodeNotHeld}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(Config{}, copies(2), 2, 1000)
				time.Sleep(time.Second)
				w.d.Blame(need(10), []answer.Failure{c.f})
				uses := func() bool {
					w.d.mu.Lock()
					defer w.d.mu.Unlock()
					v, _ := w.d.mu.fleet.Node("n0")
					return !v.State.Dead
				}
				if uses() {
					t.Error("it is used at once")
				}
				w.show()
				time.Sleep(time.Second)
				w.report("n1")
				if uses() {
					t.Error("another node's report brings it back")
				}
				w.report("n0")
				if !uses() {
					t.Error("its own report does not bring it back")
				}
			})
		})
	}
}

// A node without room is left alone for a moment, for as much only.
func TestANodeWithoutRoomIsAskedForLess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(1), 1, 1000)
		ch := w.d.Changed()
		w.d.Blame(need(400), noCells("n0"))
		<-ch
		if _, err := w.d.Choose(t.Context(), need(400)); !errors.Is(err, ErrFull) {
			t.Errorf("as much again: %v", err)
		}
		w.d.Release(w.choose(t, 399))
		ch = w.d.Changed()
		began := time.Now()
		<-ch
		if d := time.Since(began); d != leastPause {
			t.Errorf("waiters look again after %s, want %s", d, leastPause)
		}
		w.d.Release(w.choose(t, 400))
		if c := circuitOf(w.d, "n0"); c != swarm.CircuitClosed {
			t.Errorf("a full node's circuit is %s", c)
		}
		w.idle(t)
	})
}

// Reports are late: what they count twice or not yet must not matter.
func TestReportsAndLeasesAreNotCountedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(1), 1, 1000)
		n := w.node("n0")
		g := w.choose(t, 500)
		h := w.choose(t, 300)
		if got := w.room("n0"); got != 75 {
			t.Errorf("%d cells before the report, want 75", got)
		}
		n.free = 200
		w.report()
		if got := w.room("n0"); got != 75 {
			t.Errorf("%d cells after the report, want 75", got)
		}
		w.d.Release(g)
		w.report() // still counts g
		if got := w.room("n0"); got != 575 {
			t.Errorf("%d cells after the release, want 575", got)
		}
		w.show()
		n.free = 600 // 100 of somebody else
		time.Sleep(time.Second)
		w.report()
		if got := w.room("n0"); got != 475 {
			t.Errorf("%d cells beside another gateway, want 475", got)
		}
		w.d.Release(h)
		w.idle(t)
	})
}

// Samples age from when they were heard, not from when a view was made.
func TestOldReportsAreStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{Policy: swarm.Policy{Explore: -1}}, copies(2), 2, 1000)
		w.node("n0").latencyMillis = 4 // the cheaper one
		w.report()
		g := w.choose(t, 10)
		if nodeOf(g) != "n0" {
			t.Fatalf("%s is chosen", nodeOf(g))
		}
		w.d.Release(g)
		for range 30 {
			time.Sleep(time.Second)
			w.report("n1")
		}
		if g := w.choose(t, 10); nodeOf(g) != "n1" {
			t.Error("a node that was last heard of half a minute ago is as good as ever")
		}
	})
}

func TestWhoWaitsIsWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(2), 2, 1000)
		g := w.choose(t, 10)
		for _, c := range []struct {
			name string
			do   func()
			want bool
		}{
			{"a choice", func() { w.d.Release(g); g = w.choose(t, 10) }, true},
			{"only a choice", func() { w.choose(t, 10) }, false},
			{"a release", func() { w.d.Release(g) }, true},
			{"a plan", func() { w.d.SetPlan(copies(1)) }, true},
			{"a view", func() { w.show() }, true},
			{"a step", func() { w.d.Observe("n0", sample(1, 5)) }, false},
			{"a probe that succeeds", func() {
				for range 3 {
					w.d.Blame(need(1), broken("n0"))
				}
				time.Sleep(10 * time.Second)
				w.d.Observe("n0", sample(1, 5))
			}, true},
			{"all or none, and it is none", func() {
				n := need(600)
				n.Choices = 3
				if _, err := w.d.ChooseAll(t.Context(), n); !errors.Is(err, ErrFull) || !errors.Is(err, ErrNotTogether) {
					t.Error(err)
				}
			}, false},
		} {
			ch := w.d.Changed()
			c.do()
			if changed(ch) != c.want {
				t.Errorf("%s: woken %v", c.name, !c.want)
			}
		}
	})
}

func TestAllOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(Config{}, copies(2), 2, 1000)
		n := need(400)
		n.Choices = 5
		if _, err := w.d.ChooseAll(t.Context(), n); !errors.Is(err, ErrNotTogether) {
			t.Errorf("five of 400 in two of 875: %v", err)
		}
		w.idle(t)
		// Nothing of it may pass for a lease that a report still counts.
		w.node("n0").free, w.node("n1").free = 400, 400
		w.report()
		if got := w.room("n0"); got != 275 {
			t.Errorf("%d cells beside 600 of others, want 275", got)
		}
		w.node("n0").free, w.node("n1").free = 1000, 1000
		w.report()
		n.Choices = 4
		grants, err := w.d.ChooseAll(t.Context(), n)
		if err != nil || len(grants) != 4 {
			t.Fatalf("four of 400 in two of 875: %v", err)
		}
		for _, g := range grants {
			w.d.Release(g)
		}
		n.PromptTokens, n.Choices = 5000, 2
		if _, err := w.d.ChooseAll(t.Context(), n); !errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotTogether) {
			t.Errorf("two that never fit: %v", err)
		}
		w.idle(t)
	})
}

func TestRescue(t *testing.T) {
	for _, c := range []struct {
		name   string
		plan   *swarm.Plan
		nodes  int
		do     func(w *world)
		failed answer.Failure
		kind   answer.RescueKind
		err    error
	}{
		{"another copy", copies(2), 2, nil, answer.Failure{Node: "n0", Kind: answer.Gone}, answer.Copy, nil},
		{"a splice", halves(1), 3, nil, answer.Failure{Node: "n0", Kind: answer.Silent}, answer.Splice, nil},
		{"nobody", copies(1), 1, nil, answer.Failure{Node: "n0", Kind: answer.Gone}, "", swarm.ErrUnrecoverable},
		{"not on the route", copies(2), 2, nil, answer.Failure{Node: "n9", Kind: answer.Gone}, "", swarm.ErrInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(Config{Policy: swarm.Policy{Explore: -1}}, c.plan, c.nodes, 1000)
			g := w.choose(t, 100)
			next, kind, err := w.d.Rescue(context.Background(), need(100), g, []answer.Failure{c.failed}, answer.Progress{Tokens: 99, StatesKept: true})
			if !errors.Is(err, c.err) || kind != c.kind {
				t.Errorf("%s, %v; want %s, %v", kind, err, c.kind, c.err)
			}
			if err != nil {
				next = g // the old one stands
			} else if next.Route.Uses(c.failed.Node) {
				t.Errorf("the failed node is on %s", next.Route)
			}
			w.d.Release(next)
			w.idle(t)
		})
	}
}

// A node that gave up what an answer used may go on with what it still has, once it
// has said what that is.
func TestANodeThatGaveLayersUpServesOthers(t *testing.T) {
	w := newWorld(Config{Policy: swarm.Policy{Explore: -1, ConfirmedOnly: true}}, copies(1), 2, 1000)
	w.node("n1").layers = swarm.Layers(6, layers-1)
	w.report()
	g := w.choose(t, 100)
	w.d.SetPlan(halves(1))
	refused := []answer.Failure{{Node: "n0", Kind: answer.Refused, Err: &stage.Error{Code: stage.CodeNotHeld}}}
	w.node("n0").layers = swarm.Layers(0, 5)
	if _, _, err := w.d.Rescue(t.Context(), need(100), g, refused, answer.Progress{Tokens: 99, StatesKept: true}); !errors.Is(err, swarm.ErrNoRoute) {
		t.Errorf("before it said what it has: %v", err)
	}
	w.report()
	next, kind, err := w.d.Rescue(t.Context(), need(100), g, refused, answer.Progress{Tokens: 99, StatesKept: true, Again: true})
	if err != nil || kind != answer.Copy || len(next.Route.Stages) != 2 || !next.Route.Uses("n0") {
		t.Fatalf("%s, %s, %v", next.Route, kind, err)
	}
	w.d.Release(next)
	w.idle(t)
}

func TestAroundASlowNode(t *testing.T) {
	w := newWorld(Config{}, copies(2), 2, 1000)
	g := w.choose(t, 100)
	twin, err := w.d.Around(need(100), g.Route, nodeOf(g))
	if err != nil || nodeOf(twin) == nodeOf(g) {
		t.Fatalf("%v: %s around %s", err, twin.Route, g.Route)
	}
	if circuitOf(w.d, nodeOf(g)) != swarm.CircuitClosed {
		t.Error("the slow node is blamed")
	}
	w.d.Release(g)
	w.d.Release(twin)
	w.idle(t)
}

func TestPatience(t *testing.T) {
	w := newWorld(Config{}, copies(1), 1, 1000)
	at := func(rows int) time.Duration { return w.d.Patience("n0", rows, layers) }
	if got := at(1); got != firstPatience+rowPatience {
		t.Errorf("with the first step: %s", got)
	}
	if got := at(1000); got != firstPatience+1000*rowPatience {
		t.Errorf("with a first long prompt: %s", got)
	}
	if _, known := w.d.Usual("n0", 1, layers); known {
		t.Error("a step is usual before the first")
	}
	w.d.Observe("n0", sample(1, 600))
	w.d.Observe("n0", sample(100, 6000))
	for _, c := range []struct {
		rows int
		want time.Duration
	}{{1, 7200 * time.Millisecond}, {100, 72 * time.Second}, {1000, mostPatience}} {
		if got := at(c.rows); got.Round(time.Millisecond) != c.want {
			t.Errorf("%d rows: %s, want %s", c.rows, got, c.want)
		}
	}
	for range 100 {
		w.d.Observe("n0", sample(1, 1))
	}
	if got := at(1); got != leastPatience {
		t.Errorf("with a fast node: %s, want %s", got, leastPatience)
	}
	w.d.Observe("n0", answer.Sample{}) // nothing was computed: nothing is learnt
	if got := w.d.RoundTrip("n0"); got.Value != 0 || w.d.RoundTrip("nobody").Known {
		t.Errorf("round trips: %v", got)
	}
}

func TestExplainAgreesWithChoose(t *testing.T) {
	w := newWorld(Config{Policy: swarm.Policy{Explore: -1}}, copies(3), 3, 1000)
	w.node("n1").latencyMillis = 1
	w.report()
	e, err := w.d.Explain(need(100))
	if err != nil || len(e.Candidates) < 3 || e.Candidates[0].Stages[0].Node != nodeOf(w.choose(t, 100)) {
		t.Errorf("%v: %v", err, e)
	}
	if _, err := New(Config{}).Explain(need(1)); !errors.Is(err, ErrNoPlan) {
		t.Errorf("no plan: %v", err)
	}
}

// Everything at once, for the race detector; in the end all is given back.
func TestEverythingAtOnce(t *testing.T) {
	w := newWorld(Config{}, halves(3), 6, 2000)
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for seed := range uint64(8) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 300 {
				useOnce(t, w.d, r)
			}
		})
	}
	var plane sync.WaitGroup
	plane.Go(func() {
		r := rand.New(rand.NewPCG(9, 9))
		for {
			select {
			case <-stop:
				return
			default:
			}
			switch r.IntN(4) {
			case 0:
				w.d.SetPlan([]*swarm.Plan{halves(3), copies(6), halves(2)}[r.IntN(3)])
			case 1:
				w.nodes[r.IntN(6)].free = r.IntN(2000)
				w.report()
			case 2:
				n := w.nodes[r.IntN(6)]
				n.status = []control.Status{control.StatusAlive, control.StatusDead}[r.IntN(2)]
				w.report()
			case 3:
				_, _ = w.d.Explain(need(10))
			}
		}
	})
	wg.Wait()
	close(stop)
	plane.Wait()
	w.idle(t)
}

func useOnce(t *testing.T, d *Dispatcher, r *rand.Rand) {
	n := need(1 + r.IntN(400))
	n.Choices = 1 + r.IntN(3)
	grants, err := d.ChooseAll(t.Context(), n)
	if err != nil {
		if !errors.Is(err, swarm.ErrNoRoute) {
			t.Error(err)
		}
		return
	}
	for _, g := range grants {
		node := g.Route.Stages[r.IntN(len(g.Route.Stages))].Node
		d.Observe(node, sample(1+r.IntN(50), 1))
		d.Patience(node, 1, layers)
		switch r.IntN(4) {
		case 0:
			f := answer.Failure{Node: node, Kind: answer.FailureKind(r.IntN(3)), Err: &stage.Error{Code: stage.CodeNoCells}}
			if next, _, err := d.Rescue(t.Context(), n, g, []answer.Failure{f}, answer.Progress{Tokens: n.PromptTokens + 1}); err == nil {
				g = next
			}
		case 1:
			if twin, err := d.Around(n, g.Route, node); err == nil {
				d.Release(twin)
			}
		}
		d.Release(g)
	}
}

func ExampleSellable() {
	fmt.Println(Sellable(4096))
	// Output: 3584
}
