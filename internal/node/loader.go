package node

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/engine"
	"hecate/internal/weights"
	"hecate/swarm"
)

// Source has the weights of a model's layers, or brings them. The model's
// content has the given hash.
type Source interface {
	// Ready says whether the layers are on this machine.
	Ready(ctx context.Context, model, hash string, layers engine.Range) (bool, error)
	// Fetch brings them. What came before an error stays. then are ranges of
	// the model that are fetched next.
	Fetch(ctx context.Context, model, hash string, layers engine.Range, then []engine.Range, progress func(done, total int64)) error
	// Open gives layers that are ready.
	Open(ctx context.Context, model, hash string, layers engine.Range) (engine.Weights, error)
	// Tidy removes what the plan has not wanted here for so long.
	Tidy(doc *control.PlanDocument, node string, after time.Duration)
}

const (
	busyRetry = 500 * time.Millisecond // a session uses a layer that is to go
	failRetry = 2 * time.Second        // a layer could not be had
	noteEvery = 200 * time.Millisecond // progress is told
	tidyEvery = 30 * time.Second
)

// loader works towards the plan: it fetches and loads what is missing and unloads
// what is too much, and starts over whenever the plan changes or something did not
// work. It depends on no single message.
type loader struct {
	node    string
	engine  engine.Engine
	source  Source
	keep    time.Duration // how long weights stay on disk that nobody wants
	changed func()        // called when what is held, or the progress, changed
	log     *slog.Logger

	mu struct {
		sync.Mutex
		plan    *control.PlanDocument
		loading map[fragmentKey]control.Loading
		content map[string]string      // of what is loaded: hash by model
		said    map[fragmentKey]string // the last failure that was logged
		stop    context.CancelFunc     // ends the fetch that runs; nil: none does
	}
	wake chan struct{}
}

func newLoader(node string, e engine.Engine, src Source, changed func(), log *slog.Logger) *loader {
	l := &loader{node: node, engine: e, source: src, changed: changed, log: log, wake: make(chan struct{}, 1)}
	l.mu.loading, l.mu.content, l.mu.said = map[fragmentKey]control.Loading{}, map[string]string{}, map[fragmentKey]string{}
	return l
}

// follow takes a newer plan. One that takes something away from this node
// interrupts a fetch: unloading does not wait for it, and it goes on where it was,
// if it is wanted still.
func (l *loader) follow(doc *control.PlanDocument) {
	l.mu.Lock()
	old := l.mu.plan
	l.mu.plan = doc
	if l.mu.stop != nil && takesAway(old, doc, l.node) {
		l.mu.stop()
	}
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// takesAway says that a node was wanted to hold what it is not any more.
func takesAway(old, doc *control.PlanDocument, node string) bool {
	want := doc.Wanted(node)
	return slices.ContainsFunc(old.Wanted(node), func(f swarm.Fragment) bool {
		return doc.Models[f.Model] != old.Models[f.Model] || len(without(f.Layers, rangesOf(want, f.Model))) > 0
	})
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
	tidy := time.NewTicker(tidyEvery)
	defer tidy.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
		case <-timer.C:
		case <-tidy.C:
			if doc := l.plan(); doc != nil {
				l.source.Tidy(doc, l.node, l.keep)
			}
			continue
		}
		if again := l.approach(ctx); again > 0 {
			timer.Reset(again)
		}
	}
}

