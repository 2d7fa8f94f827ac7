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
