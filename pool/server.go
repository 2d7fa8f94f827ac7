package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// Handler gets each inbound session, in its own goroutine. The context ends
// when the session does (for whatever reason) or the server is told to stop
// at once. When the handler returns, the session is closed with CodeNormal
// unless it was closed before; a panic closes it with CodeInternal and goes no
// further.
type Handler func(ctx context.Context, s Session)

// ServerConfig describes the node's side.
type ServerConfig struct {
	// NodeID and SwarmID are announced in the hello. NodeID must be what the
	// certificate says.
	NodeID, SwarmID string
	// TLS holds this node's certificate and the swarm's CA in ClientCAs.
	// TLS 1.3 and a verified client certificate are enforced whatever it says.
	TLS *tls.Config
	// Plaintext allows TLS to be nil: for in-process tests only.
	Plaintext bool
	// Identify extracts the node id from the peer's verified certificate.
	// Nil: the leaf certificate's CommonName.
	Identify func(tls.ConnectionState) (string, error)
	// Settings: ping_*, session_*, writer_queue, send_wait and fair_share
	// apply to the server as well. The zero value means DefaultSettings.
	Settings Settings
	// IdleTimeout closes connections that carried no session for so long.
	// 0: never.
	IdleTimeout time.Duration
	// DrainTime is how long sessions may live on after the context of Serve
	// ends. 0: they are closed at once (with CodeShutdown).
	DrainTime time.Duration
	// MaxConns bounds connections, handshakes included; 0 means 1024.
	MaxConns int
	// MaxSessions bounds sessions per connection; 0 means 16384. An OPEN above
	// it is answered by CLOSE with CodeRefused.
	MaxSessions int
	// HandshakeTimeout bounds TLS and hello together; 0 means 5 s.
	HandshakeTimeout time.Duration
	// Observe receives events; nil discards them. It must not block.
	Observe func(Event)
}

// Serve accepts connections from gateways until ctx ends or the listener
// fails, and returns when every connection and handler it started is gone. It
// closes the listener. A context that ends is not an error: Serve announces
// GOAWAY, lets sessions live for DrainTime, and returns nil.
func Serve(ctx context.Context, l net.Listener, cfg ServerConfig, h Handler) error {
	srv, err := NewServer(cfg, h)
	if err != nil {
		return err
	}
	return srv.Serve(ctx, l)
}

// defaults of ServerConfig; each bounds what strangers can cost.
const (
	defaultMaxConns         = 1024
	defaultMaxSessions      = 16384
	defaultHandshakeTimeout = 5 * time.Second
)

func (c *ServerConfig) validate() error {
	settings, err := c.Settings.orDefault()
	err = errors.Join(validateIdentity(c.NodeID, c.SwarmID), validateTLS(c.TLS, c.Plaintext), err)
	if c.TLS != nil && c.TLS.ClientCAs == nil && c.TLS.RootCAs == nil && c.TLS.GetConfigForClient == nil {
		err = errors.Join(err, errors.New("TLS names no CA: without ClientCAs every public CA could vouch for a gateway"))
	}
	for name, v := range map[string]int64{
		"IdleTimeout": int64(c.IdleTimeout), "DrainTime": int64(c.DrainTime), "MaxConns": int64(c.MaxConns),
		"MaxSessions": int64(c.MaxSessions), "HandshakeTimeout": int64(c.HandshakeTimeout),
	} {
		if v < 0 {
			err = errors.Join(err, fmt.Errorf("%s = %d: allowed is 0 and above", name, v))
		}
	}
	if err != nil {
		return fmt.Errorf("server config: %w", err)
	}
	c.Settings = settings
	c.MaxConns = orDefault(c.MaxConns, defaultMaxConns)
	c.MaxSessions = orDefault(c.MaxSessions, defaultMaxSessions)
	c.HandshakeTimeout = orDefault(c.HandshakeTimeout, defaultHandshakeTimeout)
	if c.Identify == nil {
		c.Identify = commonName
	}
	if c.Observe == nil {
		c.Observe = func(Event) {}
	}
	return nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// Server is the node's side as an object, for nodes that also dial out.
type Server struct {
	cfg     ServerConfig
	handler Handler
	hs      *handshaker
	st      *store
	counts  *counters
	policy  atomic.Pointer[Settings]

	mu struct {
		sync.Mutex
		conns     map[*serverConn]struct{}
		shaking   int // connections in handshake
		goingAway bool
	}
}

// NewServer checks the configuration, reporting every fault at once.
func NewServer(cfg ServerConfig, h Handler) (*Server, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("server config: the handler is nil")
	}
	s := &Server{cfg: cfg, handler: h, st: new(store), counts: new(counters)}
	s.policy.Store(&cfg.Settings)
	s.mu.conns = make(map[*serverConn]struct{})
	s.hs = &handshaker{
		node: cfg.NodeID, swarm: cfg.SwarmID, role: wire.RoleNode,
		identify: cfg.Identify, settings: s.policy.Load,
	}
	if cfg.TLS != nil {
		s.hs.tls = serverTLS(cfg.TLS)
	}
	return s, nil
}

