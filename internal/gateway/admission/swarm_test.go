package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/control"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/internal/stage"
	"hecate/swarm"
)

// realSwarm is the real dispatcher over imagined nodes, each a whole copy.
type realSwarm struct {
	*dispatch.Dispatcher
	nodes    int
	cells    int
	sequence uint64
	dead     map[string]bool
}

func newRealSwarm(nodes, cells int) *realSwarm {
	s := &realSwarm{Dispatcher: dispatch.New(dispatch.Config{}), nodes: nodes, cells: cells, dead: map[string]bool{}}
	s.SetPlan(s.plan(nodes))
	s.report()
	return s
}

// plan has copies on the first n nodes.
func (s *realSwarm) plan(n int) *swarm.Plan {
	p := &swarm.Plan{Models: []swarm.ModelSpec{{ID: "m", Layers: 1}}}
	for i := range n {
		p.Pipelines = append(p.Pipelines, swarm.Pipeline{ID: i, Model: "m", Stages: []swarm.Stage{{Node: fmt.Sprint("n", i), Layers: swarm.Layers(0, 0)}}})
	}
	return p
}

func (s *realSwarm) report() {
	s.sequence++
	v := &control.View{Nodes: map[string]swarm.NodeState{}}
	for i := range s.nodes {
		id := fmt.Sprint("n", i)
		m := control.Member{ID: id, Status: control.StatusAlive, Heard: time.Now()}
		if s.dead[id] {
			m.Status = control.StatusDead
		}
		state := swarm.NodeState{ID: id, LatencyMS: swarm.Measured(5), Load: swarm.Measured(0), Score: swarm.Measured(10),
			Fragments: []swarm.Fragment{{Model: "m", Layers: swarm.Layers(0, 0)}}, Dead: s.dead[id]}
		// What others hold is nothing: free is what our own leases leave, or more.
		m.Health = &control.Health{Node: id, Incarnation: 1, Sequence: s.sequence, State: state, Cells: s.cells, FreeCells: s.cells}
		v.Members, v.Nodes[id] = append(v.Members, m), state
	}
	s.SetView(v)
}

// 64 long prompts at once over eight equal copies spread evenly: all of them
// where there is room for all, else as many as there is room for, and the rest
// follow.
func TestABurstSpreadsOverCopies(t *testing.T) {
	for _, c := range []struct{ cells, each int }{{16000, 8}, {8000, 6}} {
		bubble(t, func(t *testing.T) {
			s := newRealSwarm(8, c.cells)
			a := New(s, Limits{})
			var mu sync.Mutex
			at := map[string]int{}
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					g, err := a.Choose(t.Context(), need("", 1100))
					if err != nil {
						t.Error(err)
						return
					}
					node := g.Route.Stages[0].Node
					mu.Lock()
					if at[node]++; at[node] > c.each {
						t.Errorf("%d at once on %s", at[node], node)
					}
					mu.Unlock()
					time.Sleep(5 * time.Second)
					mu.Lock()
					at[node]--
					mu.Unlock()
					a.Release(g)
				})
			}
			synctest.Wait()
			if snap := a.Snapshot(); snap.Running != 8*c.each || snap.Queued != 64-8*c.each {
				t.Errorf("%d running, %d queued; want %d and the rest", snap.Running, snap.Queued, 8*c.each)
			}
			mu.Lock()
			for i := range 8 {
				if n := at[fmt.Sprint("n", i)]; n != c.each {
					t.Errorf("%d on n%d, want %d", n, i, c.each)
				}
			}
			mu.Unlock()
			wg.Wait()
			if snap := a.Snapshot(); snap.Running != 0 || snap.Queued != 0 {
				t.Errorf("left over: %+v", snap)
			}
		})
	}
}

