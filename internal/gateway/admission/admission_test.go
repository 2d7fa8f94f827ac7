package admission

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/stage"
	"hecate/swarm"
)

// bubble runs a test in fake time; it fails if a goroutine is left at its end.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// crowd lets clients arrive in their order, a moment apart.
func crowd(a *Admission, clients []*client) *sync.WaitGroup {
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.run(context.Background(), a) })
		time.Sleep(time.Microsecond)
	}
	return &wg
}

func many(n int, key string, cells int, hold time.Duration) (out []*client) {
	for range n {
		out = append(out, &client{need: need(key, cells), hold: hold})
	}
	return out
}

func TestRoomIsGivenAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		g, err := a.Choose(t.Context(), need("", 60))
		if err != nil || a.mu.serving || f.asked != 1 {
			t.Fatalf("%v, serving %v, asked %d", err, a.mu.serving, f.asked)
		}
		if s := a.Snapshot(); s.Running != 1 || s.Queued != 0 || s.Admitted != 1 || s.Wait.Counts[0] != 1 || s.Models[0].RunningCells != 60 {
			t.Errorf("%+v", s)
		}
		a.Release(g)
		settled(t, a, f)
	})
}

func TestRoomIsGivenInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		var cs []*client
		for i := range 8 {
			c := many(1, "k", 100, time.Second)[0]
			c.need.Job = fmt.Sprint(i)
			cs = append(cs, c)
		}
		crowd(a, cs).Wait()
		for i, c := range cs {
			if want := time.Duration(i) * time.Second; c.err != nil || c.waited.Round(time.Millisecond) != want {
				t.Errorf("client %d: %v after %s, want room after %s", i, c.err, c.waited, want)
			}
		}
		settled(t, a, f)
		if s := a.Snapshot(); s.Admitted != 8 || s.Models[0].Stay.Round(time.Millisecond) != time.Second {
			t.Errorf("%+v", s)
		}
	})
}

// One key floods; another that comes later gets every other place.
func TestKeysShareRoom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: time.Minute})
		cs := append(many(12, "a", 100, time.Second), many(4, "b", 100, time.Second)...)
		cs = append(cs, many(2, "c", 100, time.Second)...)
		crowd(a, cs).Wait()
		if got := order(cs); got != "aabcabcababaaaaaaa" && got != "aabcabcabab"+strings.Repeat("a", 7) {
			t.Errorf("granted in the order %s", got)
		}
		settled(t, a, f)
	})
}

// What counts is cells, not requests: a key with large requests gets fewer.
func TestKeysShareCells(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: time.Hour})
		cs := append(many(1, "x", 100, time.Second), many(20, "L", 90, time.Second)...)
		cs = append(cs, many(40, "s", 30, time.Second)...)
		crowd(a, cs).Wait()
		large, small := 0, 0
		for _, c := range cs[1:] {
			if c.err != nil {
				t.Fatal(c.err)
			}
		}
		granted := append([]*client{}, cs[1:]...)
		sortByTime(granted)
		for i, c := range granted {
			if large == 20*90 || small == 40*30 {
				break
			}
			if c.need.Key == "L" {
				large += 90
			} else {
				small += 30
			}
			if d := large - small; d > 180 || d < -180 {
				t.Errorf("after %d grants: %d cells for the large, %d for the small", i+1, large, small)
			}
		}
		settled(t, a, f)
	})
}

func TestPriorityIsALargerShare(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: time.Hour})
		cs := append(many(1, "x", 100, time.Second), many(10, "-", 100, time.Second)...)
		for _, c := range cs[1:] {
			c.need.Priority = -1
		}
		high := many(20, "+", 100, time.Second)
		cs = append(cs, high...)
		crowd(a, cs).Wait()
		if got, want := order(cs), "x"+strings.Repeat("++++-", 5); !strings.HasPrefix(strings.Replace(got, "x-", "x", 1), want[:1]) || shares(got, 20) != 4 {
			t.Errorf("granted in the order %s: %v of the usual per one of low priority", got, shares(got, 20))
		}
		settled(t, a, f)
	})
}

