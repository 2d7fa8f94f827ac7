package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/internal/stage"
)

// teller is an answer that says a token every 10 ms, and asks for room by portions
// as it gets longer.
type teller struct {
	prompt, length int // it ends after so many tokens
	most           int // that it may have said
	portion        int
	started        time.Duration // after which it asks for the first

	tokens  int
	gave    int // times that it gave way
	again   int // tokens that it computed once more
	began   time.Time
	ended   time.Time
	waited  time.Duration
	longest time.Duration // wait in the middle
	err     error
}

func (c *teller) need(cells int) answer.Need {
	next := min(c.portion, c.prompt+c.most-cells)
	return answer.Need{Model: "m", Layers: 1, PromptTokens: c.prompt, OutputTokens: c.most, Cells: cells, Next: next}
}

func (c *teller) run(ctx context.Context, a *Admission) error {
	time.Sleep(c.started)
	asked := time.Now()
	n := c.need(c.prompt + min(c.portion, c.most))
	g, err := a.Choose(ctx, n)
	if err != nil {
		return err
	}
	defer func() { a.Release(g) }()
	c.began = time.Now()
	c.waited = c.began.Sub(asked)
	for ; c.tokens < c.length; c.tokens++ {
		wanted := false
		select {
		case <-g.Wanted:
			wanted = true
		default:
		}
		if full := c.prompt+c.tokens+1 > n.Room(); full || wanted {
			var err error
			if next := c.need(n.Room() + n.Next); wanted {
				err = dispatch.ErrFull
			} else if full {
				err = a.Grow(ctx, next, g)
				n = next
			}
			if errors.Is(err, dispatch.ErrFull) {
				c.gave++
				c.again += c.prompt + c.tokens
				w := n
				w.Begun, w.PromptTokens, w.OutputTokens = true, c.prompt+c.tokens, c.most-c.tokens
				left := time.Now()
				if g, err = a.GiveWay(ctx, w, g, nil); err != nil {
					g = answer.Grant{Token: g.Token}
				}
				c.longest = max(c.longest, time.Since(left))
				time.Sleep(time.Duration(c.prompt+c.tokens) * time.Millisecond) // the replay
			}
			if err != nil {
				return err
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.ended = time.Now()
	return nil
}

func tell(t *testing.T, a *Admission, all []*teller) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() { c.err = c.run(t.Context(), a) })
	}
	wg.Wait()
	for i, c := range all {
		if c.err != nil {
			t.Errorf("answer %d after %d tokens: %v", i, c.tokens, c.err)
		}
	}
}

// Answers whose whole length exceeds the room by far all begin, all want to grow at
// once, and all end, whatever the others do: nobody holds what another waits for.
func TestAllWantToGrowAtOnce(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		for _, many := range []int{2, 5, 24} {
			bubble(t, func(t *testing.T) {
				s := newRealSwarm(nodes, 1000) // 875 of each for ordinary answers
				a := New(s, Limits{Patience: time.Hour, Midway: time.Hour})
				var all []*teller
				for range many {
					all = append(all, &teller{prompt: 20, length: 800, most: 850, portion: 100})
				}
				tell(t, a, all)
				gave, again := 0, 0
				for _, c := range all {
					gave, again = gave+c.gave, again+c.again
					if c.gave > 800/100 {
						t.Errorf("one answer gave way %d times", c.gave)
					}
				}
				t.Logf("%d answers on %d nodes: gave way %d times, %d tokens computed again for %d", many, nodes, gave, again, many*820)
				if gave > 3*many || many > nodes && gave == 0 {
					t.Errorf("%d answers gave way %d times", many, gave)
				}
				if n := a.Snapshot().GaveWay; int(n) != gave {
					t.Errorf("%d were counted of %d", n, gave)
				}
				left(t, a)
			})
		}
	}
}

// left checks that nothing is.
func left(t *testing.T, a *Admission) {
	t.Helper()
	synctest.Wait()
	if s := a.Snapshot(); s.Running != 0 || s.Queued != 0 || s.Midway != 0 || len(a.mu.tickets) != 0 || a.mu.queues["m"].pace.cells != 0 {
		t.Errorf("left over: %+v, %d tickets", s, len(a.mu.tickets))
	}
}

// The one that began first is never held up by those that came later, and newcomers
// wait for all that have begun.
func TestTheOldestGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(1, 1000)
		a := New(s, Limits{Patience: time.Hour})
		var all []*teller
		for i := range 6 {
			all = append(all, &teller{prompt: 20, length: 800, most: 800, portion: 100, started: time.Duration(i) * 100 * time.Millisecond})
		}
		late := &teller{prompt: 20, length: 10, most: 10, portion: 100, started: 5 * time.Second}
		tell(t, a, append(all, late))
		for i, c := range all {
			if i > 0 && c.ended.Before(all[i-1].ended) {
				t.Errorf("answer %d ended before %d, which began before", i, i-1)
			}
		}
		if first := all[0]; first.gave > 1 {
			t.Errorf("the first answer gave way %d times", first.gave)
		}
		t.Logf("a short one that came late waited %s", late.waited)
		left(t, a)
	})
}