// A new plan and a death, while requests wait: nobody is forgotten.
func TestPlansAndDeathsWhileRequestsWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(3, 800)
		s.SetPlan(s.plan(1))
		s.dead["n1"], s.dead["n2"] = true, true
		s.report()
		a := New(s, Limits{})
		first := many(1, "a", 700, 8*time.Second)
		wg := crowd(a, first)
		cs := many(3, "b", 600, time.Second)
		more := crowd(a, cs)
		time.Sleep(2 * time.Second)
		s.dead["n1"] = false // alive, planned by nobody
		s.SetPlan(s.plan(2))
		s.report()
		more.Wait()
		for i, c := range cs {
			if want := time.Duration(2+i) * time.Second; c.err != nil || c.waited.Round(10*time.Millisecond) != want {
				t.Errorf("client %d: %v after %s, want %s", i, c.err, c.waited, want)
			}
		}
		s.dead["n0"], s.dead["n1"] = true, true
		s.report()
		late := many(1, "c", 600, 0)
		crowd(a, late).Wait()
		if late[0].reason != NotReady || !errors.Is(late[0].err, ErrRefused) {
			t.Errorf("all copies dead: %v", late[0].err)
		}
		wg.Wait()
		if snap := a.Snapshot(); snap.Running != 0 || snap.Queued != 0 {
			t.Errorf("left over: %+v", snap)
		}
	})
}

// Nodes free cells a moment after an answer ended, and refuse until then: the
// answers that come too early go round again, and none is lost.
func TestNodesThatFreeLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newRealSwarm(2, 800)
		a := New(s, Limits{})
		late := &lateNodes{free: map[string]int{"n0": 800, "n1": 800}}
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				n := need(fmt.Sprint(i%3), 340)
				g, err := a.Choose(t.Context(), n)
				for err == nil && !late.take(g.Route.Stages[0].Node, 340) {
					g, _, err = a.Rescue(t.Context(), n, g, turnedAway(g.Route.Stages[0].Node, stage.CodeNoCells), answer.Progress{Tokens: n.PromptTokens})
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				late.give(g.Route.Stages[0].Node, 340)
				a.Release(g)
			})
		}
		done := make(chan struct{})
		go func() { // health, each second
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Second):
					s.report()
				}
			}
		}()
		began := time.Now()
		wg.Wait()
		close(done)
		snap := a.Snapshot()
		t.Logf("60 answers of 1 s, four at once, in %s; %d were sent back", time.Since(began).Round(10*time.Millisecond), snap.Again)
		if snap.Again == 0 || time.Since(began) > 20*time.Second {
			t.Errorf("%d sent back, done after %s", snap.Again, time.Since(began))
		}
		if snap.Running != 0 || snap.Queued != 0 {
			t.Errorf("left over: %+v", snap)
		}
		time.Sleep(2 * time.Second) // for the dispatcher's last timer
	})
}

// lateNodes free cells 5 ms after they were told to.
type lateNodes struct {
	mu   sync.Mutex
	free map[string]int
}

func (l *lateNodes) take(node string, cells int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free[node] < cells {
		return false
	}
	l.free[node] -= cells
	return true
}

func (l *lateNodes) give(node string, cells int) {
	time.AfterFunc(5*time.Millisecond, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.free[node] += cells
	})
}

// What waiting costs everybody else: one pass over a full queue without room.
func BenchmarkPass(b *testing.B) {
	s := newRealSwarm(8, 800)
	a := New(s, Limits{Patience: time.Hour})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 8 {
		if _, err := a.Choose(ctx, need("", 700)); err != nil {
			b.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 256 {
		wg.Go(func() { _, _ = a.Choose(ctx, need(fmt.Sprint(i%7), 300+i)) })
	}
	for a.Snapshot().Queued < 256 {
		time.Sleep(time.Millisecond)
	}
	for b.Loop() {
		a.mu.Lock()
		a.passLocked(a.mu.queues["m"], time.Now())
		a.mu.Unlock()
	}
	cancel()
	wg.Wait()
}

// What admission adds to a request that finds room.
func BenchmarkThrough(b *testing.B) {
	s := newRealSwarm(8, 8000)
	a := New(s, Limits{})
	n := need("k", 100)
	for b.Loop() {
		g, err := a.Choose(context.Background(), n)
		if err != nil {
			b.Fatal(err)
		}
		a.Release(g)
	}
}

func BenchmarkDispatcherAlone(b *testing.B) {
	s := newRealSwarm(8, 8000)
	n := need("k", 100)
	for b.Loop() {
		g, err := s.Choose(context.Background(), n)
		if err != nil {
			b.Fatal(err)
		}
		s.Release(g)
	}
}