// ReverseConfig says where a node that cannot accept connections finds its
// gateway.
type ReverseConfig struct {
	// Addr is the gateway's reverse listener, host:port.
	Addr string
	// TLS holds the node's certificate and the swarm's CA in RootCAs. Nil: the
	// server's own configuration with RootCAs or, failing that, ClientCAs.
	TLS *tls.Config
	// Gateway is the node id that the gateway must prove. Empty: any member of
	// the swarm.
	Gateway string
	// Dial connects; nil means net.Dialer.
	Dial DialFunc
}

// GoAway tells every connected gateway, and those that connect later, to open
// no new sessions here. Running sessions live on. See Resume.
func (s *Server) GoAway() {
	s.mu.Lock()
	s.mu.goingAway = true
	s.mu.Unlock()
	for _, c := range s.connections() {
		c.announceDrain("paused")
	}
}

// Resume takes sessions again on connections made from now on; gateways replace
// the ones that were told to go.
func (s *Server) Resume() {
	s.mu.Lock()
	s.mu.goingAway = false
	s.mu.Unlock()
}

// Reload changes the policies of new and running connections; windows of
// running connections stay as they were announced.
func (s *Server) Reload(settings Settings) error {
	if err := settings.Validate(); err != nil {
		return err
	}
	s.policy.Store(&settings)
	for _, c := range s.connections() {
		c.link.configure()
	}
	return nil
}

func (s *Server) connections() []*serverConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*serverConn, 0, len(s.mu.conns))
	for c := range s.mu.conns {
		list = append(list, c)
	}
	return list
}

// ServerSnapshot is what is visible of a server at one moment.
type ServerSnapshot struct {
	At             time.Time         `json:"at"`
	Connections    int               `json:"connections"`
	SessionsOpen   int               `json:"sessions_open"`
	SessionsOpened uint64            `json:"sessions_opened"`
	SessionsClosed map[string]uint64 `json:"sessions_closed"`
	Drops          map[string]uint64 `json:"drops"`
	Losses         map[string]uint64 `json:"losses"`
	PingsMissed    uint64            `json:"pings_missed"`
	FramesSent     uint64            `json:"frames_sent"`
	FramesReceived uint64            `json:"frames_received"`
	BytesSent      uint64            `json:"bytes_sent"`
	BytesReceived  uint64            `json:"bytes_received"`
	BufferedBytes  int64             `json:"buffered_bytes"`
}

// Snapshot is everything visible of the server now.
func (s *Server) Snapshot() ServerSnapshot {
	var p Snapshot
	s.counts.export(&p)
	out := ServerSnapshot{
		At: time.Now(), SessionsOpened: p.SessionsOpened, SessionsClosed: p.SessionsClosed, Drops: p.Drops,
		Losses: p.WriterLosses, PingsMissed: p.PingsMissed, FramesSent: p.FramesSent, FramesReceived: p.FramesReceived,
		BytesSent: p.BytesSent, BytesReceived: p.BytesReceived, BufferedBytes: p.BufferedBytes,
	}
	for _, c := range s.connections() {
		out.Connections++
		out.SessionsOpen += c.count()
	}
	return out
}

func (s *Server) event(e Event) {
	e.At = time.Now()
	s.cfg.Observe(e)
}
