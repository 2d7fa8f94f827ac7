package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/plane"
	"hecate/internal/engine"
	"hecate/pool"
	"hecate/swarm"
)

// Config is what a worker is made of.
type Config struct {
	Data       string // folder for its identity and its layers
	Name       string // id in the swarm; "" takes the enrolled name, or the host's
	Token      string // needed once
	Gateways   []string
	Listen     string  // address of its data plane, such as 127.0.0.1:0
	Memory     int64   // bytes that weights and KV cache may take
	Threads    int     // that compute; 0: 1
	Score      float64 // relative speed, above 0; 0: measured at the first start
	AllowChaos bool    // gateways may arm failures of this process

	WeightsListen string        // address where neighbours fetch weights; "": Listen's host and a free port
	SharedStore   string        // the gateway's store of models, when it is on this machine; "": weights are fetched
	FetchRate     int64         // bytes per second that weights may take, in and out each; 0: no bound
	KeepWeights   time.Duration // how long weights stay on disk that the plan does not give this node
	Log           *slog.Logger
}

// Node is a running worker.
type Node struct {
	cfg      Config
	log      *slog.Logger
	member   *plane.Node
	profile  profile
	idle     string // why the plan gives this node nothing; follow's
	engine   engine.Engine
	server   *Server
	loader   *loader
	larder   *larder
	listener net.Listener
	pool     *pool.Server
	reverse  *reverser
	doc      atomic.Pointer[control.PlanDocument] // newest plan
}

// Run enrols, loads what the plan gives this node, and serves until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	n := &Node{cfg: cfg, log: cfg.Log}
	member, err := plane.OpenNode(ctx, plane.NodeConfig{Dir: cfg.Data, Name: cfg.Name, Token: cfg.Token, Gateways: cfg.Gateways, Log: cfg.Log})
	if err != nil {
		return err
	}
	defer member.Close()
	n.member = member
	n.log.Info("the node has its identity", "node", member.ID())
	n.profile = n.measure(ctx)
	if err := n.build(); err != nil {
		return err
	}
	defer n.close()
	return n.work(ctx)
}

// rescueShare K keeps the last 1/K of the KV cells for rescues.
const rescueShare = 8

// WorkMemory is what a node may take beyond its budget for work memory and the
// bookkeeping of layers, in bytes. The budget that plans count with is for
// weights and KV cache.
const WorkMemory = 256 << 20

// build makes the engine and takes the port.
func (n *Node) build() (err error) {
	n.engine, err = engine.New(engine.Options{
		Threads: n.cfg.Threads, MemoryBudget: n.cfg.Memory + WorkMemory, RescueShare: rescueShare, ScratchDir: n.cfg.Data,
	})
	if err != nil {
		return fmt.Errorf("start the engine: %w", err)
	}
	n.listener, err = net.Listen("tcp", n.cfg.Listen)
	if err != nil {
		_ = n.engine.Close()
		return fmt.Errorf("listen for the data plane: %w", err)
	}
	n.server = NewServer(n.engine, engine.Class(), n.log)
	n.server.changed = n.member.Changed
	n.server.words = n.words()
	if n.cfg.AllowChaos {
		hole := NewHole(n.listener)
		n.listener = hole
		n.server.chaos = &chaos{hole}
	}
	if err := n.openData(); err != nil {
		return fmt.Errorf("start the data plane: %w", err)
	}
	if err := n.openLarder(); err != nil {
		return err
	}
	n.loader = newLoader(n.member.ID(), n.engine, n.larder, n.member.Changed, n.log)
	n.loader.keep = n.cfg.KeepWeights
	return nil
}

func (n *Node) close() {
	n.server.Close()
	_ = n.engine.Close()
}

// work runs the node's parts until ctx ends or one of them fails.
func (n *Node) work(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	part := func(run func(context.Context) error) {
		wg.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	part(n.serve)
	part(func(ctx context.Context) error { n.reverse.run(ctx); return nil })
	part(func(ctx context.Context) error { return n.member.Run(ctx, n.duty()) })
	part(func(ctx context.Context) error { n.loader.run(ctx); return nil })
	part(n.larder.serve)
	part(func(ctx context.Context) error { n.watchLoad(ctx); return nil })
	part(func(ctx context.Context) error { n.watchWords(ctx); return nil })
	wg.Wait()
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// duty is what this room does for the control plane.
func (n *Node) duty() plane.Duty {
	return plane.Duty{
		Profile: func() enrol.AttachRequest {
			return enrol.AttachRequest{
				Profile: swarm.NodeProfile{
					ID: n.member.ID(), MemoryBytes: n.cfg.Memory, Score: n.profile.Score, LatencyMS: n.profile.LatencyMS,
					Endpoints: []string{n.listener.Addr().String()},
				},
				Exactness: engine.Class(),
			}
		},
		Fill:     n.fill,
		Plan:     n.follow,
		Commands: map[string]control.CommandFunc{control.CommandDial: n.reverse.dial},
		Attached: func(a enrol.Attached, store control.Store) {
			n.larder.use(store, n.member.Gateways())
			n.log.Info("node joined", "node", n.member.ID(), "incarnation", a.Incarnation, "data_plane", n.listener.Addr().String())
		},
	}
}

// openData makes the data plane's server.
func (n *Node) openData() (err error) {
	creds := n.member.Credentials()
	n.pool, err = pool.NewServer(pool.ServerConfig{
		NodeID: n.member.ID(), SwarmID: creds.ID().Swarm,
		TLS: creds.Server(nil, identity.RoleGateway), Identify: identity.PeerName,
	}, n.server.Handle)
	n.reverse = &reverser{server: n.pool, credentials: creds, log: n.log}
	if n.server.chaos != nil {
		n.reverse.wires = n.server.chaos.hole
	}
	return err
}

// serve runs the data plane.
func (n *Node) serve(ctx context.Context) error { return n.pool.Serve(ctx, n.listener) }

// follow takes a newer plan.
func (n *Node) follow(doc *control.PlanDocument) {
	n.doc.Store(doc)
	n.server.gauge.pause(doc.DesiredOf(n.member.ID()) == control.DesiredPaused)
	n.loader.follow(doc)
	n.tellIdle(doc)
	n.member.Changed()
}

// loadEvery is how often the node looks at how busy it is.
const loadEvery = 250 * time.Millisecond

func (n *Node) watchLoad(ctx context.Context) {
	every(ctx, loadEvery, func() {
		s := n.engine.Stats()
		n.server.gauge.tick(s.Computed, s.Waiting)
	})
}

// every does something at each tick until the context ends.
func every(ctx context.Context, d time.Duration, do func()) {
	tick := time.NewTicker(d)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
