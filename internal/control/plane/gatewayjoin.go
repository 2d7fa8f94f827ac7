package plane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/internal/control/doctor"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
)

// openJoin takes the ports of enrolment and administration.
func (g *Gateway) openJoin(context.Context) error {
	listen, err := g.ports.pick("join", g.cfg.Join)
	if err != nil {
		return err
	}
	if g.join, err = net.Listen("tcp", listen); err != nil {
		return fmt.Errorf("listening for machines that join: %w", err)
	}
	g.ports.keep("join", g.join.Addr())
	g.openSocket()
	g.tokens = enrol.NewTokens(g.conn)
	handler, err := g.handler()
	if err != nil {
		return err
	}
	g.http = &http.Server{
		Handler: handler, ConnContext: identity.WithConn,
		// A request is a few kilobytes: who needs longer holds a socket.
		ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: 30 * time.Second,
		MaxHeaderBytes: 16 << 10,
		ErrorLog:       slog.NewLogLogger(g.cfg.Log.Handler(), slog.LevelDebug),
	}
	return g.ports.save()
}

// handler puts enrolment and administration on one endpoint.
func (g *Gateway) handler() (http.Handler, error) {
	access, err := admin.Grant(g.cfg.Dir, g.authority.Fingerprint(), g.JoinAddresses())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	g.admin = admin.NewServer(g, access.Token, g.cfg.Log)
	mux.Handle("/v1/admin/", g.admin)
	if g.cfg.Weights != nil {
		mux.Handle(weightsPath, g.cfg.Weights(g))
	}
	mux.Handle("/", enrol.NewServer(enrol.ServerConfig{
		Authority: g.authority, Store: g.conn, Bus: g.conn, Log: g.cfg.Log,
		BusServers: g.busServers,
		Gateways: func(seen net.Addr) []string {
			return append(advertised(g.join.Addr(), g.cfg.Advertise, seen), g.OtherGateways()...)
		},
		BusToken: func(node, key string) (string, error) {
			return g.accounts.NodeToken(node, key, time.Now().Add(identity.CertificateLife))
		},
		BusTrust: g.trust,
	}))
	return mux, nil
}

// listWithin bounds a look into the store on behalf of a member that waits.
const listWithin = 2 * time.Second

// OtherGateways are the enrolment endpoints of the swarm's other gateways,
// host:port, also of dead ones: a member that loses this one goes there, and some
// have models that this one has not.
func (g *Gateway) OtherGateways() (out []string) {
	ctx, cancel := context.WithTimeout(context.Background(), listWithin)
	defer cancel()
	list, err := control.Gateways(ctx, g.conn)
	if err != nil {
		g.cfg.Log.Warn("the swarm's other gateways are not known", "error", err)
	}
	for _, other := range list {
		if other.Name != g.cfg.Name {
			out = append(out, other.Join...)
		}
	}
	return out
}

// register says in the store where this gateway is, as long as it runs.
func (g *Gateway) register(ctx context.Context) {
	control.KeepGateway(ctx, g.conn, control.GatewayRecord{Name: g.cfg.Name, Join: g.JoinAddresses()}, g.reconciler.Leading, g.cfg.Log)
}

// Administrator says that a token is the admin token.
func (g *Gateway) Administrator(token string) bool { return g.admin.Holds(token) }

// openSocket listens on the socket in the data folder. Where that is not
// possible (a very long path), administration goes over TLS only.
func (g *Gateway) openSocket() {
	path := admin.SocketPath(g.cfg.Dir)
	// What is there is of a process that is gone: the folder is locked.
	_ = os.Remove(path)
	socket, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		g.cfg.Log.Warn("no socket for administration", "error", err)
		return
	}
	g.socket = socket
}

func (g *Gateway) serve(l net.Listener) {
	g.tasks.Go(func() {
		if err := g.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			g.cfg.Log.Error("enrolment and administration stopped", "address", l.Addr(), "error", err)
		}
	})
}

// Info says which gateway this is.
func (g *Gateway) Info() admin.Info {
	i := admin.Info{
		Swarm: g.Swarm(), Gateway: g.cfg.Name, Fingerprint: identity.FingerprintText(g.authority.Fingerprint()),
		Join: g.JoinAddresses(), Leading: g.reconciler.Leading(), BadReports: g.membership.BadReports(),
	}
	if err := g.reconciler.Err(); err != nil {
		i.PlanError = err.Error()
	}
	return i
}

// Reach tries every node's data plane.
func (g *Gateway) Reach(ctx context.Context) ([]doctor.Finding, error) {
	nodes, err := control.Nodes(ctx, g.conn)
	if err != nil {
		return nil, err
	}
	return doctor.Reach(ctx, g.credentials, nodes, func(node string) bool {
		m := g.membership.View().Member(node)
		return m != nil && m.Status == control.StatusAlive
	}), nil
}
