package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"
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

// Server is the node's side as an object, for nodes that also dial out.
type Server struct{}

// NewServer checks the configuration, reporting every fault at once.
func NewServer(cfg ServerConfig, h Handler) (*Server, error) { return &Server{}, nil }

// Serve is the method behind the package function of that name.
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return errors.ErrUnsupported }

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

// DialReverse connects to the gateway and serves its sessions until ctx ends,
// reconnecting as needed; the gateway says how many connections it wants.
func (s *Server) DialReverse(ctx context.Context, cfg ReverseConfig) error {
	return errors.ErrUnsupported
}

// GoAway tells every connected gateway to open no new sessions here. Running
// sessions live on.
func (s *Server) GoAway() {}
