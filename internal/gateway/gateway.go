// Package gateway is the swarm's front door: HTTP in, answers out. It wires the
// rooms below it and holds no rules of its own: routes are dispatch's and
// swarm's, answers are answer's, shapes are openai's.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/keys"
	"hecate/internal/event"
	"hecate/internal/gateway/admission"
	"hecate/internal/gateway/answer"
	"hecate/internal/gateway/dispatch"
	"hecate/internal/gateway/engines"
	"hecate/internal/gateway/live"
	"hecate/internal/metrics"
	"hecate/internal/web"
	"hecate/pool"
	"hecate/swarm"
)

// Config is what a gateway is made of.
type Config struct {
	Name       string // this gateway's id in the swarm
	Version    string
	AllowHosts []string // host names besides loopback that requests may name
	AllowChaos bool
	Links      Links         // to fail on command, with AllowChaos; nil: none can
	RequireKey bool          // API keys are asked for; without, anybody who reaches the listener may ask
	Memory     int64         // bytes for boundary states over all answers; 0: 1 GiB
	Limits     answer.Limits // of recovery; zero values mean the defaults
	Queues     admission.Limits

	Store      control.Store
	Membership *control.Membership
	Pool       *pool.Pool
	Bus        control.Bus
	Reverse    func() []string                                       // where nodes connect that cannot be reached; nil: nowhere
	Knock      func(ctx context.Context, node, address string) error // tries a node's data port; nil: who is out of reach stays so
	Files      func(*control.ModelRecord) (string, error)            // where a model's GGUF is on this machine
	Sent       func() map[string]int64                               // bytes of weights that left this gateway, by content hash; nil: none do
	Events     *event.Stream                                         // where what happens is told; nil: one of its own
	// Administrator says that a token is the operator's; nil: nobody administers over HTTP.
	Administrator func(token string) bool
	Log           *slog.Logger
	Tracer        answer.Tracer                   // told what answers spend their time on; nil: nobody is
	Around        func(http.Handler) http.Handler // sees every request that the guard lets pass; nil: nobody does
}

// Gateway serves the API. New, then Run until its context ends; Handler may be
// used from the start.
type Gateway struct {
	cfg        Config
	log        *slog.Logger
	catalog    catalog
	dispatch   *dispatch.Dispatcher
	admission  *admission.Admission
	runner     *answer.Runner
	chaos      armory
	usable     func(*Model) bool // a copy can be asked now
	metrics    *metrics.Metrics
	keys       *keys.Ring // nil: none are asked for
	engines    *engines.Engines
	explored   atomic.Int64 // requests that an engine of unknown speed might have had
	allowances allowances
	mux        http.Handler
	settling   sync.WaitGroup // generations whose clients have all they asked for
	plan       atomic.Pointer[control.PlanDocument]
	reach      reach
	events     *event.Stream
	traffic    *traffic
	refusals   *refusals
	bent       bent // links
	pulse      live.Pulse
	feed       *live.Feed
	watched    chan struct{} // somebody begins to watch
	watching   *watchers
	offer      atomic.Pointer[control.Offer] // what nodes may be asked for

	counts struct {
		finished, left, lost atomic.Int64
		mu                   sync.Mutex
		rescues              map[answer.RescueKind]int64
		degraded             int64 // requests that went to a fallback model
	}
}

// returnWait is how long a request waits for a usable copy: a worker process that
// died is back, with its layers loaded, within a few seconds.
const returnWait = 10 * time.Second