// approach takes every step towards the plan that can be taken now: first what is
// on this machine, then what has to come from elsewhere. It says when to try
// again, 0 when nothing is left to do.
func (l *loader) approach(ctx context.Context) (again time.Duration) {
	doc := l.plan()
	if doc == nil {
		return 0
	}
	if !l.shedStale(doc) {
		again = busyRetry
	}
	want := doc.Wanted(l.node)
	l.forgetUnwanted(want)
	missing := l.missing(doc, want)
	var absent []swarm.Fragment
	for _, m := range missing {
		ready, rest, err := l.sort(ctx, doc, m)
		if err != nil {
			l.failed(ctx, m, err)
			again = failRetry
			continue
		}
		absent = append(absent, rest...)
		for _, r := range ready {
			if ctx.Err() != nil || l.plan() != doc {
				return time.Nanosecond
			}
			if l.loadOrShed(ctx, doc, r, want) != nil {
				again = failRetry
			}
		}
	}
	for i, f := range absent {
		if ctx.Err() != nil || l.plan() != doc {
			return time.Nanosecond
		}
		err := l.fetch(ctx, doc, f, nextOf(f.Model, absent[i+1:]))
		if err == nil {
			err = l.loadOrShed(ctx, doc, f, want)
		}
		if err != nil {
			again = failRetry
		}
		if errors.Is(err, weights.ErrDiskFull) {
			break // the others would not fit either
		}
	}
	if again == 0 && !l.shed(want) {
		again = busyRetry
	}
	return again
}

// missing is what is wanted and not loaded, but for models of which other content
// is still loaded.
func (l *loader) missing(doc *control.PlanDocument, want []swarm.Fragment) []swarm.Fragment {
	return slices.DeleteFunc(subtract(want, l.engine.Fragments()), func(f swarm.Fragment) bool {
		old := l.contentOf(f.Model)
		return old != "" && old != doc.Models[f.Model]
	})
}

// shedStale unloads layers whose model has other content now: a model is never
// mixed from two. It says whether all of that is gone.
func (l *loader) shedStale(doc *control.PlanDocument) bool {
	gone := true
	for model, old := range l.contents() {
		left := slices.DeleteFunc(l.engine.Fragments(), func(f engine.Fragment) bool { return f.Model != model })
		if now, known := doc.Models[model]; known && now != old {
			left = slices.DeleteFunc(left, func(f engine.Fragment) bool {
				return l.engine.UnloadLayers(context.Background(), model, f.Layers) == nil
			})
			gone = gone && len(left) == 0
		}
		if len(left) == 0 {
			l.contains(model, "")
		}
	}
	return gone
}

// contents is what is loaded: hash by model.
func (l *loader) contents() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.mu.content)
}

// contains notes what is loaded of a model; "": nothing.
func (l *loader) contains(model, hash string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.content[model] = hash; hash == "" {
		delete(l.mu.content, model)
	}
}

// sort splits a range into runs that are on this machine, and single layers that
// are not.
func (l *loader) sort(ctx context.Context, doc *control.PlanDocument, f swarm.Fragment) (ready, absent []swarm.Fragment, err error) {
	for i := f.Layers.First; i <= f.Layers.Last; i++ {
		here, err := l.source.Ready(ctx, f.Model, doc.Models[f.Model], engine.Range{First: i, Last: i})
		switch n := len(ready); {
		case err != nil:
			return nil, nil, err
		case !here:
			absent = append(absent, swarm.Fragment{Model: f.Model, Layers: swarm.Layers(i, i)})
		case n > 0 && ready[n-1].Layers.Last == i-1:
			ready[n-1].Layers.Last = i
		default:
			ready = append(ready, swarm.Fragment{Model: f.Model, Layers: swarm.Layers(i, i)})
		}
	}
	return ready, absent, nil
}

// nextLayers is how far ahead the way to layers is asked for.
const nextLayers = 8

// nextOf are the next layers of a model among what has to come from elsewhere.
func nextOf(model string, absent []swarm.Fragment) (out []engine.Range) {
	for _, f := range absent {
		if f.Model == model && len(out) < nextLayers {
			out = append(out, engine.Range{First: f.Layers.First, Last: f.Layers.Last})
		}
	}
	return out
}

