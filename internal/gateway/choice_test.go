package gateway

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/live"
	"hecate/internal/stage"
	"hecate/swarm"
)

// crew is a troupe whose model is held by two nodes, of which the first may be
// asked to give it up.
type crew struct {
	troupe
	yields   atomic.Bool
	moved    atomic.Int64
	released atomic.Int64
}

func (c *crew) Rescue(_ context.Context, n answer.Need, g answer.Grant, _ []answer.Failure, _ answer.Progress) (answer.Grant, answer.RescueKind, error) {
	c.moved.Add(1)
	g.Route.Stages = slices.Clone(g.Route.Stages)
	g.Route.Stages[0].Node = "another"
	return g, answer.Copy, nil
}

func (c *crew) Release(answer.Grant) { c.released.Add(1) }

func (c *crew) Open(ctx context.Context, node string, opening []byte, rescue bool) (answer.Session, error) {
	return c.troupe.Open(ctx, node, fresh(opening), rescue)
}

// fresh is an opening by which a node begins anew.
func fresh(opening []byte) []byte {
	o, err := stage.DecodeOpen(opening)
	if err != nil {
		panic(err)
	}
	o.Resume = false
	b, err := o.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

// begin starts a choice of some tokens whose pieces go to the returned channel.
func (c *crew) begin(t *testing.T, tokens int) (chan piece, context.CancelFunc) {
	t.Helper()
	runner := &answer.Runner{Router: c, Opener: c, Yields: func(node, _ string, _ swarm.LayerRange) bool {
		return c.yields.Load() && node == "on-big"
	}}
	ctx, cancel := context.WithCancel(t.Context())
	a, err := runner.Start(ctx, answer.Job{ID: "job", Model: "big", Layers: 4, Prompt: []int32{1, 2}, MaxTokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	ch := &choice{text: letters{}, speaker: letters{}, left: tokens, told: func(*choice) {}, pulse: &live.Pulse{}}
	ch.answer.Store(a)
	out := make(chan piece, 1)
	go ch.run(ctx, out)
	return out, cancel
}

// A client who reads nothing does not keep a node from giving its layers up, and
// has the rest of his answer when he reads on.
func TestAStalledClientHoldsNoNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crew{}
		out, cancel := c.begin(t, 10)
		defer cancel()
		text := (<-out).text
		time.Sleep(time.Minute)
		if c.moved.Load() != 0 {
			t.Fatal("it moved, though nobody asked for that")
		}
		c.yields.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := c.moved.Load(); n != 1 {
			t.Errorf("it moved %d times, want once", n)
		}
		for p := range out {
			if text += p.text; p.err != nil || p.finish != "" {
				if p.err != nil {
					t.Error(p.err)
				}
				break
			}
		}
		if text != "abcdefghij" {
			t.Errorf("got %q", text)
		}
		synctest.Wait()
		if n := c.released.Load(); n != 1 {
			t.Errorf("released %d times", n)
		}
	})
}

// One who has yet to read the end of his answer holds nobody, and neither does one
// who is gone.
func TestNobodyIsHeldForAnAnswerThatIsOver(t *testing.T) {
	for _, tokens := range []int{2, 10} {
		synctest.Test(t, func(t *testing.T) {
			c := &crew{}
			out, cancel := c.begin(t, tokens) // the second piece is the last, or waits
			time.Sleep(time.Second)
			synctest.Wait()
			if released := c.released.Load() == 1; released != (tokens == 2) {
				t.Errorf("answer of %d tokens: released %v", tokens, released)
			}
			cancel()
			synctest.Wait()
			if c.released.Load() != 1 {
				t.Errorf("answer of %d tokens, the client gone: released %d times", tokens, c.released.Load())
			}
			<-out
		})
	}
}
