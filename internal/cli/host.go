package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hecate/internal/chaos"
	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/keys"
	"hecate/internal/control/plane"
	"hecate/internal/event"
	"hecate/internal/gateway"
	"hecate/internal/gateway/answer"
	"hecate/internal/trace"
	"hecate/internal/weights"
	"hecate/pool"
	"hecate/swarm"
)

// hostConfig is what a gateway process is made of.
type hostConfig struct {
	dir        dataDir
	name       string
	listen     string // of the API
	allowHosts []string
	requireKey bool // also on loopback
	tls        tlsFlags
	trace      traceFlags
	members    membersConfig
	allowChaos bool
	rescueTime time.Duration // 0: the default
	shadeFrom  int           // tokens of context from which shadows are kept; 0: the default
	planner    swarm.Planner
	firstNodes int   // the first plan waits for so many
	sendRate   int64 // bytes per second of weights to nodes; 0: no bound
	memory     int64 // bytes for boundary states over all answers; 0: the gateway's default
	log        *slog.Logger
}

// membersConfig is where nodes reach a gateway. Zero values mean free ports of
// loopback, which a swarm on one machine needs.
type membersConfig struct {
	join, bus string
	data      string // where nodes connect that cannot be reached
	advertise []string
	external  *plane.External
}

// host is a whole gateway in one process: control plane, data plane, API.
type host struct {
	cfg     hostConfig
	plane   *plane.Gateway
	store   *weights.Store
	weights *weights.Server
	links   *chaos.Links // ways to the nodes that can be made to fail; nil: nobody may
	pool    *pool.Pool
	reverse net.Listener // for nodes that cannot be dialled
	events  *event.Stream
	gateway *gateway.Gateway
	started atomic.Pointer[gateway.Gateway] // the same, for what runs before it
	api     net.Listener
	trace   *trace.Exporter // nil: traces go nowhere
}

// openHost takes the ports and starts what others connect to. close frees it.
func openHost(ctx context.Context, cfg hostConfig) (*host, error) {
	h := &host{cfg: cfg, events: event.New(0)}
	for _, step := range []func(context.Context) error{h.openPlane, h.openAPI, h.openData, h.openGateway} {
		if err := step(ctx); err != nil {
			h.close()
			return nil, err
		}
	}
	return h, nil
}

func (h *host) openPlane(ctx context.Context) (err error) {
	if h.store, err = modelStore(h.cfg.dir); err != nil {
		return err
	}
	h.plane, err = plane.StartGateway(ctx, plane.GatewayConfig{
		Dir: string(h.cfg.dir), Name: h.cfg.name, Planner: h.cfg.planner.Plan,
		Patience: control.Patience{FirstNodes: h.cfg.firstNodes}, Log: h.cfg.log,
		Join: h.cfg.members.join, Bus: h.cfg.members.bus, Advertise: h.cfg.members.advertise, External: h.cfg.members.external,
		Weights: h.serveWeights,
	})
	if errors.Is(err, plane.ErrFolderInUse) {
		return fmt.Errorf("%w: stop the other hecate, or choose another folder with --data", err)
	}
	if err != nil {
		return fmt.Errorf("start the control plane: %w", err)
	}
	return nil
}

func (h *host) openAPI(context.Context) (err error) {
	if h.api, err = net.Listen("tcp", h.cfg.listen); err != nil {
		return fmt.Errorf("listen on %s: %w; choose another address with --listen", h.cfg.listen, err)
	}
	encrypted, err := h.cfg.tls.encrypt(h.api, h.plane.Authority(), h.names(), h.cfg.log)
	if err == nil {
		h.api = encrypted
	}
	return err
}

// names are the hosts under which this machine may reach the API, and others.
func (h *host) names() []string {
	names := append([]string{"localhost", "127.0.0.1", "::1"}, h.cfg.allowHosts...)
	if own, err := os.Hostname(); err == nil {
		names = append(names, own)
	}
	if tcp, ok := h.api.Addr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		names = append(names, tcp.IP.String())
	}
	return names
}

// url is where the API is, for people who reach it under one of the hosts.
func (h *host) url(hosts []string) string {
	return h.cfg.tls.scheme() + reachable(h.api.Addr(), hosts)
}

