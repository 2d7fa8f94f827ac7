package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/internal/stage"
	"hecate/swarm"
)

// fakeDispatcher is a swarm of equal one-node copies.
type fakeDispatcher struct {
	t testing.TB

	mu      sync.Mutex
	total   int   // cells per copy
	free    []int // by copy
	dead    bool
	leases  map[uint64]fakeLease
	next    uint64
	changed chan struct{}
	asked   int
	blamed  []answer.Failure
	most    int // leases at once, so far
}

type fakeLease struct{ copy, cells int }

func newFake(t testing.TB, copies, cells int) *fakeDispatcher {
	f := &fakeDispatcher{t: t, total: cells, leases: map[uint64]fakeLease{}, changed: make(chan struct{})}
	for range copies {
		f.free = append(f.free, cells)
	}
	return f
}

func (f *fakeDispatcher) Choose(_ context.Context, n answer.Need) (answer.Grant, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	need := n.Room()
	switch {
	case f.dead:
		return answer.Grant{}, fmt.Errorf("copy 0 is dead: %w", swarm.ErrNoRoute)
	case need > f.total:
		return answer.Grant{}, fmt.Errorf("%d cells: %w: %w", need, dispatch.ErrTooLarge, swarm.ErrNoRoute)
	}
	best := 0
	for i, free := range f.free {
		if free > f.free[best] {
			best = i
		}
	}
	if f.free[best] < need {
		return answer.Grant{}, fmt.Errorf("%w: %w", dispatch.ErrFull, swarm.ErrNoRoute)
	}
	f.free[best] -= need
	f.next++
	f.leases[f.next] = fakeLease{best, need}
	f.most = max(f.most, len(f.leases))
	route := swarm.Route{Model: n.Model, PipelineID: best, Stages: []swarm.Stage{{Node: fmt.Sprint("n", best)}}}
	return answer.Grant{Route: route, Token: f.next}, nil
}

func (f *fakeDispatcher) ChooseAll(ctx context.Context, n answer.Need) ([]answer.Grant, error) {
	var grants []answer.Grant
	for i := range max(1, n.Choices) {
		g, err := f.Choose(ctx, n)
		if err != nil {
			f.mu.Lock()
			defer f.mu.Unlock()
			for _, g := range grants {
				l := f.leases[g.Token]
				delete(f.leases, g.Token)
				f.free[l.copy] += l.cells
			}
			if i > 0 && errors.Is(err, dispatch.ErrFull) {
				err = fmt.Errorf("%w: %w", dispatch.ErrNotTogether, err)
			}
			return nil, err
		}
		grants = append(grants, g)
	}
	return grants, nil
}

func (f *fakeDispatcher) Release(g answer.Grant) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l, ok := f.leases[g.Token]
	if !ok {
		f.t.Error("released twice")
	}
	delete(f.leases, g.Token)
	f.free[l.copy] += l.cells
	f.wakeLocked()
}

func (f *fakeDispatcher) wakeLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeDispatcher) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fakeDispatcher) setDead(dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.dead = dead
	f.wakeLocked()
}

// occupy takes cells of a copy that no lease accounts for.
func (f *fakeDispatcher) occupy(copy, cells int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free[copy] -= cells
	f.wakeLocked()
}

func (f *fakeDispatcher) Crowd()                                                {}
func (f *fakeDispatcher) Expected(string) map[string]dispatch.Growth            { return nil }
func (f *fakeDispatcher) ExpectAfar(string, string, map[string]dispatch.Growth) {}

func (f *fakeDispatcher) Blame(_ answer.Need, failed []answer.Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.blamed = append(f.blamed, failed...)
}

func (f *fakeDispatcher) Rescue(ctx context.Context, n answer.Need, g answer.Grant, _ []answer.Failure, _ answer.Progress) (answer.Grant, answer.RescueKind, error) {
	next, err := f.Choose(ctx, n)
	if err != nil {
		return answer.Grant{}, "", err
	}
	f.Release(g)
	return next, answer.Copy, nil
}