// New makes a gateway.
func New(cfg Config) *Gateway {
	if cfg.Memory == 0 {
		cfg.Memory = 1 << 30
	}
	g := &Gateway{
		cfg: cfg, log: cfg.Log, events: cfg.Events, feed: live.NewFeed(), watched: make(chan struct{}),
		traffic: newTraffic(), refusals: newRefusals(), watching: newWatchers(),
	}
	if g.events == nil {
		g.events = event.New(0)
	}
	g.counts.rescues = map[answer.RescueKind]int64{}
	g.usable = func(m *Model) bool { return g.missing(m) == "" }
	g.chaos.allowed = cfg.AllowChaos
	g.dispatch = dispatch.New(dispatch.Config{
		Gateway: cfg.Name,
		Policy:  swarm.Policy{ConfirmedOnly: true}, // no stage on a node that does not say that it holds it
	})
	if cfg.Queues.NotReady == 0 {
		cfg.Queues.NotReady = returnWait
	}
	cfg.Queues.Gateway = cfg.Name
	g.admission = admission.New(g.dispatch, cfg.Queues)
	router := observed{g.admission, g.traffic, g.refusals}
	g.runner = &answer.Runner{
		Router: router, Queue: router, Opener: opener{cfg.Pool}, Budget: answer.NewBudget(cfg.Memory),
		Standbys: g.admission, Limits: cfg.Limits, Yields: g.yields, Poison: &answer.Poison{}, Events: g.witness, Tracer: cfg.Tracer, Log: cfg.Log,
	}
	g.metrics = metrics.New(metrics.Sources{Swarm: g.Status, Pool: cfg.Pool.Snapshot, Events: g.events})
	g.engines = engines.New(engines.Config{Store: cfg.Store, Log: cfg.Log})
	g.metrics.Register(engines.Collector{Engines: g.engines})
	if cfg.RequireKey {
		g.keys = keys.NewRing(cfg.Store, cfg.Log)
	}
	inner := g.admitted(g.foreign(g.routes()))
	if cfg.Around != nil {
		inner = cfg.Around(inner)
	}
	g.mux = &guard{hosts: lower(cfg.AllowHosts), next: inner}
	return g
}

func lower(names []string) (out []string) {
	for _, n := range names {
		out = append(out, strings.ToLower(n))
	}
	return out
}

// Handler is the whole API.
func (g *Gateway) Handler() http.Handler { return g.mux }

func (g *Gateway) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", g.serve(g.chatCompletions))
	mux.HandleFunc("POST /v1/completions", g.serve(g.completions))
	mux.HandleFunc("POST /v1/embeddings", g.serve(g.embeddings))
	mux.HandleFunc("POST /v1/tokenize", g.look(g.tokenize))
	mux.HandleFunc("POST /v1/detokenize", g.look(g.detokenize))
	mux.HandleFunc("GET /v1/models", g.look(g.listModels))
	mux.HandleFunc("GET /v1/models/{id...}", g.look(g.oneModel))
	mux.HandleFunc("GET /v1/swarm", g.look(g.showSwarm))
	mux.HandleFunc("GET /v1/swarm/engines", g.look(g.showEngines))
	mux.HandleFunc("GET /v1/swarm/plan", g.look(g.showPlan))
	mux.HandleFunc("GET /v1/swarm/what-if", g.look(g.whatIf))
	mux.HandleFunc("GET /v1/swarm/explain", g.look(g.explain))
	mux.HandleFunc("GET /v1/swarm/events", g.look(g.showEvents))
	mux.HandleFunc("GET /v1/swarm/live", g.look(g.showLive))
	mux.HandleFunc("POST /v1/swarm/nodes/{id}/{action}", g.look(g.steerNode))
	mux.HandleFunc("GET /v1/pool", g.look(g.showPool))
	mux.HandleFunc("POST /v1/swarm/chaos/arm", g.look(g.armChaos))
	mux.HandleFunc("POST /v1/swarm/chaos/link", g.look(g.bendLink))
	mux.Handle("GET /metrics", g.metrics.Handler())
	mux.Handle("GET /{$}", web.Handler())
	mux.HandleFunc("GET /healthz", g.look(g.healthz))
	mux.HandleFunc("GET /readyz", g.look(g.readyz))
	mux.HandleFunc("/", g.look(elsewhere(mux)))
	return mux
}

// witness counts and tells what befell answers.
func (g *Gateway) witness(e answer.Event) {
	g.events.Publish(ofAnswer(e, g.traffic.modelOf(e.Job)))
	switch e.Kind {
	case "lost":
		g.counts.lost.Add(1)
		return
	case "gave way":
		return
	}
	g.metrics.Answers.Rescued(string(e.Rescue), e.Gap)
	g.pulse.Gap(e.Gap)
	g.counts.mu.Lock()
	defer g.counts.mu.Unlock()
	g.counts.rescues[e.Rescue]++
}