// fetch brings one layer to this machine. then are those that follow.
func (l *loader) fetch(ctx context.Context, doc *control.PlanDocument, f swarm.Fragment, then []engine.Range) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !l.interruptible(doc, cancel) {
		return context.Canceled
	}
	defer l.interruptible(nil, nil)
	state := control.Loading{Model: f.Model, Layers: f.Layers, Phase: control.LoadFetching}
	l.note(state)
	began, told := time.Now(), time.Time{}
	err := l.source.Fetch(ctx, f.Model, doc.Models[f.Model], engine.Range{First: f.Layers.First, Last: f.Layers.Last}, then, func(done, total int64) {
		if state.Done, state.Total = done, total; time.Since(told) >= noteEvery {
			told = time.Now()
			l.note(state)
		}
	})
	if errors.Is(err, weights.ErrDiskFull) {
		l.source.Tidy(doc, l.node, 0)
	}
	if err != nil {
		l.failed(ctx, f, err)
		return err
	}
	l.log.Info("layers fetched", "model", f.Model, "layers", f.Layers.String(), "bytes", state.Total, "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// interruptible lets a newer plan end a fetch (nil: no more). It says whether there is
// no newer one yet.
func (l *loader) interruptible(doc *control.PlanDocument, stop context.CancelFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.stop = stop
	return l.mu.plan == doc
}

// loadOrShed loads, and makes room first where that is the only way.
func (l *loader) loadOrShed(ctx context.Context, doc *control.PlanDocument, f swarm.Fragment, want []swarm.Fragment) error {
	err := l.load(ctx, doc, f)
	if errors.Is(err, engine.ErrOverBudget) && l.shed(want) {
		err = l.load(ctx, doc, f)
	}
	if err != nil {
		l.failed(ctx, f, err)
	}
	return err
}

// load brings a range that is on this machine into memory.
func (l *loader) load(ctx context.Context, doc *control.PlanDocument, f swarm.Fragment) error {
	layers, hash := engine.Range{First: f.Layers.First, Last: f.Layers.Last}, doc.Models[f.Model]
	state := control.Loading{Model: f.Model, Layers: f.Layers, Phase: control.LoadLoading}
	l.note(state)
	w, err := l.source.Open(ctx, f.Model, hash, layers)
	if err != nil {
		return err
	}
	l.contains(f.Model, hash)
	err = l.engine.LoadLayers(ctx, engine.LoadRequest{Model: f.Model, Path: f.Model, Weights: w, Layers: layers, Cells: cellsOf(doc, f.Model)}, func(p engine.Progress) {
		state.Done, state.Total = p.Done, p.Total
		l.note(state)
	})
	if err != nil {
		return err
	}
	l.forget(state)
	l.log.Info("layers loaded", "model", f.Model, "layers", f.Layers.String())
	return nil
}

// contentOf is the hash of what is loaded of a model.
func (l *loader) contentOf(model string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.content[model]
}

// failed tells why a range is not there yet, unless it was we who gave up.
func (l *loader) failed(ctx context.Context, f swarm.Fragment, err error) {
	state := control.Loading{Model: f.Model, Layers: f.Layers, Phase: control.LoadFailed, Error: err.Error()}
	if ctx.Err() != nil {
		l.forget(state)
		return
	}
	if l.news(f, state.Error) {
		l.log.Error("layers were not loaded", "model", f.Model, "layers", f.Layers.String(), "because", err)
	}
	l.note(state)
}

// news says that this was not the last thing said about a range: what is tried
// again and again fails in one line.
func (l *loader) news(f swarm.Fragment, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := keyOfRange(f.Model, f.Layers)
	said := l.mu.said[key]
	l.mu.said[key] = text
	return said != text
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
	delete(l.mu.said, keyOfRange(s.Model, s.Layers))
	l.mu.Unlock()
	l.changed()
}

// forgetUnwanted drops news of ranges that the plan does not want any more, or
// wants in other pieces.
func (l *loader) forgetUnwanted(want []swarm.Fragment) {
	held := l.engine.Fragments()
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, s := range l.mu.loading {
		open := subtract([]swarm.Fragment{{Model: s.Model, Layers: s.Layers}}, held)
		if len(open) == 0 || len(without(s.Layers, rangesOf(want, s.Model))) > 0 {
			delete(l.mu.loading, key)
		}
	}
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
