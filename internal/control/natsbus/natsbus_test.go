package natsbus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
	accounts  *Accounts
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
	if s.accounts, err = OpenAccounts(filepath.Join(t.TempDir(), "bus.json")); err != nil {
		t.Fatal(err)
	}
	s.start(t, "127.0.0.1:0")
	return s
}

func (s *swarm) start(t *testing.T, listen string) {
	t.Helper()
	server, err := StartServer(t.Context(), ServerConfig{
		Name: "gw", Dir: s.dir, Listen: listen,
		TLS: s.gateway.Server(nil, identity.RoleNode, identity.RoleGateway), Accounts: s.accounts,
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
	c, err := Connect(t.Context(), Config{Servers: []string{s.server.Addr().String()}, Credentials: who, User: s.user(t, who.ID())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// user is a login for an identity, as a gateway hands it out.
func (s *swarm) user(t *testing.T, id identity.ID) *User {
	t.Helper()
	if id.Role == identity.RoleGateway {
		u, err := s.accounts.GatewayUser(id.Name)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	u, err := NewUser()
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.accounts.NodeToken(id.Name, u.PublicKey(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	u.SetToken(token)
	return u
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
	s, other := newSwarm(t), newSwarm(t)
	addr := []string{s.server.Addr().String()}
	mini := s.member(t, identity.RoleNode, "mini")
	late := s.user(t, mini.ID())
	token, err := s.accounts.NodeToken("mini", late.PublicKey(), time.Now().Add(-time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	late.SetToken(token)
	stolen := s.user(t, mini.ID())
	victim, err := s.accounts.NodeToken("mini", s.user(t, mini.ID()).PublicKey(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	stolen.SetToken(victim)
	for who, cfg := range map[string]Config{
		"a member of another swarm":           {Servers: addr, Credentials: other.gateway, User: s.user(t, s.gateway.ID())},
		"a user of another swarm":             {Servers: addr, Credentials: s.gateway, User: other.user(t, other.gateway.ID())},
		"somebody with a token but no key":    {Servers: addr, Credentials: mini, User: stolen},
		"somebody whose token has expired":    {Servers: addr, Credentials: mini, User: late},
		"somebody who has a key but no token": {Servers: addr, Credentials: mini, User: &User{key: late.key}},
	} {
		if c, err := Connect(t.Context(), cfg); err == nil {
			c.Close()
			t.Errorf("%s was admitted", who)
		}
	}
	if nc, err := nats.Connect("nats://" + addr[0]); err == nil {
		nc.Close()
		t.Error("somebody without a certificate was admitted")
	}
}

func TestAKickedNodeLosesItsConnection(t *testing.T) {
	s := newSwarm(t)
	mini := s.connect(t, s.member(t, identity.RoleNode, "mini.lan"))
	other := s.connect(t, s.member(t, identity.RoleNode, "other"))
	again := mini.nextReconnect()
	if err := s.server.Kick("mini.lan"); err != nil {
		t.Fatal(err)
	}
	<-again
	if other.nc.Stats().Reconnects != 0 {
		t.Error("somebody else was kicked too")
	}
}

func TestAnAccountOfAnotherOperatorNeedsItsSigningKeysOnly(t *testing.T) {
	s := newSwarm(t)
	path := filepath.Join(t.TempDir(), "bus.json")
	text := fmt.Sprintf(`{"version": 1, "account": %q, "node_seed": %q, "gateway_seed": %q}`,
		s.accounts.account, seedOf(s.accounts.node), seedOf(s.accounts.gateway))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lent, err := OpenAccounts(path)
	if err != nil || lent.Owned() {
		t.Fatalf("owned: %v, %v", lent.Owned(), err)
	}
	if _, err := lent.ServerConfig(); err == nil {
		t.Error("it configures somebody else's servers")
	}
	s.accounts = lent
	s.connectGateway(t)
	if _, err := s.connect(t, s.member(t, identity.RoleNode, "mini")).List(t.Context(), control.BucketPlan); err != nil {
		t.Error(err)
	}
}

func TestAccountsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus.json")
	first, err := OpenAccounts(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAccounts(path)
	if err != nil || again.account != first.account || seedOf(again.node) != seedOf(first.node) || !again.Owned() {
		t.Errorf("opened again: %v", err)
	}
	for what, text := range map[string]string{
		"not JSON": "{", "no account": `{"version":1}`, "later version": `{"version":9}`,
		"no seeds": `{"version":1,"account":"` + first.account + `"}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenAccounts(path); err == nil {
			t.Errorf("%s was accepted", what)
		}
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
		TLS: s.gateway.Server(nil, identity.RoleNode), Accounts: s.accounts,
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
	if _, err := Connect(ctx, Config{Servers: []string{silent.Addr().String()}, Credentials: s.gateway, User: s.user(t, s.gateway.ID())}); !errors.Is(err, context.Canceled) {
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
