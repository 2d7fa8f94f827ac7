package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSuperseded: a newer start of this node took its place.
var ErrSuperseded = errors.New("a newer start of this node took its place")

// A ReporterConfig says who reports what.
type ReporterConfig struct {
	Node        string
	Incarnation uint64 // as the gateway assigned it, >= 1
	Instance    string // random name of this process
	// Fill writes the node's room's part of a report. It is called from one
	// goroutine and must not wait for anything.
	Fill func(*Health)
	// Commands is what the node's room answers, by name. Each command runs in
	// a goroutine of its own, at most 16 at once.
	Commands map[string]CommandFunc
	Interval time.Duration // between reports; 0: 1 s
	Log      *slog.Logger  // nil: silent
}

const (
	// reportSpacing keeps a storm of changes from becoming a storm of reports.
	reportSpacing = 20 * time.Millisecond
	// maxCommands bounds what a confused gateway can start here.
	maxCommands = 16
)

// A Reporter is the node's voice: health each second and at once on change,
// answers to commands, a goodbye at the end.
type Reporter struct {
	cfg      ReporterConfig
	who      Who
	sequence atomic.Uint64 // of the newest report; grows across Runs
	changed  chan struct{} // capacity 1
	newer    chan Who      // capacity 1: who superseded us
}

// NewReporter returns a reporter that is silent until Run.
func NewReporter(cfg ReporterConfig) *Reporter {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return &Reporter{
		cfg:     cfg,
		who:     Who{Node: cfg.Node, Incarnation: cfg.Incarnation, Instance: cfg.Instance, Host: host, PID: os.Getpid()},
		changed: make(chan struct{}, 1),
		newer:   make(chan Who, 1),
	}
}

// Changed asks for a report now, because something in it changed. It never
// waits; many calls make one report.
func (r *Reporter) Changed() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// Run reports on a bus until ctx ends. It may be called again, with another
// bus, when it has returned. It returns ErrSuperseded when a newer start of
// this node appears.
func (r *Reporter) Run(ctx context.Context, bus Bus) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	commands := newCommandServer(ctx, r)
	defer commands.wait()
	stop, err := bus.Subscribe(CommandSubject(r.cfg.Node), commands.serve)
	if err != nil {
		return fmt.Errorf("listening for commands of node %s: %w", r.cfg.Node, err)
	}
	defer stop()
	return r.report(ctx, bus)
}

// Goodbye tells everybody that the node leaves on purpose. Nothing reported
// after it counts.
func (r *Reporter) Goodbye(bus Bus) { r.publish(bus, true) }

func (r *Reporter) report(ctx context.Context, bus Bus) error {
	tick := time.NewTicker(r.cfg.Interval)
	defer tick.Stop()
	for {
		r.publish(bus, false)
		last := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case w := <-r.newer:
			return fmt.Errorf("%w: %s runs on %s as process %d", ErrSuperseded, w.Node, w.Host, w.PID)
		case <-tick.C:
		case <-r.changed:
			pause(ctx, reportSpacing-time.Since(last))
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (r *Reporter) publish(bus Bus, leaving bool) {
	h := new(Health)
	r.cfg.Fill(h)
	h.Node, h.Incarnation, h.Instance = r.cfg.Node, r.cfg.Incarnation, r.cfg.Instance
	h.Sequence, h.PID, h.Leaving = r.sequence.Add(1), r.who.PID, leaving
	h.State.ID = r.cfg.Node
	data, err := Encode(h)
	if err != nil {
		r.cfg.Log.Error("the health report is faulty and was shortened", "node", r.cfg.Node, "error", err)
		if data, err = Encode(h.essence()); err != nil {
			data, err = Encode(h.existence())
		}
	}
	if err == nil {
		err = bus.Publish(HealthSubject(r.cfg.Node), data)
	}
	if err != nil {
		r.cfg.Log.Warn("health was not reported", "node", r.cfg.Node, "error", err)
	}
}

// A commandServer runs the commands of one Reporter.
type commandServer struct {
	ctx   context.Context
	log   *slog.Logger
	table map[string]CommandFunc
	slots chan struct{}
	wg    sync.WaitGroup
}

func newCommandServer(ctx context.Context, r *Reporter) *commandServer {
	s := &commandServer{ctx: ctx, log: r.cfg.Log, table: map[string]CommandFunc{}, slots: make(chan struct{}, maxCommands)}
	maps.Copy(s.table, r.cfg.Commands)
	s.table[CommandWho] = func(context.Context, json.RawMessage) (any, error) { return r.who, nil }
	s.table[CommandSuperseded] = func(_ context.Context, args json.RawMessage) (any, error) {
		var w Who
		if err := json.Unmarshal(args, &w); err != nil {
			return nil, err
		}
		if w.Node == r.cfg.Node && w.Incarnation > r.cfg.Incarnation {
			offerNewest(r.newer, w)
		}
		return nil, nil
	}
	return s
}

func (s *commandServer) serve(msg Message) {
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.wg.Go(func() {
		defer func() { <-s.slots }()
		if err := execute(s.ctx, s.table, msg); err != nil {
			s.log.Warn("command failed", "error", err)
		}
	})
}

func (s *commandServer) wait() { s.wg.Wait() }