// shares is the number of + per - in the first n grants, rounded.
func shares(order string, n int) int {
	plus, minus := strings.Count(order[:n], "+"), strings.Count(order[:n], "-")
	return (plus + minus/2) / max(minus, 1)
}

// A request of the usual priority that finds only lower ones is next.
func TestPriorityGoesFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: time.Hour})
		cs := many(11, "-", 100, time.Second)
		for _, c := range cs {
			c.need.Priority = -3
		}
		wg := crowd(a, cs)
		time.Sleep(3500 * time.Millisecond)
		late := many(1, "+", 100, time.Second)
		crowd(a, late).Wait()
		wg.Wait()
		if late[0].waited > 600*time.Millisecond {
			t.Errorf("waited %s behind requests of lower priority, want 0.5 s", late[0].waited)
		}
		settled(t, a, f)
	})
}

// A request for most of the room is passed by small ones for as many cells as it
// asks for itself, and is then served although they keep coming.
func TestAHugeRequestIsNotStarved(t *testing.T) {
	for _, keys := range []int{1, 4} {
		bubble(t, func(t *testing.T) {
			f := newFake(t, 1, 100)
			a := New(f, Limits{Patience: time.Minute})
			var wg sync.WaitGroup
			huge := many(1, "huge", 95, time.Second)[0]
			var small []*client
			for i := range 400 {
				if i == 50 {
					wg.Go(func() { huge.run(t.Context(), a) })
				}
				c := many(1, fmt.Sprint(i%keys), 10, time.Second)[0]
				small = append(small, c)
				wg.Go(func() { c.run(t.Context(), a) })
				time.Sleep(90 * time.Millisecond) // more than the room is good for
			}
			wg.Wait()
			// 95 cells of others, ten each second and cell, one second to drain.
			if huge.err != nil || huge.waited > 4*time.Second {
				t.Errorf("%d keys: the huge one: %v after %s", keys, huge.err, huge.waited)
			}
			for i, c := range small {
				if c.err != nil && c.reason != WaitTooLong || c.waited > 20*time.Second {
					t.Errorf("%d keys: small request %d: %v after %s", keys, i, c.err, c.waited)
				}
			}
			settled(t, a, f)
		})
	}
}

// A request that will not find room holds others up for its patience at most.
func TestAHopelessRequestDoesNotBlockForEver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		f.occupy(0, 20) // by somebody else, for ever
		a := New(f, Limits{Patience: 10 * time.Second})
		cs := append(many(1, "h", 90, time.Second), many(12, "s", 20, 100*time.Millisecond)...)
		crowd(a, cs).Wait()
		if cs[0].reason != NoRoom || cs[0].waited != 10*time.Second {
			t.Errorf("the hopeless one: %v after %s", cs[0].err, cs[0].waited)
		}
		passed := 0
		for i, c := range cs[1:] {
			if c.err != nil {
				t.Errorf("small request %d: %v", i, c.err)
			}
			if c.waited < time.Second {
				passed++
			}
		}
		if passed != 4 {
			t.Errorf("%d of 20 cells passed one of 90, want 4", passed)
		}
		settled(t, a, f)
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Waiting: 4})
		cs := many(8, "a", 100, time.Second)
		crowd(a, cs).Wait()
		for i, c := range cs {
			if full := i > 4; full != (c.reason == QueueFull) {
				t.Errorf("client %d: %v", i, c.err)
			}
		}
		if n := a.Snapshot().Refused[QueueFull]; n != 3 {
			t.Errorf("%d refusals counted, want 3", n)
		}
		settled(t, a, f)
	})
}

// The one who fills the queue makes room for others in it.
func TestOneKeyCannotFillTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Waiting: 6})
		cs := append(many(7, "a", 100, time.Second), many(6, "b", 100, time.Second)...)
		crowd(a, cs).Wait()
		if got := order(cs); strings.Count(got, "a") != 4 || strings.Count(got, "b") != 3 {
			t.Errorf("granted: %s, want one and three of a, three of b", got)
		}
		for i, c := range cs {
			if c.err != nil && c.reason != QueueFull {
				t.Errorf("client %d: %v", i, c.err)
			}
		}
		settled(t, a, f)
	})
}

