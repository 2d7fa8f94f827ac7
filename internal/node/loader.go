package node

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/engine"
	"hecate/swarm"
)

// Source finds a file with the tensors of some layers of a model.
type Source interface {
	// Path gives a GGUF file, whole or shard, that has the layers, fetching it
	// if need be. The model's content has the given hash.
	Path(ctx context.Context, model, hash string, layers engine.Range) (string, error)
}

const (
	busyRetry = 500 * time.Millisecond // a session uses a layer that is to go
	failRetry = 2 * time.Second        // a layer could not be had
)

// loader works towards the plan: it loads what is missing and unloads what is
// too much, layer range by layer range, and starts over whenever the plan
// changes or something did not work. It depends on no single message.
type loader struct {
	node    string
	engine  engine.Engine
	source  Source
	changed func() // called when what is held, or the progress, changed
	log     *slog.Logger

	mu struct {
		sync.Mutex
		plan    *control.PlanDocument
		loading map[fragmentKey]control.Loading
	}
	wake chan struct{}
}

func newLoader(node string, e engine.Engine, src Source, changed func(), log *slog.Logger) *loader {
	l := &loader{node: node, engine: e, source: src, changed: changed, log: log, wake: make(chan struct{}, 1)}
	l.mu.loading = map[fragmentKey]control.Loading{}
	return l
}

// follow takes a newer plan.
func (l *loader) follow(doc *control.PlanDocument) {
	l.mu.Lock()
	l.mu.plan = doc
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *loader) plan() *control.PlanDocument {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.plan
}

// run works until ctx ends.
func (l *loader) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		}
		if again := l.approach(ctx); again > 0 {
			timer.Reset(again)
		}
	}
}

// approach takes every step towards the plan that can be taken now. It says
// when to try again, 0 when nothing is left to do.
func (l *loader) approach(ctx context.Context) (again time.Duration) {
	doc := l.plan()
	if doc == nil {
		return 0
	}
	want := doc.Wanted(l.node)
	missing := subtract(want, l.engine.Fragments())
	for _, m := range missing {
		if ctx.Err() != nil || l.plan() != doc {
			return time.Nanosecond
		}
		err := l.load(ctx, doc, m)
		if errors.Is(err, engine.ErrOverBudget) && l.shed(want) {
			err = l.load(ctx, doc, m)
		}
		if err != nil {
			again = failRetry
		}
	}
	if again == 0 && !l.shed(want) {
		again = busyRetry
	}
	return again
}

// load brings one missing range.
func (l *loader) load(ctx context.Context, doc *control.PlanDocument, f swarm.Fragment) error {
	layers := engine.Range{First: f.Layers.First, Last: f.Layers.Last}
	state := control.Loading{Model: f.Model, Layers: f.Layers, Phase: control.LoadFetching}
	l.note(state)
	path, err := l.source.Path(ctx, f.Model, doc.Models[f.Model], layers)
	if err == nil {
		state.Phase = control.LoadLoading
		err = l.engine.LoadLayers(ctx, engine.LoadRequest{Model: f.Model, Path: path, Layers: layers, Cells: cellsOf(doc, f.Model)}, func(p engine.Progress) {
			state.Done, state.Total = p.Done, p.Total
			l.note(state)
		})
	}
	if err != nil && ctx.Err() == nil {
		state.Phase, state.Error = control.LoadFailed, err.Error()
		l.log.Error("layers were not loaded", "model", f.Model, "layers", f.Layers.String(), "because", err)
		l.note(state)
		return err
	}
	l.forget(state)
	l.log.Info("layers loaded", "model", f.Model, "layers", f.Layers.String())
	return err
}

// cellsOf is the room for tokens that the plan reserved with each layer.
func cellsOf(doc *control.PlanDocument, model string) int {
	spec, _ := doc.Plan.Model(model)
	return spec.ContextTokens
}

// shed unloads what the plan does not give this node (any more). It says
// whether all of that is gone.
func (l *loader) shed(want []swarm.Fragment) bool {
	gone := true
	for _, f := range l.engine.Fragments() {
		for _, r := range without(asRange(f.Layers), rangesOf(want, f.Model)) {
			err := l.engine.UnloadLayers(context.Background(), f.Model, engine.Range{First: r.First, Last: r.Last})
			if err != nil {
				gone = false
				continue
			}
			l.log.Info("layers unloaded", "model", f.Model, "layers", r.String())
			l.changed()
		}
	}
	return gone
}

func (l *loader) note(s control.Loading) {
	l.mu.Lock()
	l.mu.loading[keyOfRange(s.Model, s.Layers)] = s
	l.mu.Unlock()
	l.changed()
}

func (l *loader) forget(s control.Loading) {
	l.mu.Lock()
	delete(l.mu.loading, keyOfRange(s.Model, s.Layers))
	l.mu.Unlock()
	l.changed()
}

// progress lists what is on its way.
func (l *loader) progress() []control.Loading {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []control.Loading
	for _, s := range l.mu.loading {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b control.Loading) int { return a.Layers.First - b.Layers.First })
	return out
}
