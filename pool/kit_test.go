package pool

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hecate/pool/memnet"
)

// authority is a throw-away CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert: cert, key: key, pool: x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

// tls issues a certificate for the node and wraps it in a configuration for
// both sides.
func (a *authority) tls(t testing.TB, node string) *tls.Config {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: node},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs:      a.pool, ClientCAs: a.pool, MinVersion: tls.VersionTLS13,
	}
}

// world is a gateway with its pool and some nodes on an in-memory network,
// in plaintext; run inside a synctest bubble.
type world struct {
	t      *testing.T
	net    *memnet.Network
	pool   *Pool
	nodes  map[string]*node
	events *eventLog
	rev    uint64
}

type node struct {
	name   string
	srv    *Server
	cancel context.CancelFunc
	done   chan error
}

// eventLog keeps events for assertions.
type eventLog struct {
	mu   sync.Mutex
	list []Event
}

func (l *eventLog) add(e Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, e)
}

// all is a copy of what happened so far; the pool goes on adding.
func (l *eventLog) all() []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

func (l *eventLog) count(kind EventKind) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, e := range l.list {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func (l *eventLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	for _, e := range l.list {
		fmt.Fprintf(&b, "%s %s\n", e.At.Format("15:04:05.000"), e)
	}
	return b.String()
}

// inWorld runs f in fake time with a pool that is closed, and checked for
// leaks, at the end.
func inWorld(t *testing.T, change func(*Settings), f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		defer w.close()
		f(w)
	})
}

func newWorld(t *testing.T, change func(*Settings)) *world {
	t.Helper()
	w := &world{t: t, net: memnet.New(1), nodes: map[string]*node{}, events: &eventLog{}}
	s := DefaultSettings()
	if change != nil {
		change(&s)
	}
	p, err := New(Config{
		NodeID: "gateway", SwarmID: "swarm", Plaintext: true, Settings: s, Cores: 8, Seed: 7,
		Dial: w.net.Dialer("gateway"), Observe: w.events.add,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.pool = p
	return w
}

func (w *world) close() {
	w.t.Helper()
	_ = w.pool.Close(context.Background()) // says how many sessions it cut off
	if n := w.pool.counts.buffered.Load(); n != 0 {
		w.t.Errorf("%d bytes are still counted as buffered after Close", n)
	}
	if n := w.pool.reg.open.Load(); n != 0 {
		w.t.Errorf("%d sessions are still registered after Close", n)
	}
	for _, n := range w.nodes {
		n.stop(w.t)
		if b := n.srv.counts.buffered.Load(); b != 0 {
			w.t.Errorf("%s: %d bytes are still counted as buffered", n.name, b)
		}
	}
	if err := w.net.Close(); err != nil {
		w.t.Errorf("network: %v", err)
	}
	if w.t.Failed() {
		w.t.Logf("events:\n%s", w.events)
	}
}

// start runs a node called name on name:1.
func (w *world) start(name string, h Handler, change func(*ServerConfig)) *node {
	w.t.Helper()
	cfg := ServerConfig{NodeID: name, SwarmID: "swarm", Plaintext: true}
	if change != nil {
		change(&cfg)
	}
	srv, err := NewServer(cfg, h)
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := w.net.Listen(name + ":1")
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{name: name, srv: srv, cancel: cancel, done: make(chan error, 1)}
	go func() { n.done <- srv.Serve(ctx, l) }()
	w.nodes[name] = n
	return n
}

func (n *node) stop(t *testing.T) {
	n.cancel()
	if n.done == nil {
		return
	}
	if err := <-n.done; err != nil {
		t.Errorf("%s: %v", n.name, err)
	}
	n.done = nil
}

// apply makes a map of the named groups, one endpoint each.
func (w *world) apply(names ...string) {
	w.t.Helper()
	m := Map{Groups: map[string]Group{}}
	for _, name := range names {
		m.Groups[name] = GroupOf(name + ":1")
	}
	w.applyMap(m)
}

func (w *world) applyMap(m Map) {
	w.t.Helper()
	w.rev++
	m.Revision = w.rev
	if err := w.pool.Apply(m); err != nil {
		w.t.Fatal(err)
	}
}

// settle lets d of fake time pass and everything react.
func settle(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) open(group string, opt OpenOptions) Session {
	w.t.Helper()
	s, err := w.pool.Open(context.Background(), group, opt)
	if err != nil {
		w.t.Fatalf("open on %s: %v", group, err)
	}
	return s
}

func (w *world) group(name string) GroupSnapshot {
	w.t.Helper()
	for _, g := range w.pool.Snapshot().Groups {
		if g.Group == name {
			return g
		}
	}
	w.t.Fatalf("no group %q in the snapshot", name)
	return GroupSnapshot{}
}

// echo sends every message back.
func echo(ctx context.Context, s Session) {
	for {
		m, err := s.Recv(ctx)
		if err != nil {
			return
		}
		if err := s.Send(ctx, m); err != nil {
			return
		}
		s.Recycle(m)
	}
}

// hold keeps sessions open and reads nothing.
func hold(ctx context.Context, s Session) { <-ctx.Done() }

func mustEcho(t testing.TB, s Session, payload []byte) {
	t.Helper()
	ctx := context.Background()
	if err := s.Send(ctx, payload); err != nil {
		t.Fatalf("send: %v", err)
	}
	got, err := s.Recv(ctx)
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	if !bytes.Equal(got, payload) {
		t.Fatalf("sent %d bytes, got %d others back", len(payload), len(got))
	}
}

// wantClose checks how a session ended.
func wantClose(t testing.TB, err error, code CloseCode) {
	t.Helper()
	var c *CloseError
	if !errors.As(err, &c) || c.Code != code {
		t.Fatalf("session ended with %v, want code %v", err, code)
	}
}

// noLeaks fails when goroutines of this test outlive it, in real time.
func noLeaks(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for range 200 {
			if runtime.NumGoroutine() <= before {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		buf := make([]byte, 1<<16)
		t.Errorf("goroutines: %d before, %d after\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
	})
}

// loopback starts a node on a real socket with TLS and a pool that knows it.
func loopback(t testing.TB, h Handler, names ...string) (*Pool, Map) {
	t.Helper()
	ca := newAuthority(t)
	m := Map{Revision: 1, Groups: map[string]Group{}}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, name := range names {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		m.Groups[name] = GroupOf(l.Addr().String())
		wg.Go(func() {
			if err := Serve(ctx, l, ServerConfig{NodeID: name, SwarmID: "swarm", TLS: ca.tls(t, name)}, h); err != nil {
				t.Errorf("serve %s: %v", name, err)
			}
		})
	}
	p, err := New(Config{NodeID: "gateway", SwarmID: "swarm", TLS: ca.tls(t, "gateway")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Close(context.Background())
		cancel()
		wg.Wait()
	})
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	return p, m
}

func listenLoopback(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