// Once it is known how long answers take, nobody waits in vain.
func TestARequestThatCannotBeServedInTimeIsRefusedEarly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 10 * time.Second})
		crowd(a, many(3, "warm", 50, 4*time.Second)).Wait()
		cs := many(20, "a", 50, 4*time.Second) // two each 4 s: those behind the seventh are late
		crowd(a, cs).Wait()
		for i, c := range cs {
			switch {
			case c.reason == WaitTooLong && c.waited == 0 && i >= 6:
			case c.err == nil && c.waited <= 10*time.Second:
			case c.reason == NoRoom && i == 6: // it would have been a close thing
			default:
				t.Errorf("client %d: %v after %s", i, c.err, c.waited)
			}
			if i < 6 && c.err != nil {
				t.Errorf("client %d would have been served: %v", i, c.err)
			}
		}
		if s := a.Snapshot(); s.Refused[NoRoom] > 1 || s.Refused[WaitTooLong] < 10 {
			t.Errorf("refused: %v", s.Refused)
		}
		settled(t, a, f)
	})
}

// The context's own deadline counts too.
func TestTheEarlierDeadlineCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		wg := crowd(a, many(1, "a", 100, 20*time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		c := many(1, "b", 100, 0)[0]
		c.run(ctx, a)
		if c.err == nil || c.waited != 5*time.Second {
			t.Errorf("%v after %s", c.err, c.waited)
		}
		wg.Wait()
		settled(t, a, f)
	})
}

// Clients that come again when they were told to are served, most at once, and
// not much later than the room allows.
func TestRetryAfterIsTrue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 10 * time.Second, MostRetry: time.Hour})
		crowd(a, many(4, "warm", 50, 4*time.Second)).Wait()
		began := time.Now()
		const n = 60
		var wg sync.WaitGroup
		tries := make([]int, n)
		for i := range n {
			wg.Go(func() {
				for {
					tries[i]++
					c := many(1, fmt.Sprint(i%3), 50, 4*time.Second)[0]
					c.run(t.Context(), a)
					if c.err == nil {
						return
					}
					if c.retry < time.Second {
						t.Errorf("told to come again after %s", c.retry)
					}
					time.Sleep(c.retry.Truncate(time.Second) + time.Second) // whole seconds, rounded up
				}
			})
			time.Sleep(time.Microsecond)
		}
		wg.Wait()
		best := n / 2 * 4 * time.Second
		sum, worst := 0, 0
		for _, k := range tries {
			sum, worst = sum+k, max(worst, k)
		}
		t.Logf("%d clients: %.2f tries on average, %d at most, %s for %s of work", n, float64(sum)/n, worst, time.Since(began).Round(time.Second), best)
		if float64(sum)/n > 2.2 || worst > 4 || time.Since(began) > best*5/4 {
			t.Error("the times told are not true")
		}
		settled(t, a, f)
	})
}

func TestNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		f.setDead(true)
		a := New(f, Limits{})
		c := many(1, "a", 50, 0)[0]
		c.run(t.Context(), a)
		if c.reason != NotReady || c.waited != 3*time.Second || !strings.Contains(c.err.Error(), "copy 0 is dead") {
			t.Errorf("%v after %s", c.err, c.waited)
		}
		time.Sleep(17 * time.Second)
		c.run(t.Context(), a)
		if c.retry != 23*time.Second {
			t.Errorf("an outage of 23 s: told to come again after %s", c.retry)
		}
		// It ends: those who wait go on at once.
		cs := many(3, "a", 50, time.Second)
		wg := crowd(a, cs)
		time.Sleep(2 * time.Second)
		f.setDead(false)
		wg.Wait()
		for i, c := range cs {
			if c.err != nil || i < 2 && c.waited.Round(time.Millisecond) != 2*time.Second {
				t.Errorf("client %d: %v after %s", i, c.err, c.waited)
			}
		}
		settled(t, a, f)
	})
}

// Those who wait for room when all copies die wait three more seconds.
func TestADeathWhileWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		wg := crowd(a, many(1, "a", 100, 20*time.Second))
		cs := many(2, "b", 50, 0)
		more := crowd(a, cs)
		time.Sleep(10 * time.Second)
		f.setDead(true)
		more.Wait()
		for _, c := range cs {
			if c.reason != NotReady || c.waited.Round(time.Second) != 13*time.Second {
				t.Errorf("%v after %s", c.err, c.waited)
			}
		}
		wg.Wait()
		settled(t, a, f)
	})
}

