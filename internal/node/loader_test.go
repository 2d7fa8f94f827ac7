package node

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/control"
	"hecate/internal/engine"
	"hecate/internal/weights"
	"hecate/swarm"
)

// anyFile has every layer.
type anyFile struct{}

func (anyFile) Ready(context.Context, string, string, engine.Range) (bool, error) { return true, nil }
func (anyFile) Fetch(context.Context, string, string, engine.Range, []engine.Range, func(int64, int64)) error {
	return nil
}
func (anyFile) Open(context.Context, string, string, engine.Range) (engine.Weights, error) {
	return nil, nil
}
func (anyFile) Tidy(*control.PlanDocument, string, time.Duration) {}

func planOf(fragments ...swarm.PlacedFragment) *control.PlanDocument {
	return &control.PlanDocument{
		Generation: 1, Epoch: 1,
		Plan: &swarm.Plan{
			Models: []swarm.ModelSpec{{ID: "m", Layers: fakeLayers, LayerBytes: []int64{1}, ContextTokens: 64}},
			Nodes:  []swarm.NodePlan{{Profile: swarm.NodeProfile{ID: "me"}, Fragments: fragments}},
		},
	}
}

func placed(first, last int) swarm.PlacedFragment {
	return swarm.PlacedFragment{Model: "m", Layers: swarm.Layers(first, last)}
}

func heldBy(e *fakeEngine) (out []swarm.LayerRange) {
	for _, f := range e.Fragments() {
		out = append(out, asRange(f.Layers))
	}
	return out
}

func TestTheLoaderApproachesThePlan(t *testing.T) {
	e := newFakeEngine(engine.Range{First: 0, Last: 3})
	l := newLoader("me", e, anyFile{}, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf(placed(2, 7)))
	if again := l.approach(context.Background()); again != 0 {
		t.Errorf("wants to try again in %s", again)
	}
	if d := cmp.Diff([]swarm.LayerRange{swarm.Layers(2, 7)}, heldBy(e)); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]engine.Range{{First: 4, Last: 7}}, e.loads); d != "" {
		t.Errorf("it loaded what it had: %s", d)
	}
}

// Where both do not fit, the old layers go first.
func TestATightBudgetUnloadsFirst(t *testing.T) {
	e := newFakeEngine(engine.Range{First: 0, Last: 3})
	e.budget = 4
	l := newLoader("me", e, anyFile{}, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf(placed(8, 11)))
	l.approach(context.Background())
	if d := cmp.Diff([]swarm.LayerRange{swarm.Layers(8, 11)}, heldBy(e)); d != "" {
		t.Error(d)
	}
}

// Layers that a session uses stay, and are tried again.
func TestBusyLayersAreUnloadedLater(t *testing.T) {
	e := newFakeEngine(engine.Range{First: 0, Last: 3})
	e.busy[1] = true
	l := newLoader("me", e, anyFile{}, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf())
	if again := l.approach(context.Background()); again != busyRetry {
		t.Errorf("tries again in %s, want %s", again, busyRetry)
	}
	e.busy[1] = false
	if again := l.approach(context.Background()); again != 0 || len(heldBy(e)) != 0 {
		t.Errorf("again %s, still holds %v", again, heldBy(e))
	}
}

