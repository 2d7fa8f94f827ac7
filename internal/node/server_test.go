package node

import (
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/sampling"
	"hecate/internal/stage"
	"hecate/pool"
)

func first(session string) stage.Open {
	return stage.Open{Session: session, Model: "m", First: 0, Last: 3, Cells: 100}
}

func last(session string, tokens ...int32) stage.Open {
	return stage.Open{Session: session, Model: "m", First: 8, Last: 11, Cells: 100, Sampler: &stage.Sampler{Params: sampling.Params{}, Prompt: len(tokens), Tokens: tokens}}
}

func TestAStageComputesAndDraws(t *testing.T) {
	w := newWorld(t)
	c, opened, err := w.dial(first("a"))
	if err != nil || opened.Held != 0 || opened.Width != fakeWidth || opened.Exactness != "fake" {
		t.Fatalf("%+v, %v", opened, err)
	}
	r, err := w.step(c, stage.Step{Tokens: []int32{5, 6, 7}, Want: stage.WantHidden})
	if err != nil || r.Kind != stage.KindHidden || r.Rows != 3 || len(r.Hidden) != 3*fakeWidth {
		t.Errorf("%+v, %v", r, err)
	}
	c.end(pool.CodeNormal, true)

	c = w.begin(last("a", 5, 6, 7))
	for i := range 3 {
		rows := 1
		if i == 0 {
			rows = 3
		}
		position := []int{0, 3, 4}[i]
		r, err := w.step(c, stage.Step{Position: position, Hidden: make([]float32, rows*fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		if want := int32(position + rows + 1); err != nil || r.Token.ID != want {
			t.Errorf("step %d: token %d, %v, want %d", i, r.Token.ID, err, want)
		}
	}
	c.end(pool.CodeNormal, true)
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	wrong := first("x")
	wrong.Last = 7
	full := first("x")
	full.Cells = 5000
	noSampler := last("x", 1)
	noSampler.Sampler = nil
	armed := first("x")
	armed.Chaos = &stage.Chaos{Action: "kill", Prompt: 1}
	for name, c := range map[string]struct {
		open stage.Open
		code stage.Code
	}{
		"layers that are not loaded":   {wrong, stage.CodeNotHeld},
		"no cells":                     {full, stage.CodeNoCells},
		"a last stage without sampler": {noSampler, stage.CodeBad},
		"chaos that is not allowed":    {armed, stage.CodeBad},
	} {
		if _, _, err := w.dial(c.open); codeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	w.server.gauge.pause(true)
	if _, _, err := w.dial(first("y")); codeOf(err) != stage.CodePaused {
		t.Errorf("a paused node: %v", err)
	}
}

func TestAStepOutOfPlaceEndsTheStage(t *testing.T) {
	w := newWorld(t)
	c := w.begin(first("a"))
	if _, err := w.step(c, stage.Step{Position: 7, Tokens: []int32{1}}); codeOf(err) != stage.CodeBad {
		t.Errorf("got %v, want %s", err, stage.CodeBad)
	}
	<-c.done
}

// A connection that breaks leaves the state for a reconnect, for a while.
func TestALostStageIsKeptAndResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.begin(last("a", 5, 6, 7), stage.Step{Hidden: make([]float32, 3*fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		c.end(pool.CodeLost, false)
		synctest.Wait()
		if w.engine.sessions() != 1 {
			t.Fatal("the state is gone with the connection")
		}
		again := last("a", 5, 6, 7, 4)
		again.Sampler.Prompt, again.Resume = 3, true
		c, opened, err := w.dial(again)
		if err != nil || opened.Held != 3 {
			t.Fatalf("%+v, %v, want 3 held", opened, err)
		}
		r, err := w.step(c, stage.Step{Position: 3, Hidden: make([]float32, fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		if err != nil || r.Token.ID != 5 {
			t.Errorf("token %d, %v, want 5", r.Token.ID, err)
		}
		c.end(pool.CodeLost, false)
		synctest.Wait()
		time.Sleep(keepTime + time.Second) // fake time
		synctest.Wait()
		if n := w.engine.sessions(); n != 0 {
			t.Errorf("%d sessions are kept for ever", n)
		}
	})
}

// A new answer of the same name starts anew, whatever was kept.
func TestWithoutResumeNothingIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.begin(first("a"), stage.Step{Tokens: []int32{1, 2}})
		c.end(pool.CodeLost, false)
		synctest.Wait()
		c, opened, err := w.dial(first("a"))
		if err != nil || opened.Held != 0 {
			t.Errorf("%+v, %v, want nothing held", opened, err)
		}
		c.end(pool.CodeCancelled, true)
	})
}

func TestTruncate(t *testing.T) {
	w := newWorld(t)
	c := w.begin(first("a"), stage.Step{Tokens: []int32{1, 2, 3}})
	c.toNode <- stage.Truncate{Position: 1}.Append(nil)
	if r, err := stage.DecodeResult(<-c.toGateway); err != nil || r.Kind != stage.KindDone || r.Position != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := w.step(c, stage.Step{Position: 1, Tokens: []int32{9}}); err != nil {
		t.Errorf("after a truncate: %v", err)
	}
	c.end(pool.CodeNormal, true)
}

// A gateway that lost the connection is often back before the node knows of the
// loss. It finds the stage as it was, although another handler still serves it.
func TestAReconnectTakesTheStageFromADeadHandler(t *testing.T) {
	w := newWorld(t)
	old := w.begin(last("a", 5, 6, 7), stage.Step{Hidden: make([]float32, 3*fakeWidth), Width: fakeWidth, Want: stage.WantToken})
	again := last("a", 5, 6, 7, 4)
	again.Sampler.Prompt, again.Resume = 3, true
	c, opened, err := w.dial(again)
	if err != nil || opened.Held != 3 {
		t.Fatalf("%+v, %v, want 3 held", opened, err)
	}
	<-old.done // nobody serves the old connection any more
	r, err := w.step(c, stage.Step{Position: 3, Hidden: make([]float32, fakeWidth), Width: fakeWidth, Want: stage.WantToken})
	if err != nil || r.Token.ID != 5 {
		t.Errorf("token %d, %v, want 5", r.Token.ID, err)
	}
	c.end(pool.CodeNormal, true)
	w.wg.Wait()
	if n := w.engine.sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// The handler may be in the middle of a step, or stuck with an answer that nobody
// takes: it gets out of the way before the stage changes hands.
func TestAReconnectInterruptsAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		old := w.begin(first("a"), stage.Step{Tokens: []int32{1, 2}})
		w.engine.hold()
		old.toNode <- stage.Step{Position: 2, Tokens: []int32{3}}.Append(nil)
		synctest.Wait() // it computes, for ever
		again := first("a")
		again.Resume = true
		c, opened, err := w.dial(again)
		if err != nil || opened.Held != 2 {
			t.Fatalf("%+v, %v, want 2 held", opened, err)
		}
		w.engine.unhold()
		if r, err := w.step(c, stage.Step{Position: 2, Tokens: []int32{3}}); err != nil || r.Rows != 1 {
			t.Errorf("%+v, %v", r, err)
		}
		c.end(pool.CodeNormal, true)
	})
}

// Whoever comes last has the stage; it is never served twice.
func TestManyReconnectsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.begin(first("a"), stage.Step{Tokens: []int32{1, 2}})
		again := first("a")
		again.Resume = true
		var wires []*wire
		for range 8 {
			wires = append(wires, w.call(again))
		}
		synctest.Wait()
		left := 0
		for _, x := range wires {
			select {
			case <-x.done:
			default:
				left++
				if opened, err := stage.DecodeOpened(<-x.toGateway); err != nil || opened.Held != 2 {
					t.Errorf("%+v, %v, want 2 held", opened, err)
				}
				x.end(pool.CodeNormal, true)
			}
		}
		if left != 1 {
			t.Errorf("%d of 8 connections serve the stage, want 1", left)
		}
	})
}