// Short answers keep coming while long ones run: neither starves.
func TestLongAndShortAnswersTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(4, 2000)
		a := New(s, Limits{})
		var all []*teller
		for range 4 {
			all = append(all, &teller{prompt: 50, length: 1500, most: 1600, portion: 100})
		}
		for i := range 200 {
			all = append(all, &teller{prompt: 30, length: 20 + i*7%120, most: 1600, portion: 100, started: time.Duration(i) * 200 * time.Millisecond})
		}
		tell(t, a, all)
		var longest, midway time.Duration
		gave, again, tokens := 0, 0, 0
		for _, c := range all {
			longest, midway = max(longest, c.waited), max(midway, c.longest)
			gave, again, tokens = gave+c.gave, again+c.again, tokens+c.prompt+c.length
		}
		t.Logf("waited at most %s, in the middle %s; gave way %d times, %d tokens computed again for %d", longest, midway, gave, again, tokens)
		if longest > 30*time.Second || 5*again > tokens {
			t.Errorf("waited %s, %d tokens again for %d", longest, again, tokens)
		}
		left(t, a)
	})
}

// Who waits in the middle in vain is told so, and is no refused request.
func TestMidwayEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		n := answer.Need{Model: "m", PromptTokens: 10, OutputTokens: 80, Cells: 40, Next: 40}
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		f.occupy(0, 50)
		n.Cells, n.Next = 80, 10
		if err := a.Grow(t.Context(), n, g); !errors.Is(err, dispatch.ErrFull) {
			t.Errorf("grown into what is taken: %v", err)
		}
		n.Begun, n.PromptTokens = true, 40
		began := time.Now()
		_, err = a.GiveWay(t.Context(), n, g, nil)
		if took := time.Since(began); took != 5*time.Minute || errors.Is(err, ErrRefused) || !strings.Contains(fmt.Sprint(err), "waited 5m0s for room") {
			t.Errorf("%v after %s", err, took)
		}
		a.Release(g)
		settled(t, a, f)
		if n := a.Snapshot().Refused[NoRoom]; n != 0 {
			t.Errorf("%d refused requests", n)
		}
	})
}

// Waiting in the middle ends with the client, too, and with the swarm.
func TestMidwayIsLeft(t *testing.T) {
	for name, want := range map[string]time.Duration{"client": time.Second, "nodes": rescueTime} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, 1, 100)
				a := New(f, Limits{})
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				n := answer.Need{Model: "m", PromptTokens: 10, OutputTokens: 80, Cells: 40, Next: 40}
				g, err := a.Choose(ctx, n)
				if err != nil {
					t.Fatal(err)
				}
				f.occupy(0, 50)
				n.Cells, n.Begun = 80, true
				if name == "client" {
					time.AfterFunc(want, leave)
				} else {
					f.setDead(true)
				}
				began := time.Now()
				if _, err = a.GiveWay(ctx, n, g, nil); err == nil || time.Since(began) != want {
					t.Errorf("%v after %s, want an error after %s", err, time.Since(began), want)
				}
				a.Release(g)
				settled(t, a, f)
			})
		})
	}
}

// Where an older answer finds no room the youngest one is asked to leave, and no
// more of them than are in the way; it has the room at that moment.
func TestTheYoungestGivesWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(1, 1000) // 875 to be had
		a := New(s, Limits{})
		n := answer.Need{Model: "m", Layers: 1, PromptTokens: 10, OutputTokens: 800, Cells: 200, Next: 10}
		var grants []answer.Grant
		for range 4 {
			g, err := a.Choose(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			grants = append(grants, g)
		}
		asked := func() (out []int) {
			for i, g := range grants {
				select {
				case <-g.Wanted:
					out = append(out, i)
				default:
				}
			}
			return out
		}
		n.Cells = 280
		done, grown := make(chan time.Time), n
		began := time.Now()
		go func() {
			if err := a.Grow(t.Context(), grown, grants[1]); err != nil {
				t.Error(err)
			}
			done <- time.Now()
		}()
		time.Sleep(time.Second)
		if got := asked(); len(got) != 1 || got[0] != 3 {
			t.Errorf("answers %v were asked to leave, want the last", got)
		}
		// Who was asked does not grow any more, were there room or not.
		more := n
		more.Cells = 205
		if err := a.Grow(t.Context(), more, grants[3]); !errors.Is(err, dispatch.ErrFull) {
			t.Errorf("one that is to leave grew: %v", err)
		}
		back, w := make(chan answer.Grant), n
		w.Cells, w.Begun, w.PromptTokens = 200, true, 100
		go func() {
			g, err := a.GiveWay(t.Context(), w, grants[3], nil)
			if err != nil {
				t.Error(err)
			}
			back <- g
		}()
		if took := (<-done).Sub(began); took != time.Second {
			t.Errorf("grown after %s, want at once when the youngest had left", took)
		}
		// Nobody younger is in the way of the third, and somebody older is not asked.
		n.Cells = 500
		if err := a.Grow(t.Context(), n, grants[2]); !errors.Is(err, dispatch.ErrFull) || len(asked()) != 1 {
			t.Errorf("%v, %v were asked", err, asked())
		}
		a.Release(grants[0])
		a.Release(grants[1])
		g := <-back
		if g.Token != grants[3].Token || g.Wanted == grants[3].Wanted {
			t.Error("it did not come back under its own name, with nobody wanting its room")
		}
		a.Release(g)
		a.Release(grants[2])
		left(t, a)
	})
}

