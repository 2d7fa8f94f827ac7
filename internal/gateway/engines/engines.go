package engines

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/swarm"
)

// Config of a room of engines.
type Config struct {
	Store  control.Store
	Limits Limits
	Log    *slog.Logger
	// Env reads an environment variable; nil: os.LookupEnv.
	Env func(string) (string, bool)
	// LookEvery is how often engines that are up are looked at; 0: 5 s, and 2 s
	// while something runs there.
	LookEvery time.Duration
}

// Engines is all engines of a gateway. Run follows the store; all else may be
// called from the start, by anybody.
type Engines struct {
	cfg   Config
	looks sync.WaitGroup
	any   atomic.Bool // some engine is registered

	mu struct {
		sync.Mutex
		by     map[string]*engine
		fleet  *swarm.Fleet
		router *swarm.Router
		draws  uint64
		queues map[string]*queue // by model, of those for whom somebody waits
	}
}

var dialer = &net.Dialer{Timeout: connectTime, KeepAlive: 15 * time.Second}

// New makes a room without engines.
func New(cfg Config) *Engines {
	cfg.Limits = cfg.Limits.withDefaults()
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Env == nil {
		cfg.Env = os.LookupEnv
	}
	r := &Engines{cfg: cfg}
	r.mu.by, r.mu.queues = map[string]*engine{}, map[string]*queue{}
	r.planLocked()
	return r
}

// Run keeps the engines that the store names until ctx ends.
func (r *Engines) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer r.looks.Wait()
	defer cancel()
	updates, err := r.cfg.Store.Watch(ctx, control.BucketEngines, "")
	if err != nil {
		return fmt.Errorf("watch the engines: %w", err)
	}
	for u := range updates {
		switch {
		case u.Synced:
		case u.Deleted:
			r.Remove(u.Key)
		default:
			rec := control.EngineRecord{}
			err := control.Decode(u.Value, &rec)
			if err == nil {
				err = r.Add(ctx, rec)
			}
			if err != nil {
				r.cfg.Log.Error("an engine cannot be used", "engine", u.Key, "because", err)
			}
		}
	}
	if ctx.Err() == nil {
		return errors.New("the store's watch of engines ended")
	}
	return nil
}

// Add takes an engine, in place of the one of its name, and looks after it until
// ctx ends or it is removed.
func (r *Engines) Add(ctx context.Context, rec control.EngineRecord) error {
	e, err := newEngine(rec, r.cfg.Log)
	if err != nil {
		return err
	}
	ctx, e.stop = context.WithCancel(ctx)
	r.mu.Lock()
	old := r.mu.by[rec.ID]
	if old != nil && reflect.DeepEqual(old.rec, rec) { // a store that came back tells everything again
		r.mu.Unlock()
		e.stop()
		return nil
	}
	r.mu.by[rec.ID] = e
	r.any.Store(true)
	r.planLocked()
	r.mu.Unlock()
	old.retire()
	r.looks.Go(func() { r.lookAfter(ctx, e) })
	return nil
}

// Remove takes an engine out. What runs on it goes on.
func (r *Engines) Remove(id string) {
	r.mu.Lock()
	old := r.mu.by[id]
	delete(r.mu.by, id)
	r.any.Store(len(r.mu.by) > 0)
	r.mu.fleet.MarkDead(id)
	r.planLocked()
	r.mu.Unlock()
	old.retire()
}

// retire ends what an engine does by itself; nil has nothing.
func (e *engine) retire() {
	if e == nil {
		return
	}
	if e.stop != nil {
		e.stop()
	}
	e.client.CloseIdleConnections()
}

// Any says, without a lock, whether there are engines at all.
func (r *Engines) Any() bool { return r.any.Load() }

// layer is what every model of an engine consists of, as far as routing goes.
var layer = swarm.Layers(0, 0)

// planLocked makes the pipelines anew: one of one stage for each engine and name.
func (r *Engines) planLocked() {
	if r.mu.fleet == nil {
		r.mu.fleet = swarm.NewFleet("")
	}
	plan := &swarm.Plan{}
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(r.mu.by)) {
		e := r.mu.by[id]
		state := swarm.NodeState{ID: id, Dead: e.state != up}
		for _, name := range e.names() {
			state.Fragments = append(state.Fragments, swarm.Fragment{Model: name, Layers: layer})
			plan.Pipelines = append(plan.Pipelines, swarm.Pipeline{
				ID: len(plan.Pipelines), Model: name, Stages: []swarm.Stage{{Node: id, Layers: layer}},
			})
		}
		if err := r.mu.fleet.Observe(state, now); err != nil {
			e.log.Error("an engine cannot be priced", "because", err)
		}
		r.signalLocked(e, now)
	}
	r.mu.router = swarm.NewRouter(plan, r.mu.fleet)
}

func (r *Engines) signalLocked(e *engine, now time.Time) {
	if r.mu.by[e.rec.ID] != e {
		return // another one has its name now
	}
	if err := r.mu.fleet.Signal(e.rec.ID, e.signals(now)); err != nil {
		panic("BUG: a measured signal that is refused: " + err.Error())
	}
}

// Has says that some engine serves, or served when it was last seen, a model.
func (r *Engines) Has(model string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.by {
		if e.serves(model) != "" {
			return true
		}
	}
	return false
}

// A Model is a name that clients may ask for.
type Model struct {
	ID      string
	Created time.Time // when the first of its engines was registered
	Engines []string
	Ready   bool // some engine of it is up
}

// Models lists what the engines serve, in order of id.
func (r *Engines) Models() []Model {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := map[string]*Model{}
	for _, id := range slices.Sorted(maps.Keys(r.mu.by)) {
		e := r.mu.by[id]
		for _, name := range e.names() {
			m := by[name]
			if m == nil {
				m = &Model{ID: name, Created: e.rec.Created}
				by[name] = m
			}
			if e.rec.Created.Before(m.Created) {
				m.Created = e.rec.Created
			}
			m.Engines, m.Ready = append(m.Engines, id), m.Ready || e.state == up
		}
	}
	out := make([]Model, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, *by[name])
	}
	return out
}

// Ready says that some model of some engine can be asked now.
func (r *Engines) Ready() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.by {
		if e.state == up && len(e.models) > 0 {
			return true
		}
	}
	return false
}

// Views tells how every engine is.
func (r *Engines) Views() []control.EngineView {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]control.EngineView, 0, len(r.mu.by))
	for _, e := range r.mu.by {
		out = append(out, e.view(time.Now()))
	}
	control.SortEngines(out)
	return out
}

func (e *engine) view(now time.Time) control.EngineView {
	v := control.EngineView{
		Record: e.rec, State: e.state.String(), Circuit: e.circuit.State(now).String(), Problem: e.problem,
		Models: slices.Clone(e.models), Names: e.names(), Resumes: maps.Clone(e.resumes), Running: e.running, Requests: e.requests,
		Failures: map[string]int64{}, FirstMS: e.measures.first.Value, TokenMS: e.measures.token.Value,
	}
	if now.Before(e.paused) {
		v.Paused = e.paused
	}
	for k, n := range e.failures {
		v.Failures[string(k)] = n
	}
	return v
}