// An answer of the same name that starts anew does not wait for the old one.
func TestANewBeginningReplacesAServedStage(t *testing.T) {
	w := newWorld(t)
	old := w.begin(first("a"), stage.Step{Tokens: []int32{1, 2}})
	c, opened, err := w.dial(first("a"))
	if err != nil || opened.Held != 0 {
		t.Errorf("%+v, %v, want nothing held", opened, err)
	}
	<-old.done
	if n := w.engine.sessions(); n != 1 {
		t.Errorf("%d sessions, want 1", n)
	}
	c.end(pool.CodeNormal, true)
}

// A stage grows between two steps; where there is no room it goes on as it was.
func TestAStageGrows(t *testing.T) {
	w := newWorld(t)
	c, opened, err := w.dial(first("a"))
	if err != nil || opened.Cells != 100 {
		t.Fatalf("%+v, %v, want 100 cells", opened, err)
	}
	for _, g := range []struct{ ask, want int }{{300, 300}, {200, 300}, {fakeRoom + 1, 300}, {fakeRoom, fakeRoom}} {
		if _, err := w.step(c, stage.Step{Position: 0, Tokens: []int32{1}}); err != nil {
			t.Fatal(err)
		}
		c.toNode <- stage.Grow{Cells: g.ask}.Append(nil)
		if got, err := stage.DecodeGrown(<-c.toGateway); err != nil || got.Cells != g.want {
			t.Errorf("asked for %d: %+v, %v, want %d", g.ask, got, err, g.want)
		}
		c.toNode <- stage.Truncate{Position: 0}.Append(nil)
		<-c.toGateway
	}
	c.end(pool.CodeNormal, true)
}