func TestTooLargeIsRefusedForGood(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		c := many(1, "a", 101, 0)[0]
		c.run(t.Context(), a)
		if c.reason != TooLarge || c.retry != 0 || c.waited != 0 {
			t.Errorf("%v after %s, retry %s", c.err, c.waited, c.retry)
		}
		settled(t, a, f)
	})
}

// Whoever leaves frees its place at once, wherever it was.
func TestLeaving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		wg := crowd(a, many(1, "a", 80, 20*time.Second))
		ctx, leave := context.WithCancelCause(t.Context())
		huge := many(1, "h", 100, 0)[0]
		wg.Go(func() { huge.run(ctx, a) })
		synctest.Wait()
		small := many(9, "s", 20, 3*time.Second) // five pass, four are held up by the huge one
		wg2 := crowd(a, small)
		time.Sleep(4 * time.Second)
		gone := errors.New("client gone")
		leave(gone)
		synctest.Wait()
		if !errors.Is(huge.err, gone) || a.Snapshot().Left != 1 {
			t.Errorf("%v, %d left", huge.err, a.Snapshot().Left)
		}
		for _, m := range a.Snapshot().Models {
			if m.Queued != 0 && m.QueuedCells == 0 {
				t.Errorf("%+v", m)
			}
		}
		wg2.Wait()
		for i, c := range small {
			if c.err != nil {
				t.Errorf("small request %d: %v after %s", i, c.err, c.waited)
			}
		}
		wg.Wait()
		settled(t, a, f)
	})
}

// A node that has no room after all: the answer is first in the queue, and keeps
// its token.
func TestTurnedAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		n := need("a", 60)
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		f.occupy(0, 50)
		wg := crowd(a, many(3, "b", 60, time.Second))
		time.AfterFunc(2*time.Second, func() { f.occupy(0, -50) })
		began := time.Now()
		again, kind, err := a.Rescue(t.Context(), n, g, turnedAway("n0", stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens})
		if err != nil || kind != answer.Again || again.Token != g.Token || time.Since(began) != 2*time.Second {
			t.Errorf("%v by %s, token %d for %d after %s", err, kind, again.Token, g.Token, time.Since(began))
		}
		if len(f.blamed) != 1 || a.Snapshot().Again != 1 {
			t.Errorf("blamed %v, again %d", f.blamed, a.Snapshot().Again)
		}
		a.Release(again)
		wg.Wait()
		settled(t, a, f)
	})
}

// If there is no room at all the answer ends with a refusal, and its token can
// be released as after any error.
func TestTurnedAwayForGood(t *testing.T) {
	for name, leave := range map[string]bool{"patience ends": false, "client leaves": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFake(t, 1, 100)
				a := New(f, Limits{})
				n := need("a", 60)
				g, err := a.Choose(t.Context(), n)
				if err != nil {
					t.Fatal(err)
				}
				f.occupy(0, 50)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leave {
					time.AfterFunc(time.Second, cancel)
				}
				_, _, err = a.Rescue(ctx, n, g, turnedAway("n0", stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens})
				if want := map[bool]error{false: ErrRefused, true: context.Canceled}[leave]; !errors.Is(err, want) || errors.Is(err, swarm.ErrNoRoute) {
					t.Errorf("%v, want %v", err, want)
				}
				a.Release(g)
				settled(t, a, f)
			})
		})
	}
}

// A node that has room by all accounts and refuses for ever: that ends, too.
func TestTurnedAwayTimeAndAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 10 * time.Second})
		n := need("a", 60)
		g, err := a.Choose(t.Context(), n)
		began := time.Now()
		for err == nil {
			time.Sleep(20 * time.Millisecond)
			_, _, err = a.Rescue(t.Context(), n, g, turnedAway("n0", stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens})
		}
		if d := time.Since(began); !errors.Is(err, ErrRefused) || d > 10*time.Second+20*time.Millisecond {
			t.Errorf("%v after %s", err, d)
		}
		a.Release(g)
		settled(t, a, f)
	})
}

