package poolbench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/hashicorp/yamux"
)

// server accepts on loopback and hands each connection to handle in a goroutine
// of its own; close ends and awaits them all.
type server struct {
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{} // nil once closed
}

func listen(cfg *tls.Config, handle func(context.Context, net.Conn)) (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &server{listener: tls.NewListener(l, cfg), conns: map[net.Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			if s.keep(c) {
				s.wg.Go(func() { defer s.drop(c); handle(s.ctx, c) })
			}
		}
	})
	return s, nil
}

func (s *server) keep(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		_ = c.Close()
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *server) drop(c net.Conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	_ = c.Close()
}

func (s *server) close() error {
	err := s.listener.Close()
	s.cancel()
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for c := range conns {
		_ = c.Close()
	}
	s.wg.Wait()
	return err
}

func (s *server) addr() string { return s.listener.Addr().String() }

// bareTLS gives each channel a connection of its own.
type bareTLS struct {
	srv *server
	cfg *tls.Config
}

func newBareTLS(id identities) (transport, error) {
	srv, err := listen(id.server, func(ctx context.Context, c net.Conn) { serveStream(ctx, c) })
	if err != nil {
		return nil, err
	}
	return &bareTLS{srv, id.client}, nil
}

func (t *bareTLS) open(ctx context.Context, sp spec) (channel, error) {
	c, err := (&tls.Dialer{Config: t.cfg}).DialContext(ctx, "tcp", t.srv.addr())
	if err != nil {
		return nil, fmt.Errorf("dialing TLS: %w", err)
	}
	return openStream(c, sp)
}

func (t *bareTLS) close() error { return t.srv.close() }

// yamuxTLS carries all channels on one connection.
type yamuxTLS struct {
	srv     *server
	session *yamux.Session
}

// yamuxConfig is the package's default, but silent and with a backlog that suits
// thousands of streams.
func yamuxConfig() *yamux.Config {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	cfg.AcceptBacklog = 1024
	return cfg
}

func newYamux(id identities) (transport, error) {
	srv, err := listen(id.server, serveYamux)
	if err != nil {
		return nil, err
	}
	c, err := tls.Dial("tcp", srv.addr(), id.client)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dialing TLS: %w", err), srv.close())
	}
	s, err := yamux.Client(c, yamuxConfig())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("yamux: %w", err), c.Close(), srv.close())
	}
	return &yamuxTLS{srv, s}, nil
}

func serveYamux(ctx context.Context, c net.Conn) {
	s, err := yamux.Server(c, yamuxConfig())
	if err != nil {
		return
	}
	var wg sync.WaitGroup
	for {
		st, err := s.AcceptStream()
		if err != nil {
			break
		}
		wg.Go(func() { serveStream(ctx, st) })
	}
	_ = s.Close()
	wg.Wait()
}

func (t *yamuxTLS) open(_ context.Context, sp spec) (channel, error) {
	st, err := t.session.OpenStream()
	if err != nil {
		return nil, fmt.Errorf("yamux stream: %w", err)
	}
	return openStream(st, sp)
}

func (t *yamuxTLS) close() error { return errors.Join(t.session.Close(), t.srv.close()) }
