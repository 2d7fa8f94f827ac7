package natsbus

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/internal/control/identity"
)

// swarm is an authority, a gateway's credentials and a running server.
type swarm struct {
	authority *identity.Authority
	gateway   *identity.Credentials
	server    *Server
	dir       string
}

func newSwarm(t *testing.T) *swarm {
	t.Helper()
	a, err := identity.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &swarm{authority: a, dir: t.TempDir()}
	s.gateway = s.member(t, identity.RoleGateway, "gw")
	s.start(t, "127.0.0.1:0")
	return s
}

func (s *swarm) start(t *testing.T, listen string) {
	t.Helper()
	server, err := StartServer(t.Context(), ServerConfig{
		Name: "gw", Dir: s.dir, Listen: listen,
		TLS: s.gateway.Server(nil, identity.RoleNode, identity.RoleGateway),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.server = server
}

func (s *swarm) member(t *testing.T, role identity.Role, name string) *identity.Credentials {
	t.Helper()
	key, err := identity.LoadOrMakeKey(t.TempDir() + "/key")
	if err != nil {
		t.Fatal(err)
	}
	chain, err := s.authority.Issue(role, name, key.Public())
	if err != nil {
		t.Fatal(err)
	}
	c, err := identity.NewCredentials(key, chain)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *swarm) connect(t *testing.T, who *identity.Credentials) *Conn {
	t.Helper()
	c, err := Connect(t.Context(), Config{Servers: []string{s.server.Addr().String()}, Credentials: who})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (s *swarm) connectGateway(t *testing.T) *Conn {
	t.Helper()
	c := s.connect(t, s.gateway)
	if err := c.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestStoreKeepsItsContract(t *testing.T) {
	s := newSwarm(t)
	controltest.StoreContract(t, s.connectGateway(t))
}

func TestEverythingSurvivesARestartOfTheServer(t *testing.T) {
	s := newSwarm(t)
	c := s.connectGateway(t)
	node := s.connect(t, s.member(t, identity.RoleNode, "mini"))
	rev, err := c.Create(t.Context(), control.BucketPlan, control.PlanKey, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	updates, err := node.Watch(t.Context(), control.BucketPlan, control.PlanKey)
	if err != nil {
		t.Fatal(err)
	}
	expect := func(want string) {
		t.Helper()
		for u := range updates {
			if u.Synced {
				continue
			}
			if string(u.Value) != want {
				t.Fatalf("update %q, want %q", u.Value, want)
			}
			return
		}
	}
	expect("one")
	addr := s.server.Addr().String()
	s.server.Close()
	s.start(t, addr)
	await(t, func() bool {
		e, err := c.Get(t.Context(), control.BucketPlan, control.PlanKey)
		return err == nil && e.Revision == rev && string(e.Value) == "one"
	})
	next, err := c.CompareAndSet(t.Context(), control.BucketPlan, control.PlanKey, []byte("two"), rev)
	if err != nil || next <= rev {
		t.Fatalf("revision %d after %d: %v", next, rev, err)
	}
	expect("two")
}

func TestRevisionsGrowThoughTheBucketIsEmptyAndTheServerWasRestarted(t *testing.T) {
	s := newSwarm(t)
	c := s.connectGateway(t)
	first, err := c.Create(t.Context(), control.BucketLease, "planner", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), control.BucketLease, "planner", first); err != nil {
		t.Fatal(err)
	}
	addr := s.server.Addr().String()
	s.server.Close()
	s.start(t, addr)
	await(t, func() bool {
		second, err := c.Create(t.Context(), control.BucketLease, "planner", []byte("b"))
		if err == nil && second <= first {
			t.Fatalf("epoch %d after %d", second, first)
		}
		return err == nil
	})
}

func TestBusDeliversAsksAndSaysWhenNobodyIsThere(t *testing.T) {
	s := newSwarm(t)
	c := s.connectGateway(t)
	node := s.connect(t, s.member(t, identity.RoleNode, "mini.lan"))
	heard := make(chan string, 1)
	stop, err := c.Subscribe(control.AllHealth, func(m control.Message) { heard <- m.Subject + " " + string(m.Data) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if _, err := c.Request(t.Context(), control.CommandSubject("mini.lan"), nil); !errors.Is(err, control.ErrNoResponder) {
		t.Errorf("request to nobody: %v", err)
	}
	if err := node.Publish(control.HealthSubject("mini.lan"), []byte("well")); err != nil {
		t.Fatal(err)
	}
	if got := <-heard; got != "hecate.v1.node.mini=2Elan.health well" {
		t.Errorf("heard %q", got)
	}
	stopCommands, err := node.Subscribe(control.CommandSubject("mini.lan"), func(m control.Message) {
		if err := m.Respond(append([]byte("yes "), m.Data...)); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stopCommands()
	flush(t, node)
	answer, err := c.Request(t.Context(), control.CommandSubject("mini.lan"), []byte("there?"))
	if err != nil || string(answer) != "yes there?" {
		t.Errorf("answer %q, %v", answer, err)
	}
}

// TestANodeMayDoNothingElse tries what a node has no business doing. Each is
// refused by the server; what is granted works in the same connection.
func TestANodeMayDoNothingElse(t *testing.T) {
	s := newSwarm(t)
	gw := s.connectGateway(t)
	if _, err := gw.Create(t.Context(), control.BucketKeys, "secret", []byte("x")); err != nil {
		t.Fatal(err)
	}
	node := s.connect(t, s.member(t, identity.RoleNode, "mini"))
	publish := []string{
		control.HealthSubject("other"), control.CommandSubject("mini"), control.CommandSubject("other"), "hecate.v1.event.x",
		"$KV.plan.current", "$KV.keys.x", "$KV.nodes.mini", "$JS.API.STREAM.DELETE.KV_plan", "$JS.API.STREAM.PURGE.KV_plan",
		"$JS.API.STREAM.INFO.KV_keys", "$JS.API.STREAM.MSG.GET.KV_plan", "$JS.API.CONSUMER.CREATE.KV_keys.c",
		"$JS.API.CONSUMER.CREATE.KV_nodes.c", "$JS.API.DIRECT.GET.KV_keys.$KV.keys.secret", "$JS.API.INFO",
		"$JS.API.STREAM.CREATE.X", "$JS.API.STREAM.UPDATE.KV_plan", "_INBOX.gateway-gw.x", "$SYS.REQ.SERVER.PING",
	}
	for _, subject := range publish {
		if !refused(t, node, subject, func() error { return node.nc.PublishRequest(subject, InboxPrefix(nodeID(s, "mini"))+".x", nil) }) {
			t.Errorf("a node may publish on %s", subject)
		}
	}
	subscribe := []string{
		control.AllHealth, ">", "_INBOX.>", "_INBOX.gateway-gw.>", control.CommandSubject("other"), "$KV.>", "hecate.v1.>",
	}
	for _, subject := range subscribe {
		if !refused(t, node, subject, func() error {
			_, err := node.nc.SubscribeSync(subject)
			return err
		}) {
			t.Errorf("a node may listen on %s", subject)
		}
	}
	own := control.HealthSubject("mini")
	if refused(t, node, own, func() error { return node.Publish(own, nil) }) {
		t.Error("a node may not report its own health")
	}
	for _, b := range []control.Bucket{control.BucketPlan, control.BucketModels} {
		if _, err := node.List(t.Context(), b); err != nil {
			t.Errorf("reading %s: %v", b, err)
		}
		if _, err := node.Get(t.Context(), b, "x"); !errors.Is(err, control.ErrNotFound) {
			t.Errorf("getting from %s: %v", b, err)
		}
	}
}

func nodeID(s *swarm, name string) identity.ID {
	return identity.ID{Swarm: s.authority.Swarm(), Role: identity.RoleNode, Name: name}
}

// refused performs an action on a subject and reports whether the server
// refused it.
func refused(t *testing.T, c *Conn, subject string, act func() error) bool {
	t.Helper()
	if err := act(); err != nil {
		t.Fatal(err)
	}
	flush(t, c)
	err := c.nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(strings.ToLower(err.Error()), strings.ToLower(`"`+subject+`"`))
}

// flush waits until the server handled everything before.
func flush(t *testing.T, c *Conn) {
	t.Helper()
	if err := c.nc.FlushTimeout(10 * time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestStrangersAreNotAdmitted(t *testing.T) {
	s := newSwarm(t)
	other := newSwarm(t)
	addr := s.server.Addr().String()
	if _, err := Connect(t.Context(), Config{Servers: []string{addr}, Credentials: other.gateway}); err == nil {
		t.Error("a member of another swarm was admitted")
	}
	if nc, err := nats.Connect("nats://" + addr); err == nil {
		nc.Close()
		t.Error("somebody without a certificate was admitted")
	}
}

func TestServerSaysWhyItDoesNotStart(t *testing.T) {
	s := newSwarm(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = StartServer(t.Context(), ServerConfig{
		Name: "x", Dir: t.TempDir(), Listen: taken.Addr().String(),
		TLS: s.gateway.Server(nil, identity.RoleNode),
	})
	if err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("a port in use: %v", err)
	}
}

func TestConnectObeysItsContext(t *testing.T) {
	s := newSwarm(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(ctx, Config{Servers: []string{silent.Addr().String()}, Credentials: s.gateway}); !errors.Is(err, context.Canceled) {
		t.Errorf("connect: %v", err)
	}
}

// await polls for what happens in another goroutine; the test's own deadline
// bounds it.
func await(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("it did not happen")
		case <-tick.C:
		}
	}
}