func (f *fakeDispatcher) Around(n answer.Need, _ swarm.Route, _ string) (answer.Grant, error) {
	return f.Choose(context.Background(), n)
}

func (f *fakeDispatcher) Standby(answer.Need, swarm.Route, int) (answer.Standby, error) {
	return answer.Standby{}, dispatch.ErrNoStandby
}
func (f *fakeDispatcher) Dismiss(uint64) {}

func (f *fakeDispatcher) Widen(uint64, answer.Need) bool { return false }

func (f *fakeDispatcher) Grow(_ context.Context, n answer.Need, g answer.Grant) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.leases[g.Token]
	more := n.Room() - l.cells
	if f.free[l.copy] < more {
		return fmt.Errorf("%w: %w", dispatch.ErrFull, swarm.ErrNoRoute)
	}
	f.free[l.copy] -= more
	l.cells += more
	f.leases[g.Token] = l
	return nil
}

func (f *fakeDispatcher) Observe(string, answer.Sample)                {}
func (f *fakeDispatcher) Patience(string, int, int) time.Duration      { return time.Second }
func (f *fakeDispatcher) Usual(string, int, int) (time.Duration, bool) { return 0, false }
func (f *fakeDispatcher) Alive(string) context.Context                 { return context.Background() }

// settled checks that nothing is left of all that went on.
func settled(t *testing.T, a *Admission, f *fakeDispatcher) {
	t.Helper()
	synctest.Wait()
	s := a.Snapshot()
	if s.Running != 0 || s.Queued != 0 || len(a.mu.tickets) != 0 || len(a.mu.claims) != 0 {
		t.Errorf("left over: %d running, %d queued, %d tickets, %d claims", s.Running, s.Queued, len(a.mu.tickets), len(a.mu.claims))
	}
	if len(f.leases) != 0 {
		t.Errorf("left over: leases %v", f.leases)
	}
	for _, m := range s.Models {
		if m.RunningCells != 0 || m.QueuedCells != 0 {
			t.Errorf("left over: %+v", m)
		}
	}
	for _, q := range a.mu.queues {
		if len(q.fair.flows) != 0 || q.pace.born != 0 {
			t.Errorf("left over: flows %v, born %v", q.fair.flows, q.pace.born)
		}
	}
	if a.mu.serving {
		t.Error("the goroutine runs although nobody waits")
	}
}

func need(key string, cells int) answer.Need {
	return answer.Need{Model: "m", Layers: 1, PromptTokens: cells - 1, OutputTokens: 1, Caller: answer.Caller{Key: key}}
}

// client asks for room and holds it for a time; then what came of it is noted.
type client struct {
	need   answer.Need
	hold   time.Duration
	waited time.Duration
	at     time.Time // of the grant or refusal
	err    error
	reason Reason
	retry  time.Duration
}

func (c *client) run(ctx context.Context, a *Admission) {
	began := time.Now()
	g, err := a.Choose(ctx, c.need)
	c.at, c.err, c.waited = time.Now(), err, time.Since(began)
	var r *Refusal
	if errors.As(err, &r) {
		c.reason, c.retry = r.Reason, r.Retry
	}
	if err != nil {
		return
	}
	time.Sleep(c.hold) // in fake time
	a.Release(g)
}

// order is when which key was granted, as a string of keys.
func order(clients []*client) string {
	granted := []*client{}
	for _, c := range clients {
		if c.err == nil {
			granted = append(granted, c)
		}
	}
	sortByTime(granted)
	out := ""
	for _, c := range granted {
		out += c.need.Key
	}
	return out
}

func sortByTime(cs []*client) {
	for i := 1; i < len(cs); i++ {
		for j := i; j > 0 && cs[j].at.Before(cs[j-1].at); j-- {
			cs[j], cs[j-1] = cs[j-1], cs[j]
		}
	}
}

func turnedAway(node string, code stage.Code) []answer.Failure {
	return []answer.Failure{{Node: node, Kind: answer.Refused, Err: &stage.Error{Code: code}}}
}
