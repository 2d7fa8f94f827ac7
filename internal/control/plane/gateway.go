package plane

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/internal/control/discovery"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/natsbus"
)

// GatewayConfig says where a gateway's control plane lives. Zero values mean
// what a swarm on one machine needs.
type GatewayConfig struct {
	// Dir is the data folder. It is locked as long as the gateway runs.
	Dir string
	// Name is the gateway's id in the swarm; empty: "gateway".
	Name string
	// Join and Bus are where enrolment and the embedded NATS server listen,
	// ip:port; empty: a free loopback port, the same one after a restart.
	Join, Bus string
	// External uses an existing NATS cluster instead of an embedded server;
	// several gateways with one authority may then share the swarm.
	External *External
	// Advertise are the hosts under which members reach both; empty: the
	// listening address.
	Advertise []string
	// NoDiscovery keeps the gateway from answering on the local network. One
	// that listens on loopback never does.
	NoDiscovery bool
	Planner     control.Planner
	Patience    control.Patience
	Liveness    control.Liveness
	LeaseTTL    time.Duration // 0: control.DefaultLeaseTTL
	// Weights makes the handler for what nodes ask of models' files, everything
	// below /v1/weights/; nil: nothing is given. It must ask Node who they are.
	Weights func(*Gateway) http.Handler
	Log     *slog.Logger // nil: silent
}