// Run follows membership, plan and models until ctx ends.
func (g *Gateway) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	defer wg.Wait()
	plans := make(chan *control.PlanDocument, 1)
	failed := make(chan error, 5)
	wg.Go(func() {
		failed <- control.FollowPlan(ctx, g.cfg.Store, g.log, func(d *control.PlanDocument) { offer(plans, d) })
	})
	wg.Go(func() { failed <- g.followModels(ctx) })
	wg.Go(func() { failed <- g.engines.Run(ctx) })
	wg.Go(func() {
		failed <- (&claims{bus: g.cfg.Bus, admission: g.admission, name: g.cfg.Name}).run(ctx)
	})
	wg.Go(func() { newHerald(g).run(ctx) })
	wg.Go(func() { g.paint(ctx) })
	wg.Go(func() { g.logEvents(ctx) })
	if g.keys != nil {
		wg.Go(func() { failed <- g.keys.Run(ctx) })
	}
	views, stop := g.cfg.Membership.Watch()
	defer stop()
	return g.steer(ctx, plans, views, failed)
}

// steer applies what comes from the control plane, one thing after the other.
func (g *Gateway) steer(ctx context.Context, plans <-chan *control.PlanDocument, views <-chan *control.View, failed <-chan error) error {
	mapper := control.DataMapper{Unreachable: g.reach.unreachable}
	look := time.NewTicker(reachEvery)
	defer look.Stop()
	defer g.reach.asking.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			if ctx.Err() == nil && err != nil {
				return fmt.Errorf("follow the control plane: %w", err)
			}
		case doc := <-plans:
			g.plan.Store(doc)
			g.dispatch.SetPlan(doc.Plan)
		case <-views:
		case <-look.C:
			g.lookAround(ctx)
		}
		g.offerAnew()
		if m, changed := mapper.Map(g.plan.Load(), g.cfg.Membership.View()); changed {
			if err := g.cfg.Pool.Apply(poolMap(m)); err != nil {
				g.log.Error("the pool refused a map", "because", err)
			}
			g.reach.follow(m)
		}
	}
}

// offer leaves the newest value in a channel of capacity 1.
func offer[T any](ch chan T, v T) {
	for {
		select {
		case ch <- v:
			return
		default:
		}
		select {
		case <-ch:
		default:
		}
	}
}

// followModels keeps the catalogue up to date.
func (g *Gateway) followModels(ctx context.Context) error {
	updates, err := g.cfg.Store.Watch(ctx, control.BucketModels, "")
	if err != nil {
		return fmt.Errorf("watch the models: %w", err)
	}
	again := time.NewTicker(modelRetry)
	defer again.Stop()
	late := map[string][]byte{} // records of models whose file was not to be had
	for {
		select {
		case u, ok := <-updates:
			switch {
			case !ok && ctx.Err() == nil:
				return errors.New("the store's watch of models ended")
			case !ok:
				return nil
			case u.Synced:
			case u.Deleted:
				delete(late, u.Key)
				g.catalog.remove(u.Key)
			default:
				g.takeModel(late, u.Key, u.Value)
			}
		case <-again.C:
			for id, value := range late {
				g.takeModel(late, id, value)
			}
		}
	}
}

// modelRetry is how often a model's file is looked for that is not here: a node
// that has just loaded it may give what is needed.
const modelRetry = 2 * time.Second

// takeModel adds a model, or remembers it among the late ones.
func (g *Gateway) takeModel(late map[string][]byte, id string, value []byte) {
	err := g.addModel(value)
	if err == nil {
		delete(late, id)
		return
	}
	if _, known := late[id]; !known {
		g.log.Error("a model cannot be served", "model", id, "because", err)
	}
	late[id] = value
}

func (g *Gateway) addModel(value []byte) error {
	rec := &control.ModelRecord{}
	if err := control.Decode(value, rec); err != nil {
		return err
	}
	path, err := g.cfg.Files(rec)
	if err != nil {
		return err
	}
	text, err := openText(path)
	if err != nil {
		return fmt.Errorf("read the language of %s: %w", rec.ID, err)
	}
	g.catalog.put(&Model{Record: *rec, Text: text})
	return nil
}

// shutdownTime is how long running answers may go on after the end was asked for.
const shutdownTime = 5 * time.Second

// Serve answers HTTP on a listener until ctx ends.
func (g *Gateway) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           g.mux,
		ReadHeaderTimeout: 10 * time.Second, // a client that never says what it wants
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(g.log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(g.watching.close)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
	defer cancel()
	if err := srv.Shutdown(bound); err != nil {
		_ = srv.Close()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	g.settling.Wait()
	return nil
}