// An answer with tokens is rescued, not sent back.
func TestRescuePassesThrough(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		n := need("a", 60)
		g, err := a.Choose(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		next, kind, err := a.Rescue(t.Context(), n, g, turnedAway("n0", stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens + 1})
		if err != nil || kind != answer.Copy || next.Token != g.Token || next.Route.PipelineID == g.Route.PipelineID {
			t.Errorf("%v by %s, %+v for %+v", err, kind, next, g)
		}
		a.Release(next)
		settled(t, a, f)
	})
}

func TestAHedgeDoesNotTakeRoomThatOthersWaitFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		n := need("a", 40)
		g, _ := a.Choose(t.Context(), n)
		twin, err := a.Around(n, g.Route, "n0")
		if err != nil || a.Snapshot().Running != 2 {
			t.Fatalf("%v, %d running", err, a.Snapshot().Running)
		}
		wg := crowd(a, many(1, "b", 80, time.Second))
		a.Release(twin)
		if _, err := a.Around(n, g.Route, "n0"); err == nil {
			t.Error("a second try although somebody waits")
		}
		a.Release(g)
		wg.Wait()
		settled(t, a, f)
	})
}

// Requests with several choices do not wait for each other's rooms.
func TestChoicesGetRoomTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		var wg sync.WaitGroup
		for r := range 5 {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				n := need(fmt.Sprint(r), 50)
				n.Request, n.Choices = fmt.Sprint("r", r), 3
				var held []answer.Grant
				for range n.Choices {
					g, err := a.Choose(ctx, n)
					if err != nil {
						t.Errorf("request %d: %v", r, err)
						return
					}
					held = append(held, g)
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Second)
				for _, g := range held {
					a.Release(g)
				}
			})
		}
		wg.Wait()
		synctest.Wait()
		settled(t, a, f)
	})
}

// What a request does not ask for is given back when it is over.
func TestUnclaimedChoicesAreForfeited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		ctx, cancel := context.WithCancel(t.Context())
		n := need("a", 50)
		n.Request, n.Choices = "r", 3
		g, err := a.Choose(ctx, n)
		if err != nil || len(f.leases) != 3 {
			t.Fatalf("%v, %d leases", err, len(f.leases))
		}
		a.Release(g)
		cancel()
		synctest.Wait()
		settled(t, a, f)
		// One that never fits is told at once, or all would wait for it.
		n.Request, n.Choices = "s", 5
		if _, err := a.Choose(t.Context(), n); !errors.Is(err, ErrRefused) {
			t.Errorf("five halves in two: %v", err)
		}
		settled(t, a, f)
	})
}

// A stand-in that takes a request over gets routes of its own, not what was set aside
// for the model that was asked for first; and keeps them when that is given back.
func TestChoicesOfAStandInAreItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 2, 100)
		a := New(f, Limits{})
		first, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		n := need("a", 20)
		n.Request, n.Choices = "r", 2
		lost, err := a.Choose(first, n)
		if err != nil {
			t.Fatal(err)
		}
		a.Release(lost)
		n.Model = "stand-in"
		for i := range n.Choices {
			g, err := a.Choose(t.Context(), n)
			if err != nil || g.Route.Model != n.Model {
				t.Fatalf("choice %d: %v on route of %q", i, err, g.Route.Model)
			}
			defer a.Release(g)
			giveUp() // what was set aside is given back as late as can be
			synctest.Wait()
		}
		if len(f.leases) != n.Choices {
			t.Errorf("%d leases for %d choices", len(f.leases), n.Choices)
		}
	})
}

// A client that never ends holds its own room, nobody else's.
func TestAStuckClientHoldsNobodyElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		g, err := a.Choose(t.Context(), need("stuck", 60))
		if err != nil {
			t.Fatal(err)
		}
		cs := many(20, "a", 20, 500*time.Millisecond)
		crowd(a, cs).Wait()
		for i, c := range cs {
			if want := time.Duration(i/2) * 500 * time.Millisecond; c.err != nil || c.waited.Round(10*time.Millisecond) != want {
				t.Errorf("client %d: %v after %s, want %s", i, c.err, c.waited, want)
			}
		}
		a.Release(g)
		settled(t, a, f)
	})
}