func (cfg *GatewayConfig) fill() error {
	if cfg.Dir == "" || cfg.Planner == nil {
		return errors.New("a gateway needs a data folder and a planner")
	}
	set := func(s *string, def string) {
		if *s == "" {
			*s = def
		}
	}
	set(&cfg.Name, "gateway")
	set(&cfg.Join, "127.0.0.1:0")
	set(&cfg.Bus, "127.0.0.1:0")
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// A Gateway is the running control plane of one gateway.
type Gateway struct {
	cfg         GatewayConfig
	lock        *FolderLock
	authority   *identity.Authority
	key         *ecdsa.PrivateKey
	credentials *identity.Credentials
	accounts    *natsbus.Accounts
	ports       *ports
	trust       []byte          // PEM of an external cluster's authority
	server      *natsbus.Server // nil with an external cluster
	conn        *natsbus.Conn
	admission   atomic.Pointer[control.Membership] // nil until it runs
	membership  *control.Membership
	reconciler  *control.Reconciler
	tokens      *enrol.Tokens
	join        net.Listener
	socket      net.Listener // of administration; nil where it cannot be had
	http        *http.Server
	admin       *admin.Server
	engines     atomic.Pointer[admin.Engines] // nil until the API runs

	cancel context.CancelFunc
	tasks  sync.WaitGroup
	close  func()
}

// StartGateway starts everything and returns when members can join. Close
// stops it; ctx bounds the start only.
func StartGateway(ctx context.Context, cfg GatewayConfig) (*Gateway, error) {
	if err := cfg.fill(); err != nil {
		return nil, err
	}
	g := &Gateway{cfg: cfg, cancel: func() {}, ports: loadPorts(cfg.Dir)}
	g.close = sync.OnceFunc(g.stop)
	for _, step := range []func(context.Context) error{g.openIdentity, g.openBus, g.openJoin} {
		if err := step(ctx); err != nil {
			g.Close()
			return nil, err
		}
	}
	g.run()
	return g, nil
}

func (g *Gateway) openIdentity(context.Context) error {
	var err error
	if g.lock, err = LockFolder(g.cfg.Dir); err != nil {
		return err
	}
	if g.authority, err = identity.OpenAuthority(filepath.Join(g.cfg.Dir, "authority")); err != nil {
		return err
	}
	if g.key, err = identity.LoadOrMakeKey(filepath.Join(g.cfg.Dir, "gateway.key")); err != nil {
		return err
	}
	chain, err := g.issue(context.Background())
	if err != nil {
		return err
	}
	g.credentials, err = identity.NewCredentials(g.key, chain)
	return err
}

// issue makes the gateway's own certificate: it is the authority itself.
func (g *Gateway) issue(context.Context) ([]*x509.Certificate, error) {
	return g.authority.Issue(identity.RoleGateway, g.cfg.Name, g.key.Public())
}

func (g *Gateway) run() {
	ctx, cancel := context.WithCancel(context.Background())
	g.cancel = cancel
	g.membership = control.NewMembership(control.MembershipConfig{
		Store: g.conn, Bus: g.conn, Name: g.cfg.Name, Liveness: g.cfg.Liveness, Log: g.cfg.Log,
	})
	g.admission.Store(g.membership)
	g.reconciler = control.NewReconciler(control.ReconcilerConfig{
		Store: g.conn, Membership: g.membership, Planner: g.cfg.Planner, Holder: g.cfg.Name,
		LeaseTTL: g.cfg.LeaseTTL, Patience: g.cfg.Patience, Log: g.cfg.Log,
	})
	g.tasks.Go(func() { g.forever(ctx, "membership", g.membership.Run) })
	g.tasks.Go(func() { g.forever(ctx, "planning", g.reconciler.Run) })
	g.tasks.Go(func() { g.expel(ctx) })
	g.tasks.Go(func() { g.register(ctx) })
	if tcp, ok := g.join.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && !g.cfg.NoDiscovery {
		g.tasks.Go(func() {
			discovery.Announce(ctx, discovery.Announcement{
				Gateway: g.cfg.Name, Tag: discovery.Tag(g.authority.Fingerprint()), Port: tcp.Port, Only: tcp.IP,
			}, g.cfg.Log)
		})
	}
	g.tasks.Go(func() {
		g.credentials.KeepFresh(ctx, g.issue, func(err error) { g.cfg.Log.Error("certificate", "error", err) })
	})
	g.serve(tls.NewListener(g.join, g.credentials.OpenServer()))
	if g.socket != nil {
		g.serve(g.socket)
	}
}

// restartPause is between two tries of a task that ended before its time.
const restartPause = time.Second

// forever runs a task again when it ends early: a control plane that limps
// must not stop for good.
func (g *Gateway) forever(ctx context.Context, what string, task func(context.Context) error) {
	for ctx.Err() == nil {
		err := task(ctx)
		if ctx.Err() != nil {
			return
		}
		g.cfg.Log.Error(what+" ended, starting it again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
}

// Close gives up the lease, stops everything and waits for it. It is
// idempotent.
func (g *Gateway) Close() { g.close() }

const stopWithin = 2 * time.Second

func (g *Gateway) stop() {
	g.cancel()
	if g.http != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopWithin)
		if err := g.http.Shutdown(ctx); err != nil {
			_ = g.http.Close() // the clients had their time
		}
		cancel()
	}
	for _, l := range []net.Listener{g.join, g.socket} {
		if l != nil {
			_ = l.Close() // closed by the server already, unless it never ran
		}
	}
	g.tasks.Wait()
	if g.conn != nil {
		g.conn.Close()
	}
	if g.server != nil {
		g.server.Close()
	}
	if g.lock != nil {
		g.lock.Release()
	}
}

// Swarm is the swarm's id.
func (g *Gateway) Swarm() string { return g.authority.Swarm() }

// Authority is the swarm's certificate authority.
func (g *Gateway) Authority() *identity.Authority { return g.authority }

// Credentials are the gateway's.
func (g *Gateway) Credentials() *identity.Credentials { return g.credentials }

// Store holds the swarm's durable state.
func (g *Gateway) Store() control.Store { return g.conn }

// Bus carries health and commands.
func (g *Gateway) Bus() control.Bus { return g.conn }

// BusBytes counts the messages that passed the embedded server; 0 with an
// external cluster, which counts for itself.
func (g *Gateway) BusBytes() int64 {
	if g.server == nil {
		return 0
	}
	return g.server.Bytes()
}

// Membership says who lives.
func (g *Gateway) Membership() *control.Membership { return g.membership }

// Reconciler says whether this gateway plans, and what hinders it.
func (g *Gateway) Reconciler() *control.Reconciler { return g.reconciler }

// Tokens administers join tokens.
func (g *Gateway) Tokens() *enrol.Tokens { return g.tokens }

// JoinAddresses are where machines enrol, host:port.
func (g *Gateway) JoinAddresses() []string { return advertised(g.join.Addr(), g.cfg.Advertise, nil) }

// Listen takes a port for members by a name of its own: a free one (port 0)
// stays the same over restarts.
func (g *Gateway) Listen(name, address string) (net.Listener, error) {
	listen, err := g.ports.pick(name, address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, err
	}
	g.ports.keep(name, l.Addr())
	return l, g.ports.save()
}

// Advertised is where members reach a listener of this gateway, host:port.
func (g *Gateway) Advertised(l net.Listener) []string {
	return advertised(l.Addr(), g.cfg.Advertise, nil)
}

// CreateToken makes a join token with this gateway's addresses in it, unless
// o has others.
func (g *Gateway) CreateToken(ctx context.Context, o enrol.TokenOptions) (enrol.Token, error) {
	if len(o.Addresses) == 0 {
		o.Addresses = g.JoinAddresses()
	}
	return g.tokens.Create(ctx, g.authority.Fingerprint(), o)
}

// FollowPlan calls fn with the current and every newer plan until ctx ends
// (see control.FollowPlan).
func (g *Gateway) FollowPlan(ctx context.Context, fn func(*control.PlanDocument)) error {
	return control.FollowPlan(ctx, g.conn, g.cfg.Log, fn)
}