// A stage that was kept gets the room that its answer has by now, if there is any.
func TestAKeptStageGrows(t *testing.T) {
	w := newWorld(t)
	w.begin(first("a"), stage.Step{Tokens: []int32{1, 2}})
	for _, g := range []struct{ ask, want int }{{400, 400}, {fakeRoom + 1, 400}} {
		again := first("a")
		again.Resume, again.Cells = true, g.ask
		if c, opened, err := w.dial(again); err != nil || opened.Held != 2 || opened.Cells != g.want {
			t.Errorf("resumed with %d: %+v, %v, want %d", g.ask, opened, err, g.want)
		} else if g.ask > fakeRoom {
			c.end(pool.CodeNormal, true)
		}
	}
}

// A gateway that comes back only to say that it is over has the kept stage freed, at
// once; it needs no room for that, and knows nothing of the answer.
func TestAKeptStageIsDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.begin(last("a", 5, 6, 7), stage.Step{Hidden: make([]float32, 3*fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		c.end(pool.CodeLost, false)
		synctest.Wait()
		o := last("a", 5)
		o.Resume, o.Rescue, o.Shadow, o.Cells = true, true, true, 1
		c, opened, err := w.dial(o)
		if err != nil || opened.Held != 3 {
			t.Fatalf("%+v, %v, want 3 held", opened, err)
		}
		c.end(pool.CodeNormal, true)
		synctest.Wait()
		if n := w.engine.sessions(); n != 0 {
			t.Errorf("%d sessions are kept", n)
		}
	})
}

// A gateway whose client left before the node's yes was read wants the stage no more,
// and a stage that holds nothing is not worth waiting for anybody.
func TestAStageThatNobodyUsedIsNotKept(t *testing.T) {
	for _, code := range []pool.CloseCode{pool.CodeNormal, pool.CodeCancelled, pool.CodeTimeout, pool.CodeLost} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			c, _, err := w.dial(first("a"))
			if err != nil {
				t.Fatal(err)
			}
			c.end(code, true)
			synctest.Wait()
			if n := w.engine.sessions(); n != 0 {
				t.Errorf("%s: %d sessions are kept", code, n)
			}
		})
	}
}

// A stage that is taken up as something else than it was, by a gateway that errs, is
// refused like any other impossible one: the node and its other stages live.
func TestAKeptStageIsNotTakenUpAsAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		c := w.begin(last("a", 5, 6, 7), stage.Step{Hidden: make([]float32, 3*fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		c.end(pool.CodeLost, false)
		synctest.Wait()
		without := last("a", 5, 6, 7, 4)
		without.Sampler, without.Resume = nil, true
		c, _, err := w.dial(without)
		if err == nil {
			_, err = w.step(c, stage.Step{Position: 3, Hidden: make([]float32, fakeWidth), Width: fakeWidth, Want: stage.WantToken})
		}
		if codeOf(err) != stage.CodeBad {
			t.Errorf("got %v, want %s", err, stage.CodeBad)
		}
		synctest.Wait()
		if n := w.engine.sessions(); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}
