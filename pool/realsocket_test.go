package pool_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"hecate/pool"
	"hecate/pool/faultproxy"
)

// These tests run on real sockets of the loopback. They know nothing of the pool's
// insides, and no test depends on how fast the machine is: guard only turns a
// hang into a failure.
const guard = 60 * time.Second

const (
	gatewayID = "gateway"
	nodeID    = "node"
	swarmID   = "home"
)

// realm is a swarm's certificate authority.
type realm struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	cas  *x509.CertPool
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	r := &realm{t: t, key: key, cas: x509.NewCertPool()}
	r.cert = r.sign(template, template, key)
	r.cas.AddCert(r.cert)
	return r
}

func (r *realm) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	r.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, r.key)
	if err != nil {
		r.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		r.t.Fatal(err)
	}
	return cert
}

// issue makes a certificate whose common name is the node id.
func (r *realm) issue(name string) tls.Certificate {
	r.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	cert := r.sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, r.cert, key)
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// config serves for both sides: it trusts this realm and shows a certificate of it.
func (r *realm) config(name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{r.issue(name)}, RootCAs: r.cas, ClientCAs: r.cas}
}

// chronicle collects events.
type chronicle struct {
	t      *testing.T
	events chan pool.Event
}

func newChronicle(t *testing.T) *chronicle {
	return &chronicle{t, make(chan pool.Event, 1<<16)}
}

func (c *chronicle) observe(e pool.Event) {
	select {
	case c.events <- e:
	default:
		c.t.Error("more events than any test should cause")
	}
}

// await returns the next event of a kind; those before it are passed over.
func (c *chronicle) await(kind pool.EventKind) pool.Event {
	c.t.Helper()
	timeout := time.After(guard)
	for {
		select {
		case e := <-c.events:
			if e.Kind == kind {
				return e
			}
		case <-timeout:
			c.t.Fatalf("no event %q", kind)
		}
	}
}

// node is a server under test.
type node struct {
	*chronicle
	addr string
	stop func() // ends it and waits; idempotent
}

// startNode serves until the test ends. change may adjust the configuration.
func startNode(t *testing.T, r *realm, id string, h pool.Handler, change func(*pool.ServerConfig)) *node {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{chronicle: newChronicle(t), addr: l.Addr().String()}
	cfg := pool.ServerConfig{NodeID: id, SwarmID: swarmID, TLS: r.config(id), Settings: brisk(), Observe: n.observe}
	if change != nil {
		change(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := pool.Serve(ctx, l, cfg, h); err != nil {
			t.Errorf("Serve: %v", err)
		}
	}()
	n.stop = func() { cancel(); <-done }
	t.Cleanup(n.stop)
	return n
}

// gate is a pool under test.
type gate struct {
	*chronicle
	*pool.Pool
	rev uint64
}

// startGate makes a pool whose only group is nodeID at addr.
func startGate(t *testing.T, r *realm, addr string, change func(*pool.Config)) *gate {
	t.Helper()
	g := &gate{chronicle: newChronicle(t)}
	cfg := pool.Config{NodeID: gatewayID, SwarmID: swarmID, TLS: r.config(gatewayID), Settings: brisk(), Observe: g.observe}
	if change != nil {
		change(&cfg)
	}
	p, err := pool.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.Pool = p
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), guard)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	g.apply(map[string]pool.Group{nodeID: pool.GroupOf(addr)})
	return g
}

func (g *gate) apply(groups map[string]pool.Group) {
	g.t.Helper()
	g.rev++
	if err := g.Apply(pool.Map{Revision: g.rev, Groups: groups}); err != nil {
		g.t.Fatal(err)
	}
}

// brisk are the defaults, but a young connection that is lost does not put its endpoint to
// rest: in these tests all are young.
func brisk() pool.Settings {
	s := pool.DefaultSettings()
	s.Quarantine = 0
	return s
}

// until polls for a state that events do not tell.
func (g *gate) until(what string, reached func() bool) {
	g.t.Helper()
	deadline := time.Now().Add(guard)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !reached() {
		if time.Now().After(deadline) {
			g.t.Fatalf("never: %s; %+v", what, g.Ready(nodeID))
		}
		<-tick.C
	}
}

// whole waits until every family of the group has its floor.
func (g *gate) whole() {
	g.t.Helper()
	g.until("floor is reached", func() bool {
		r := g.Ready(nodeID)
		for _, f := range r.Families {
			if f.Living < f.Floor {
				return false
			}
		}
		return r.Ready && len(r.Families) > 0
	})
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), guard)
	t.Cleanup(cancel)
	return ctx
}

// open binds a session; it may take several admissions while things are being repaired.
func (g *gate) open() pool.Session {
	g.t.Helper()
	ctx := timeout(g.t)
	for {
		s, err := g.Open(ctx, nodeID, pool.OpenOptions{})
		if err == nil {
			return s
		}
		if ctx.Err() != nil {
			g.t.Fatalf("no session: %v", err)
		}
	}
}

// echoes checks that the session still does its work.
func (g *gate) echoes(s pool.Session, text string) {
	g.t.Helper()
	got, err := talk(timeout(g.t), s, text)
	if err != nil || string(got) != text {
		g.t.Fatalf("echo: %q, %v", got, err)
	}
	s.Recycle(got)
}

// works checks that a new session can be had and does its work. A session on a
// connection that is lost but not yet known to be may have to be had again.
func (g *gate) works() {
	g.t.Helper()
	ctx := timeout(g.t)
	for {
		s := g.open()
		got, err := talk(ctx, s, "new")
		s.Close(pool.CodeNormal)
		if err == nil && string(got) == "new" {
			return
		}
		if !errors.Is(err, pool.ErrWriterLost) {
			g.t.Fatalf("a new session: %q, %v", got, err)
		}
	}
}

func talk(ctx context.Context, s pool.Session, text string) ([]byte, error) {
	if err := s.Send(ctx, []byte(text)); err != nil {
		return nil, err
	}
	return s.Recv(ctx)
}

// ends waits for the end of a session and returns why.
func (g *gate) ends(s pool.Session) error {
	g.t.Helper()
	select {
	case <-s.Done():
		return s.Err()
	case <-time.After(guard):
		g.t.Fatal("the session does not end")
		return nil
	}
}

// echo is a handler that sends everything back.
func echo(ctx context.Context, s pool.Session) {
	for {
		p, err := s.Recv(ctx)
		if err != nil {
			return
		}
		if err := s.Send(ctx, p); err != nil {
			return
		}
		s.Recycle(p)
	}
}

// proxied starts an echoing node, a fault proxy before it, and a pool that knows
// the node by the proxy's address.
func proxied(t *testing.T, change func(*pool.Config)) (*gate, *faultproxy.Proxy, *node) {
	t.Helper()
	r := newRealm(t)
	n := startNode(t, r, nodeID, echo, nil)
	p, err := faultproxy.Listen("127.0.0.1:0", n.addr, faultproxy.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return startGate(t, r, p.Addr(), change), p, n
}

// set changes what a proxy does.
func set(t *testing.T, p *faultproxy.Proxy, up, down faultproxy.Direction) {
	t.Helper()
	if err := p.Set(faultproxy.Fault{Up: up, Down: down}); err != nil {
		t.Fatal(err)
	}
}
