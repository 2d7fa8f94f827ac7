package pool_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"hecate/pool"
	"hecate/pool/wire"
)

// Each way in which a gateway and a node do not fit: no session comes about, and
// both sides say why.
func TestRealSocketMismatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name               string
		node               func(*pool.ServerConfig, *realm)
		gate               func(*pool.Config, *realm)
		gateSays, nodeSays string
	}{
		{
			name: "wrong swarm", gateSays: `swarm "home" here, "work" there`, nodeSays: `swarm "home" here, "work" there`,
			gate: func(c *pool.Config, _ *realm) { c.SwarmID = "work" },
		},
		{
			name: "node of another authority", gateSays: "unknown authority", nodeSays: "bad certificate",
			node: func(c *pool.ServerConfig, foreign *realm) {
				c.TLS.Certificates = []tls.Certificate{foreign.issue(nodeID)}
			},
		},
		{
			name: "gateway of another authority", gateSays: "certificate", nodeSays: "unknown authority",
			gate: func(c *pool.Config, foreign *realm) {
				c.TLS.Certificates = []tls.Certificate{foreign.issue(gatewayID)}
			},
		},
		{
			name: "gateway without certificate", gateSays: "certificate", nodeSays: "didn't provide a certificate",
			gate: func(c *pool.Config, _ *realm) { c.TLS.Certificates = nil },
		},
		{
			name: "another node than wanted", gateSays: `wanted "node", met "stranger"`, nodeSays: `wanted "node", met "stranger"`,
			node: func(c *pool.ServerConfig, _ *realm) { c.NodeID = "stranger" },
		},
		{
			name: "hello and certificate differ", gateSays: `hello says "admin", certificate "gateway"`,
			nodeSays: `hello says "admin", certificate "gateway"`,
			gate:     func(c *pool.Config, _ *realm) { c.NodeID = "admin" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home, foreign := newRealm(t), newRealm(t)
			n := startNode(t, home, nodeID, echo, func(cfg *pool.ServerConfig) {
				if c.name == "another node than wanted" {
					cfg.TLS = home.config("stranger")
				}
				if c.node != nil {
					c.node(cfg, foreign)
				}
			})
			g := startGate(t, home, n.addr, func(cfg *pool.Config) {
				cfg.Settings.NoWriterWait = pool.Duration(100 * time.Millisecond)
				if c.gate != nil {
					c.gate(cfg, foreign)
				}
			})
			if e := g.awaitAny(pool.EventConnectFailed, pool.EventRefused, pool.EventWriterLost); !strings.Contains(e.Reason, c.gateSays) {
				t.Errorf("the gateway says %v, want %q", e, c.gateSays)
			}
			if e := n.await(pool.EventRefused); !strings.Contains(e.Reason, c.nodeSays) {
				t.Errorf("the node says %v, want %q", e, c.nodeSays)
			}
			if _, err := g.Open(timeout(t), nodeID, pool.OpenOptions{}); !errors.Is(err, pool.ErrNoWriter) {
				t.Errorf("Open: %v", err)
			}
		})
	}
}

// awaitAny returns the next event of any of the kinds.
func (c *chronicle) awaitAny(kinds ...pool.EventKind) pool.Event {
	c.t.Helper()
	timeout := time.After(guard)
	for {
		select {
		case e := <-c.events:
			for _, k := range kinds {
				if e.Kind == k {
					return e
				}
			}
		case <-timeout:
			c.t.Fatalf("none of the events %q", kinds)
		}
	}
}

// A node of the future meets today's gateway, and the other way round.
func TestRealSocketVersionMismatch(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		addr := startRaw(t, r, func(c *tls.Conn) {
			h := wire.Hello{MinVersion: 7, MaxVersion: 9, Node: nodeID, Swarm: swarmID, Role: wire.RoleNode}
			_, err := wire.Accept(context.Background(), c, h, wire.HandshakeOptions{})
			if !errors.Is(err, &wire.Refusal{Reason: wire.RefuseVersion}) && !closedEarly(err) {
				t.Errorf("the node got %v", err)
			}
		})
		g := startGate(t, r, addr, nil)
		if e := g.awaitAny(pool.EventConnectFailed, pool.EventRefused); !strings.Contains(e.Reason, "version") || !strings.Contains(e.Reason, "7 to 9") {
			t.Errorf("the gateway says %v", e)
		}
	})
	t.Run("gateway", func(t *testing.T) {
		t.Parallel()
		n := startNode(t, r, nodeID, echo, nil)
		c := dialTLS(t, r, n.addr, gatewayID)
		h := wire.Hello{MinVersion: 7, MaxVersion: 9, Node: gatewayID, Swarm: swarmID, Role: wire.RoleGateway}
		_, err := wire.Dial(context.Background(), c, h, wire.HandshakeOptions{})
		var refusal *wire.Refusal
		if !errors.As(err, &refusal) || refusal.Reason != wire.RefuseVersion || !refusal.Remote {
			t.Errorf("the gateway got %v", err)
		}
		if e := n.await(pool.EventRefused); !strings.Contains(e.Reason, "7 to 9") {
			t.Errorf("the node says %v", e)
		}
	})
}

func closedEarly(err error) bool { return err != nil && !errors.Is(err, wire.ErrRefused) }

// Roles: a node that dials a node finds no work there.
func TestRealSocketWrongRole(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	n := startNode(t, r, nodeID, echo, nil)
	for _, h := range []wire.Hello{
		{Node: "other", Swarm: swarmID, Role: wire.RoleNode},
		{Node: "other", Swarm: swarmID, Role: wire.RoleGateway, Reverse: true},
	} {
		_, err := wire.Dial(context.Background(), dialTLS(t, r, n.addr, "other"), h, wire.HandshakeOptions{})
		if !errors.Is(err, &wire.Refusal{Reason: wire.RefuseRole}) {
			t.Errorf("%v, reverse %v: %v", h.Role, h.Reverse, err)
		}
		n.await(pool.EventRefused)
	}
}

// startRaw accepts TLS with the node's certificate and hands each connection to f.
func startRaw(t *testing.T, r *realm, f func(*tls.Conn)) (addr string) {
	t.Helper()
	cfg := r.config(nodeID)
	cfg.ClientAuth = tls.RequireAndVerifyClientCert
	l, err := tls.Listen("tcp", "127.0.0.1:0", cfg)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	conns := make(chan struct{}, 1024) // a token per connection that is being served
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- struct{}{}
			go func() {
				defer func() { <-conns }()
				defer c.Close()
				f(c.(*tls.Conn))
			}()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for range cap(conns) {
			conns <- struct{}{} // all tokens are back: everybody is gone
		}
	})
	return l.Addr().String()
}

// dialTLS connects as name, without a hello.
func dialTLS(t *testing.T, r *realm, addr, name string) *tls.Conn {
	t.Helper()
	cfg := r.config(name)
	cfg.InsecureSkipVerify = true // by chain and not by host name, as the pool does
	cfg.VerifyConnection = func(s tls.ConnectionState) error {
		_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: r.cas, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	raw, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, cfg)
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(guard))
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	return c
}