// One that does not leave in time is not waited for; and while an older answer waits
// in the middle, younger ones do not grow.
func TestTheYoungestStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(1, 1000)
		a := New(s, Limits{})
		n := answer.Need{Model: "m", Layers: 1, PromptTokens: 10, OutputTokens: 800, Cells: 400, Next: 10}
		var grants []answer.Grant
		for range 2 {
			g, err := a.Choose(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			grants = append(grants, g)
		}
		n.Cells = 600
		began := time.Now()
		if err := a.Grow(t.Context(), n, grants[0]); !errors.Is(err, dispatch.ErrFull) || time.Since(began) != leaveTime {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		back, w := make(chan answer.Grant), n
		w.Begun, w.PromptTokens = true, 400
		go func() {
			g, err := a.GiveWay(t.Context(), w, grants[0], nil)
			if err != nil {
				t.Error(err)
			}
			back <- g
		}()
		synctest.Wait()
		if m := a.Snapshot(); m.Midway != 1 || m.Running != 1 {
			t.Errorf("%+v", m)
		}
		n.Cells = 420
		if err := a.Grow(t.Context(), n, grants[1]); !errors.Is(err, dispatch.ErrFull) {
			t.Errorf("grown although an older one waits: %v", err)
		}
		a.Release(grants[1])
		a.Release(<-back)
		left(t, a)
	})
}

// A refused request is told how long it waited in all, and that those before it have
// begun already.
func TestARefusalNamesAnswersThatGaveWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 10 * time.Second})
		n := answer.Need{Model: "m", PromptTokens: 10, OutputTokens: 80, Cells: 40, Next: 40}
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		f.occupy(0, 30)
		n.Cells, n.Begun = 90, true
		waiting, leave := context.WithCancel(t.Context())
		go func() { _, _ = a.GiveWay(waiting, n, g, nil) }()
		synctest.Wait()
		_, err = a.Choose(t.Context(), need("k", 50))
		if want := `model "m": waited 10s for room, 1 requests are still before this one; 1 of them are answers that gave way in the middle`; fmt.Sprint(err) != want {
			t.Errorf("told %v", err)
		}
		a.Heed("other", map[string]Claim{"m": {Oldest: time.Now()}})
		_, err = a.Choose(t.Context(), need("k", 50))
		if !strings.HasSuffix(fmt.Sprint(err), "1 of them, and others at another gateway, are answers that gave way in the middle") {
			t.Errorf("told %v", err)
		}
		leave()
		synctest.Wait()
		_, err = a.Choose(t.Context(), need("k", 50))
		if !strings.HasSuffix(fmt.Sprint(err), "; answers of another gateway that gave way in the middle go first") {
			t.Errorf("told %v", err)
		}
		a.Heed("other", nil)
		a.Release(g)
		settled(t, a, f)
	})
}

// How long room stays taken is what an answer holds it in all: that it gave way once
// makes it no sooner free for others.
func TestGivingWayIsNoEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 1000)
		a := New(f, Limits{})
		n := answer.Need{Model: "m", PromptTokens: 10, OutputTokens: 90}
		for range 5 {
			n.Begun = false
			g, err := a.Choose(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // it runs two seconds and gives way, three times
				time.Sleep(2 * time.Second)
				n.Begun = true
				if g, err = a.GiveWay(t.Context(), n, g, nil); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			a.Release(g)
		}
		if stay := a.Snapshot().Models[0].Stay; stay.Round(time.Millisecond) != 7*time.Second {
			t.Errorf("room stays taken for %s, want 7 s", stay)
		}
		settled(t, a, f)
	})
}

// Who was sent back by a node, and is refused in the end, is told how long it waited
// since it came.
func TestTheWaitIsCountedFromTheArrival(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 10 * time.Second})
		n := need("k", 60)
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Second)
		f.occupy(0, 40)
		f.occupy(0, 10)
		_, _, err = a.Rescue(t.Context(), n, g, turnedAway("n0", stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens})
		var r *Refusal
		if !errors.As(err, &r) || r.Waited != 11*time.Second { // 8 s, and 3 s for another try
			t.Errorf("told %v", err)
		}
		a.Release(g)
		settled(t, a, f)
	})
}
