package natsbus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"hecate/internal/control"
)

// ServerConfig says how the embedded server runs.
type ServerConfig struct {
	// Name is the server's name in its own messages, unique in the swarm.
	Name string
	// Dir holds JetStream's files.
	Dir string
	// Listen is an ip:port; port 0 takes a free one. Empty: 127.0.0.1:0.
	Listen string
	// TLS admits the swarm's members (see identity.Credentials.Server).
	TLS *tls.Config
	// Accounts say what each member may do; they must be Owned.
	Accounts *Accounts
	Log      *slog.Logger // nil: silent
}

const (
	// maxPayload holds the plan of 1,000 nodes; NATS warns above 8 MiB.
	maxPayload = 8 << 20
	// maxStore bounds the files of five small buckets.
	maxStore = 1 << 30
	// maxMemory bounds what consumers and streams may keep in memory.
	maxMemory    = 64 << 20
	startTimeout = 20 * time.Second
	// tlsTimeout is for a handshake over a slow link.
	tlsTimeout = 5
)

// A Server is an embedded NATS server with JetStream on synced files.
type Server struct {
	ns    *server.Server
	close func()
}

// Bytes counts the messages that passed the server, in and out, without framing.
func (s *Server) Bytes() int64 {
	v, err := s.ns.Varz(nil)
	if err != nil {
		return 0
	}
	return v.InBytes + v.OutBytes
}

// StartServer starts a server and waits until it accepts connections.
func StartServer(ctx context.Context, cfg ServerConfig) (*Server, error) {
	opts, err := cfg.options()
	if err != nil {
		return nil, err
	}
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("making the control plane's server: %w", err)
	}
	faults := &firstFault{}
	ns.SetLoggerV2(&logger{log: cfg.Log, fault: faults}, false, false, false)
	ns.Start()
	s := &Server{ns: ns}
	s.close = sync.OnceFunc(func() {
		ns.Shutdown()
		ns.WaitForShutdown()
	})
	if err := s.awaitReady(ctx, faults); err != nil {
		s.Close()
		return nil, fmt.Errorf("starting the control plane's server on %s: %w", cfg.Listen, err)
	}
	return s, nil
}

func (s *Server) awaitReady(ctx context.Context, faults *firstFault) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !s.ns.ReadyForConnections(20 * time.Millisecond) {
		if err := faults.get(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("not ready: %w", err)
		}
	}
	return nil
}

func (cfg *ServerConfig) options() (*server.Options, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	if cfg.TLS == nil || cfg.Dir == "" || cfg.Accounts == nil || !cfg.Accounts.Owned() {
		return nil, errors.New("the control plane's server needs TLS, a folder and accounts of its own")
	}
	opts := &server.Options{}
	if err := cfg.Accounts.configure(opts); err != nil {
		return nil, err
	}
	addr, err := net.ResolveTCPAddr("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("the control plane's address: %w", err)
	}
	host, port := addr.IP.String(), addr.Port
	if addr.IP == nil {
		host = "0.0.0.0"
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	opts.ServerName = cfg.Name
	opts.Host, opts.Port = host, port
	opts.NoSigs, opts.NoLog = true, true // signals and logs belong to the program
	opts.TLS, opts.TLSVerify, opts.TLSConfig = true, true, cfg.TLS
	opts.TLSTimeout, opts.AuthTimeout = tlsTimeout, tlsTimeout+2
	opts.JetStream, opts.StoreDir = true, cfg.Dir
	opts.SyncAlways = true // an acknowledged write survives a power cut
	opts.JetStreamMaxMemory, opts.JetStreamMaxStore = maxMemory, maxStore
	opts.MaxPayload = maxPayload
	return opts, nil
}

// configure makes a server trust these accounts and no others.
func (a *Accounts) configure(opts *server.Options) error {
	operator, err := a.operatorToken()
	if err != nil {
		return err
	}
	claims, err := jwt.DecodeOperatorClaims(operator)
	if err != nil {
		return fmt.Errorf("reading our own operator: %w", err)
	}
	account, err := a.accountToken()
	if err != nil {
		return err
	}
	system, err := a.systemToken()
	if err != nil {
		return err
	}
	resolver := &server.MemAccResolver{}
	if err := errors.Join(resolver.Store(a.account, account), resolver.Store(publicOf(a.system), system)); err != nil {
		return fmt.Errorf("storing the accounts: %w", err)
	}
	opts.TrustedOperators = []*jwt.OperatorClaims{claims}
	opts.SystemAccount = publicOf(a.system)
	opts.AccountResolver = resolver
	return nil
}

// Kick ends a node's connections. It keeps it out only if the TLS
// configuration no longer admits it.
func (s *Server) Kick(node string) error {
	const all = 1 << 20
	conns, err := s.ns.Connz(&server.ConnzOptions{Username: true, Limit: all})
	if err != nil {
		return fmt.Errorf("looking for the connections of node %s: %w", node, err)
	}
	for _, c := range conns.Conns {
		claims, decodeErr := jwt.DecodeUserClaims(c.JWT)
		if decodeErr == nil && claims.Name == control.EscapeElement(node) {
			err = errors.Join(err, s.ns.DisconnectClientByID(c.Cid))
		}
	}
	return err
}

// Addr is where the server listens.
func (s *Server) Addr() *net.TCPAddr {
	addr, ok := s.ns.Addr().(*net.TCPAddr)
	if !ok {
		panic("BUG: the control plane's server has no TCP address")
	}
	return addr
}

// Close stops the server and waits until its files are closed. It is
// idempotent.
func (s *Server) Close() { s.close() }