func (h *host) openData(context.Context) (err error) {
	creds := h.plane.Credentials()
	cfg := pool.Config{
		NodeID: h.cfg.name, SwarmID: h.plane.Swarm(),
		TLS: creds.Both(h.plane.Admit, identity.RoleNode), Identify: identity.PeerName,
		Observe: h.observe(),
	}
	if h.cfg.allowChaos {
		h.links = chaos.NewLinks(h.nodeAt)
		cfg.Dial = h.links.Dial
	}
	h.pool, err = pool.New(cfg)
	if err != nil {
		return fmt.Errorf("start the data plane: %w", err)
	}
	listen := h.cfg.members.data
	if listen == "" {
		listen = "127.0.0.1:0"
	}
	if h.reverse, err = h.plane.Listen("data", listen); err != nil {
		return fmt.Errorf("listen for nodes that cannot be reached: %w", err)
	}
	return nil
}

// observe tells what happens to connections.
func (h *host) observe() func(pool.Event) {
	bereaved := gateway.Bereaved(h.plane.Membership())
	return func(e pool.Event) {
		h.events.Publish(gateway.PoolFact(e))
		bereaved(e)
	}
}

// nodeAt names the node whose data port has an address, "" when there is none.
func (h *host) nodeAt(addr string) string {
	view := h.plane.Membership().View()
	for i := range view.Members {
		if r := view.Members[i].Record; r != nil && slices.Contains(r.Profile.Endpoints, addr) {
			return r.ID
		}
	}
	return ""
}

func (h *host) openGateway(ctx context.Context) error {
	cfg := gateway.Config{
		Name: h.cfg.name, Version: version(), AllowHosts: h.cfg.allowHosts, AllowChaos: h.cfg.allowChaos, RequireKey: h.wantsKey(), Memory: h.cfg.memory,
		Limits: answer.Limits{RescueTime: h.cfg.rescueTime, ShadeFrom: h.cfg.shadeFrom},
		Store:  h.plane.Store(), Bus: h.plane.Bus(), Membership: h.plane.Membership(), Pool: h.pool,
		Reverse: func() []string { return h.plane.Advertised(h.reverse) }, Knock: h.knock, Files: h.modelFile, Sent: h.weights.Served,
		Events: h.events, Administrator: h.plane.Administrator, Log: h.cfg.log,
	}
	if h.links != nil {
		cfg.Links = h.links
	}
	if err := h.openTrace(ctx, &cfg); err != nil {
		return err
	}
	h.gateway = gateway.New(cfg)
	h.started.Store(h.gateway)
	h.plane.UseEngines(h.gateway.Engines())
	return nil
}

// knock shakes hands with a node's data port, and leaves.
func (h *host) knock(ctx context.Context, node, address string) error {
	d := tls.Dialer{Config: h.plane.Credentials().Client(identity.RoleNode, node)}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// wantsKey says that the API asks for keys: always when others can reach it.
func (h *host) wantsKey() bool { return h.cfg.requireKey || !onLoopback(h.api.Addr()) }

// mentionKeys says how to get in when nobody can yet.
func (h *host) mentionKeys(ctx context.Context, say *announcer) error {
	if !h.wantsKey() {
		return nil
	}
	have, err := keys.List(ctx, h.plane.Store())
	if err != nil {
		return fmt.Errorf("list the API keys: %w", err)
	}
	if len(have) == 0 {
		say.event("key needed", "the API wants a key, and there is none yet: hecate key create --data "+string(h.cfg.dir), nil)
	}
	return nil
}

// onLoopback says that only this machine reaches a listener.
func onLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// run serves until ctx ends or a part fails.
func (h *host) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("gateway", h.gateway.Run)
	part("data plane", func(ctx context.Context) error { return h.pool.ServeReverse(ctx, h.reverse) })
	part("API", func(ctx context.Context) error { return h.gateway.Serve(ctx, h.api) })
	wg.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// token makes a join token.
func (h *host) token(ctx context.Context, o enrol.TokenOptions) (string, error) {
	t, err := h.plane.CreateToken(ctx, o)
	if err != nil {
		return "", fmt.Errorf("make a join token: %w", err)
	}
	return t.Encode(), nil
}

// close ends what open started, in reverse order.
func (h *host) close() {
	h.closeTrace()
	if h.pool != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_ = h.pool.Close(ctx)
		cancel()
	}
	if h.links != nil {
		_ = h.links.Close()
	}
	if h.reverse != nil {
		_ = h.reverse.Close()
	}
	if h.api != nil {
		_ = h.api.Close()
	}
	if h.plane != nil {
		h.plane.Close()
	}
}