func TestWithout(t *testing.T) {
	for name, c := range map[string]struct {
		cut  []swarm.LayerRange
		want []swarm.LayerRange
	}{
		"nothing":     {nil, []swarm.LayerRange{swarm.Layers(2, 9)}},
		"all":         {[]swarm.LayerRange{swarm.Layers(0, 11)}, nil},
		"the middle":  {[]swarm.LayerRange{swarm.Layers(4, 5)}, []swarm.LayerRange{swarm.Layers(2, 3), swarm.Layers(6, 9)}},
		"both ends":   {[]swarm.LayerRange{swarm.Layers(0, 2), swarm.Layers(9, 20)}, []swarm.LayerRange{swarm.Layers(3, 8)}},
		"overlapping": {[]swarm.LayerRange{swarm.Layers(3, 6), swarm.Layers(5, 8)}, []swarm.LayerRange{swarm.Layers(2, 2), swarm.Layers(9, 9)}},
	} {
		if d := cmp.Diff(c.want, without(swarm.Layers(2, 9), c.cut)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// farAway has nothing until it was fetched. A fetch waits for the gate, if there is
// one, or for its end.
type farAway struct {
	anyFile
	here    map[int]bool
	fetched []int
	fail    error
	gate    chan struct{}
	began   chan struct{} // a fetch began; nil: nobody asks
}

func (s *farAway) Ready(_ context.Context, _, _ string, r engine.Range) (bool, error) {
	for l := r.First; l <= r.Last; l++ {
		if !s.here[l] {
			return false, nil
		}
	}
	return true, nil
}

func (s *farAway) Fetch(ctx context.Context, _, _ string, r engine.Range, _ []engine.Range, progress func(int64, int64)) error {
	progress(1, 2)
	if s.began != nil {
		close(s.began)
	}
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if s.fail != nil {
		return s.fail
	}
	s.here[r.First] = true
	s.fetched = append(s.fetched, r.First)
	return nil
}

// What is on this machine is loaded first, what is not comes layer by layer.
func TestLayersAreFetchedOneByOne(t *testing.T) {
	e, src := newFakeEngine(), &farAway{here: map[int]bool{4: true, 5: true}}
	l := newLoader("me", e, src, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf(placed(3, 6)))
	if again := l.approach(context.Background()); again != 0 {
		t.Errorf("wants to try again in %s", again)
	}
	if d := cmp.Diff([]engine.Range{{First: 4, Last: 5}, {First: 3, Last: 3}, {First: 6, Last: 6}}, e.loads); d != "" {
		t.Errorf("loads: %s", d)
	}
	if d := cmp.Diff([]int{3, 6}, src.fetched); d != "" {
		t.Errorf("fetched: %s", d)
	}
	if p := l.progress(); len(p) != 0 {
		t.Errorf("still on its way: %v", p)
	}
}

// A fetch that fails is told and tried again; what could be loaded is.
func TestAFailedFetchIsToldAndTriedAgain(t *testing.T) {
	e, src := newFakeEngine(), &farAway{here: map[int]bool{0: true}, fail: fmt.Errorf("%w: 5 bytes more", weights.ErrDiskFull)}
	l := newLoader("me", e, src, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf(placed(0, 2)))
	if again := l.approach(context.Background()); again != failRetry {
		t.Errorf("tries again in %s, want %s", again, failRetry)
	}
	if d := cmp.Diff([]swarm.LayerRange{swarm.Layers(0, 0)}, heldBy(e)); d != "" {
		t.Error(d)
	}
	p := l.progress()
	if len(p) != 1 || p[0].Phase != control.LoadFailed || !strings.Contains(p[0].Error, "5 bytes more") {
		t.Errorf("told: %+v", p)
	}
	src.fail = nil
	if again := l.approach(context.Background()); again != 0 || len(heldBy(e)) != 1 {
		t.Errorf("again %s, holds %v", again, heldBy(e))
	}
	if p := l.progress(); len(p) != 0 {
		t.Errorf("still told: %+v", p)
	}
}

// A plan that wants something else does not wait for a fetch.
func TestANewPlanInterruptsAFetch(t *testing.T) {
	e, src := newFakeEngine(engine.Range{First: 0, Last: 1}), &farAway{here: map[int]bool{}, gate: make(chan struct{}), began: make(chan struct{})}
	l := newLoader("me", e, src, func() {}, slog.New(slog.DiscardHandler))
	l.follow(planOf(placed(0, 3)))
	done := make(chan time.Duration)
	go func() { done <- l.approach(context.Background()) }()
	<-src.began
	same := planOf(placed(0, 3))
	same.Generation++
	l.follow(same)
	more := planOf(placed(0, 5))
	more.Models = map[string]string{"another": "x"}
	if takesAway(same, more, "me") {
		t.Error("a plan that adds something interrupts")
	}
	other := planOf(placed(0, 0))
	other.Generation += 2
	l.follow(other)
	if again := <-done; again == 0 {
		t.Error("it does not come back to the new plan")
	}
	l.approach(context.Background())
	if d := cmp.Diff([]swarm.LayerRange{swarm.Layers(0, 0)}, heldBy(e)); d != "" {
		t.Error(d)
	}
}

// Layers of two contents of one name are never mixed: the old ones go first, when
// nobody uses them.
func TestOtherContentReplacesAModel(t *testing.T) {
	e := newFakeEngine()
	l := newLoader("me", e, anyFile{}, func() {}, slog.New(slog.DiscardHandler))
	was, is := planOf(placed(0, 3)), planOf(placed(0, 5))
	was.Models, is.Models = map[string]string{"m": "old"}, map[string]string{"m": "new"}
	l.follow(was)
	l.approach(context.Background())
	e.busy[2] = true
	l.follow(is)
	if again := l.approach(context.Background()); again != busyRetry || len(e.loads) != 1 || l.contentOf("m") != "old" {
		t.Errorf("again %s, loads %v, content %s: it mixes", again, e.loads, l.contentOf("m"))
	}
	e.busy[2] = false
	l.approach(context.Background())
	if d := cmp.Diff(engine.Range{First: 0, Last: 5}, e.loads[len(e.loads)-1]); d != "" || l.contentOf("m") != "new" {
		t.Errorf("%s, content %s", d, l.contentOf("m"))
	}
}
