package node

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/control"
	"hecate/internal/engine"
	"hecate/swarm"
)

// anyFile has every layer.
type anyFile struct{}

func (anyFile) Ready(context.Context, string, string, engine.Range) (bool, error) { return true, nil }
func (anyFile) Fetch(context.Context, string, string, engine.Range, func(int64, int64)) error {
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