// Random histories: whatever happens, everybody gets exactly one outcome in
// time, room is never oversold, and nothing is left.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		bubble(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			f := newFake(t, 1+r.IntN(3), 100)
			a := New(f, Limits{Waiting: 4 + r.IntN(20), Patience: time.Duration(1+r.IntN(20)) * time.Second})
			var wg sync.WaitGroup
			for i := range 150 {
				c := many(1, fmt.Sprint(r.IntN(4)), 1+r.IntN(104), time.Duration(r.IntN(3000))*time.Millisecond)[0]
				c.need.Priority = r.IntN(9) - 4
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(3) == 0 {
					time.AfterFunc(time.Duration(r.IntN(4000))*time.Millisecond, cancel)
				}
				if r.IntN(6) == 0 {
					c.need.PromptTokens, c.need.Request, c.need.Choices = c.need.PromptTokens/3, fmt.Sprint("r", i), 2+r.IntN(3)
				}
				wg.Go(func() {
					defer cancel()
					c.run(ctx, a)
					if c.waited > a.limits.Patience {
						t.Errorf("seed %d, client %d waited %s: %v", seed, i, c.waited, c.err)
					}
				})
				if r.IntN(40) == 0 {
					f.setDead(true)
					time.AfterFunc(time.Duration(r.IntN(5000))*time.Millisecond, func() { f.setDead(false) })
				}
				time.Sleep(time.Duration(r.IntN(200)) * time.Millisecond)
			}
			wg.Wait()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			settled(t, a, f)
			checkCounts(t, a, 150)
		})
	}
}

func checkCounts(t *testing.T, a *Admission, want int64) {
	t.Helper()
	s := a.Snapshot()
	sum := s.Admitted + s.Left
	for _, reason := range Reasons() {
		n, counted := s.Refused[reason]
		if !counted {
			t.Errorf("refusals because of %s are not counted", reason)
		}
		sum += n
	}
	waits := int64(0)
	for _, n := range s.Wait.Counts {
		waits += n
	}
	// One that was granted at the very moment it left counts as both.
	if sum < want || sum > want+2 || waits != s.Admitted {
		t.Errorf("%d outcomes and %d waits of %d requests: %+v", sum, waits, want, s)
	}
}

// Who could be answered by another model does not wait for a return that others
// have waited for in vain; who asks after a long silence does, once.
func TestAStandInIsNotKeptWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{})
		ask := func(standIn bool) *client {
			c := &client{need: need("k", 10)}
			c.need.StandIn = standIn
			c.run(t.Context(), a)
			return c
		}
		f.setDead(true)
		for i, step := range []struct {
			standIn bool
			after   time.Duration // the one before
			wait    time.Duration
		}{
			{true, 0, 3 * time.Second},                          // the first one waits
			{true, 0, 0},                                        // the next ones do not
			{true, 30 * time.Second, 0},                         // nor while somebody asks now and then
			{false, 0, 3 * time.Second},                         // who has no other model waits
			{true, outageMemory + time.Second, 3 * time.Second}, // this may be another outage
		} {
			time.Sleep(step.after)
			c := ask(step.standIn)
			if c.reason != NotReady || c.waited != step.wait {
				t.Errorf("request %d: %v after %s, want not_ready after %s", i, c.err, c.waited, step.wait)
			}
		}
		f.setDead(false)
		if c := ask(true); c.err != nil {
			t.Errorf("the model is back, but: %v", c.err)
		}
		settled(t, a, f)
	})
}

// Who is next is never refused early: however long answers take, the one that runs
// may end at any moment.
func TestTheNextInTurnWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, 1, 100)
		a := New(f, Limits{Patience: 30 * time.Second})
		long, next := many(1, "a", 100, 65*time.Second), many(1, "b", 100, time.Second)
		wg := crowd(a, long)
		time.Sleep(64 * time.Second)
		crowd(a, next).Wait()
		wg.Wait()
		if next[0].err != nil || next[0].waited.Round(time.Millisecond) != time.Second {
			t.Errorf("%v after %s, want room after a second", next[0].err, next[0].waited)
		}
		settled(t, a, f)
	})
}
