package enrol

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/internal/control/identity"
	"hecate/swarm"
)

// An endpoint is a gateway's enrolment endpoint on loopback.
type endpoint struct {
	authority *identity.Authority
	store     *controltest.Store
	bus       *controltest.Bus
	tokens    *Tokens
	address   string
}

func newEndpoint(t *testing.T) *endpoint {
	t.Helper()
	return newEndpointOn(t, func(s control.Store) control.Store { return s })
}

// newEndpointOn has the gateway see the store through something.
func newEndpointOn(t *testing.T, through func(control.Store) control.Store) *endpoint {
	t.Helper()
	a, err := identity.OpenAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	key, err := identity.LoadOrMakeKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	chain, err := a.Issue(identity.RoleGateway, "gw", key.Public())
	if err != nil {
		t.Fatal(err)
	}
	credentials, err := identity.NewCredentials(key, chain)
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{authority: a, store: controltest.NewStore(), bus: controltest.NewBus()}
	e.tokens = NewTokens(e.store)
	server := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: NewServer(ServerConfig{
		Authority: a, Store: through(e.store), Bus: e.bus,
		BusServers: func(net.Addr) []string { return []string{"127.0.0.1:4222"} },
		Gateways:   func(seen net.Addr) []string { return []string{seen.String()} },
		BusToken:   func(node, key string) (string, error) { return "token of " + node + " for " + key, nil },
	})}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", credentials.OpenServer())
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it always ends with an error
	}()
	t.Cleanup(func() { server.Close(); <-done })
	e.address = listener.Addr().String()
	return e
}

func (e *endpoint) token(t *testing.T, o TokenOptions) Token {
	t.Helper()
	o.Addresses = append(o.Addresses, e.address)
	tok, err := e.tokens.Create(t.Context(), e.authority.Fingerprint(), o)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func (e *endpoint) record(t *testing.T, id string) *control.NodeRecord {
	t.Helper()
	entry, err := e.store.Get(t.Context(), control.BucketNodes, id)
	if err != nil {
		t.Fatal(err)
	}
	rec := new(control.NodeRecord)
	if err := control.Decode(entry.Value, rec); err != nil {
		t.Fatal(err)
	}
	return rec
}

func someStart(instance string) AttachRequest {
	return AttachRequest{
		Instance: instance, Host: "h", PID: 1, BusKey: "Ukey",
		Profile: swarm.NodeProfile{MemoryBytes: 1 << 30, Score: 1, Endpoints: []string{"0.0.0.0:7000"}},
	}
}

func TestAMachineEnrolsOnceAndKeepsItsIdentity(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	if _, err := Load(dir, Options{}); !errors.Is(err, ErrNotEnrolled) {
		t.Fatalf("an empty folder: %v", err)
	}
	tok := e.token(t, TokenOptions{})
	first, err := Join(t.Context(), dir, tok, "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{fileKey, fileCert, fileHome} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	again, err := Join(t.Context(), dir, tok, "mini", Options{}) // the token is used up
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []*Enrolment{again, loaded} {
		if other.Credentials().ID() != first.Credentials().ID() || !other.Credentials().Leaf().Equal(first.Credentials().Leaf()) {
			t.Error("the identity changed")
		}
	}
	list, err := e.tokens.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Used != 1 || list[0].ID != tok.ID() {
		t.Errorf("tokens: %+v, %v", list, err)
	}
}

func TestAMachineThatLostItsCertificateGetsItBackForItsKey(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	tok := e.token(t, TokenOptions{})
	if _, err := Join(t.Context(), dir, tok, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, fileHome)); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), dir, tok, "mini", Options{}); err != nil {
		t.Errorf("the same key with the used token: %v", err)
	}
}

func TestWhoIsNotLetIn(t *testing.T) {
	e, other := newEndpoint(t), newEndpoint(t)
	used := e.token(t, TokenOptions{})
	if _, err := Join(t.Context(), t.TempDir(), used, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	revoked := e.token(t, TokenOptions{})
	if err := e.tokens.Revoke(t.Context(), "nobody"); !errors.Is(err, ErrTokenUnknown) || !strings.Contains(err.Error(), "token ls") {
		t.Errorf("revoking what is not there: %v", err)
	}
	if err := e.tokens.Revoke(t.Context(), revoked.ID()); err != nil {
		t.Fatal(err)
	}
	expired := e.token(t, TokenOptions{Life: time.Nanosecond})
	expired.Expires = time.Now().Add(time.Hour) // a node whose clock is behind asks anyway
	foreign := other.token(t, TokenOptions{})
	foreign.Addresses = []string{e.address}
	guessed := e.token(t, TokenOptions{})
	guessed.Secret[0]++
	unreachable := e.token(t, TokenOptions{})
	unreachable.Addresses = []string{"127.0.0.1:1"}
	good := e.token(t, TokenOptions{Uses: 100})
	for _, c := range []struct {
		what  string
		token Token
		name  string
		want  error
		says  string
	}{
		{"used up", used, "a", ErrTokenUsedUp, "as many machines"},
		{"revoked", revoked, "a", ErrTokenUnknown, "revoked"},
		{"expired", expired, "a", ErrTokenExpired, "expired"},
		{"of another swarm", foreign, "a", identity.ErrOtherSwarm, "another swarm"},
		{"guessed", guessed, "a", ErrTokenUnknown, ""},
		{"unreachable", unreachable, "a", nil, "is it running"},
		{"name taken", good, "mini", ErrNameTaken, "--name"},
		{"name with a path", good, "../mini", control.ErrBadName, ""},
	} {
		dir := t.TempDir()
		_, err := Join(t.Context(), dir, c.token, c.name, Options{})
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.what, err)
		}
		if _, err := Load(dir, Options{}); !errors.Is(err, ErrNotEnrolled) {
			t.Errorf("%s: the folder is enrolled (%v)", c.what, err)
		}
	}
	if rec := e.record(t, "mini"); rec.Desired != control.DesiredActive {
		t.Errorf("the first one: %+v", rec)
	}
	if _, err := Join(t.Context(), t.TempDir(), good, "laptop", Options{}); err != nil {
		t.Errorf("a good token: %v", err)
	}
}

func TestOneKeyIsOneNode(t *testing.T) {
	e := newEndpoint(t)
	tok := e.token(t, TokenOptions{Uses: 9})
	dir := t.TempDir()
	if _, err := Join(t.Context(), dir, tok, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, fileHome)); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), dir, tok, "maxi", Options{}); !errors.Is(err, ErrKeyTaken) || !strings.Contains(err.Error(), `"mini"`) {
		t.Errorf("the same key under another name: %v", err)
	}
}

func TestATokenLetsInNoMoreThanItMayAtOnce(t *testing.T) {
	e := newEndpoint(t)
	tok := e.token(t, TokenOptions{Uses: 3})
	var wg sync.WaitGroup
	results := make(chan error, 8)
	for i := range 8 {
		dir := t.TempDir()
		wg.Go(func() {
			_, err := Join(t.Context(), dir, tok, "node-"+string(rune('a'+i)), Options{})
			results <- err
		})
	}
	wg.Wait()
	close(results)
	in := 0
	for err := range results {
		if err == nil {
			in++
		} else if !errors.Is(err, ErrTokenUsedUp) {
			t.Error(err)
		}
	}
	if in != 3 {
		t.Errorf("%d were let in by a token for 3", in)
	}
}

func TestAttachGivesIncarnationsAndAddresses(t *testing.T) {
	e := newEndpoint(t)
	n, err := Join(t.Context(), t.TempDir(), e.token(t, TokenOptions{}), "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	attach := func(instance string, want uint64) Attached {
		t.Helper()
		at, err := n.Attach(t.Context(), someStart(instance))
		if err != nil || at.Incarnation != want {
			t.Fatalf("attach: %+v, %v, want incarnation %d", at, err, want)
		}
		return at
	}
	at := attach("one", 1)
	if len(at.Bus) != 1 || at.Gateways[0] != e.address || at.Desired != control.DesiredActive || at.Observed != "127.0.0.1" ||
		at.BusToken != "token of mini for Ukey" {
		t.Errorf("attached: %+v", at)
	}
	attach("one", 1)
	attach("two", 2)
	if rec := e.record(t, "mini"); rec.Profile.Endpoints[0] != "127.0.0.1:7000" || rec.Profile.ID != "mini" || rec.Instance != "two" {
		t.Errorf("record: %+v", rec)
	}
	bad := someStart("three")
	bad.Profile.MemoryBytes = 0
	if _, err := n.Attach(t.Context(), bad); !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), "memory of 0") {
		t.Errorf("a node without memory: %v", err)
	}
}

func TestASecondProcessWithTheSameKeyIsRefusedWhileTheFirstLives(t *testing.T) {
	e := newEndpoint(t)
	n, err := Join(t.Context(), t.TempDir(), e.token(t, TokenOptions{}), "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	at, err := n.Attach(t.Context(), someStart("one"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	done := make(chan error, 1)
	reporter := control.NewReporter(control.ReporterConfig{Node: "mini", Incarnation: at.Incarnation, Instance: "one", Fill: func(*control.Health) {}})
	heard := make(chan struct{}, 1)
	stop, err := e.bus.Subscribe(control.HealthSubject("mini"), func(control.Message) {
		select {
		case heard <- struct{}{}:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	go func() { done <- reporter.Run(ctx, e.bus) }()
	<-heard
	if _, err := n.Attach(t.Context(), someStart("two")); !errors.Is(err, ErrDuplicate) || !strings.Contains(err.Error(), "data folder of its own") {
		t.Errorf("a second process: %v", err)
	}
	if rec := e.record(t, "mini"); rec.Incarnation != 1 || rec.Instance != "one" {
		t.Errorf("the refused one left its mark: %+v", rec)
	}
	kill()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if at, err := n.Attach(t.Context(), someStart("two")); err != nil || at.Incarnation != 2 {
		t.Errorf("after the first one's death: %+v, %v", at, err)
	}
}

func TestRemovedNodesStayOutUntilTheyEnrolAnew(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	n, err := Join(t.Context(), dir, e.token(t, TokenOptions{}), "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(t.Context(), someStart("one")); err != nil {
		t.Fatal(err)
	}
	if err := control.SetDesired(t.Context(), e.store, "mini", control.DesiredRemoved); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(t.Context(), someStart("two")); !errors.Is(err, ErrRemoved) {
		t.Errorf("attach: %v", err)
	}
	if _, err := n.Renew(t.Context()); !errors.Is(err, ErrRemoved) {
		t.Errorf("renew: %v", err)
	}
	fresh := t.TempDir()
	back, err := Join(t.Context(), fresh, e.token(t, TokenOptions{}), "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if at, err := back.Attach(t.Context(), someStart("three")); err != nil || at.Incarnation != 2 {
		t.Errorf("enrolled anew: %+v, %v", at, err)
	}
	if _, err := n.Attach(t.Context(), someStart("four")); !errors.Is(err, ErrUnknown) {
		t.Errorf("the old key: %v", err)
	}
}

// A machine that was removed comes back with its folder: with another token than
// the first, and not with that one.
func TestARemovedNodeComesBackToItsFolderWithANewToken(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	first := e.token(t, TokenOptions{Uses: 5})
	n, err := Join(t.Context(), dir, first, "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(t.Context(), someStart("one")); err != nil {
		t.Fatal(err)
	}
	if err := control.SetDesired(t.Context(), e.store, "mini", control.DesiredRemoved); err != nil {
		t.Fatal(err)
	}
	if n, err = Join(t.Context(), dir, first, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(t.Context(), someStart("two")); !errors.Is(err, ErrRemoved) {
		t.Errorf("with the first token: %v", err)
	}
	second := e.token(t, TokenOptions{})
	if n, err = Join(t.Context(), dir, second, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	if at, err := n.Attach(t.Context(), someStart("three")); err != nil || at.Incarnation != 2 {
		t.Errorf("with a new token: %+v, %v", at, err)
	}
	worthless := e.token(t, TokenOptions{})
	if err := e.tokens.Revoke(t.Context(), worthless.ID()); err != nil {
		t.Fatal(err)
	}
	if n, err = Join(t.Context(), dir, worthless, "mini", Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Attach(t.Context(), someStart("four")); err != nil {
		t.Errorf("a member that was given a worthless token: %v", err)
	}
}

func TestRenewalNeedsTheKeyOnly(t *testing.T) {
	e := newEndpoint(t)
	dir := t.TempDir()
	n, err := Join(t.Context(), dir, e.token(t, TokenOptions{}), "mini", Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := n.Credentials().Leaf()
	if _, err := n.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.Credentials().Leaf().Equal(before) {
		t.Error("nothing was renewed")
	}
	loaded, err := Load(dir, Options{})
	if err != nil || !loaded.Credentials().Leaf().Equal(n.Credentials().Leaf()) {
		t.Errorf("the new certificate was not kept: %v", err)
	}
	// Somebody else's key under our name.
	other, err := identity.LoadOrMakeKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	in, err := newRequest("mini", other)
	if err != nil {
		t.Fatal(err)
	}
	var out enrolReply
	pinned := identity.Pinned(e.authority.Fingerprint())
	if err := post(t.Context(), []string{e.address}, pathRenew, pinned, in, &out); !errors.Is(err, ErrUnknown) {
		t.Errorf("another key: %v", err)
	}
	if err := post(t.Context(), []string{e.address}, pathAttach, pinned, someStart("x"), &out); !errors.Is(err, ErrUnknown) {
		t.Errorf("attach without a certificate: %v", err)
	}
}

// stumbling is a store that fails to write the first records of nodes, and to read
// the first lists of them, as while its cluster elects a leader.
type stumbling struct {
	control.Store
	lists, creates atomic.Int32 // that fail yet
}

func (s *stumbling) List(ctx context.Context, b control.Bucket) ([]control.Entry, error) {
	if s.lists.Add(-1) >= 0 {
		return nil, errors.New("no leader")
	}
	return s.Store.List(ctx, b)
}

func (s *stumbling) Create(ctx context.Context, b control.Bucket, key string, value []byte) (uint64, error) {
	if b == control.BucketNodes && s.creates.Add(-1) >= 0 {
		return 0, errors.New("no leader")
	}
	return s.Store.Create(ctx, b, key, value)
}

// A gateway that has trouble for a moment lets a machine in all the same, and its
// token is used once; whoever else has the token is not let in for that.
func TestAGatewayWithTroubleIsAskedAgain(t *testing.T) {
	shaky := new(stumbling)
	e := newEndpointOn(t, func(s control.Store) control.Store { shaky.Store = s; return shaky })
	shaky.lists.Store(1)
	shaky.creates.Store(1)
	tok, told, dir := e.token(t, TokenOptions{}), 0, t.TempDir()
	if _, err := Join(t.Context(), dir, tok, "mini", Options{Trouble: func(error) { told++ }}); err != nil || told != 2 {
		t.Fatalf("%v, told of trouble %d times, want 2", err, told)
	}
	list, err := e.tokens.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Used != 1 || len(list[0].Pending) != 0 {
		t.Errorf("tokens: %+v, %v", list, err)
	}
	if _, err := Join(t.Context(), t.TempDir(), tok, "other", Options{}); !errors.Is(err, ErrTokenUsedUp) {
		t.Errorf("another machine with the used token: %v", err)
	}
	rec := e.record(t, "mini")
	rec.Desired = control.DesiredRemoved
	data, err := control.Encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	entry, err := e.store.Get(t.Context(), control.BucketNodes, "mini")
	if err == nil {
		_, err = e.store.CompareAndSet(t.Context(), control.BucketNodes, "mini", data, entry.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, fileHome)); err != nil {
		t.Fatal(err)
	}
	if _, err := Join(t.Context(), dir, tok, "mini", Options{}); !errors.Is(err, ErrTokenUsedUp) {
		t.Errorf("the machine was removed, and its token lets it in again: %v", err)
	}
}

// Who goes away does not wait for a gateway with trouble.
func TestTroubleEndsWithTheContext(t *testing.T) {
	shaky := new(stumbling)
	e := newEndpointOn(t, func(s control.Store) control.Store { shaky.Store = s; return shaky })
	shaky.lists.Store(1 << 20)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Join(ctx, t.TempDir(), e.token(t, TokenOptions{}), "mini", Options{Trouble: func(error) { cancel() }})
	if !errors.Is(err, ErrGateway) {
		t.Errorf("got %v, want the gateway's trouble", err)
	}
}

func TestADeadGatewayIsPassedOver(t *testing.T) {
	e := newEndpoint(t)
	tok := e.token(t, TokenOptions{})
	tok.Addresses = append([]string{"127.0.0.1:1"}, tok.Addresses...)
	if _, err := Join(t.Context(), t.TempDir(), tok, "mini", Options{}); err != nil {
		t.Error(err)
	}
}

func TestMalformedRequests(t *testing.T) {
	e := newEndpoint(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: identity.Pinned(e.authority.Fingerprint()), DisableKeepAlives: true}}
	valid := func() enrolRequest {
		key, err := identity.LoadOrMakeKey(filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		in, err := newRequest("mini", key)
		if err != nil {
			t.Fatal(err)
		}
		return in
	}
	encode := func(change func(*enrolRequest)) string {
		in := valid()
		change(&in)
		data, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for what, body := range map[string]string{
		"bad_request:empty":          "",
		"bad_request:not JSON":       "{",
		"bad_request:huge":           `{"name":"` + strings.Repeat("x", maxBody) + `"}`,
		"bad_request:version":        encode(func(in *enrolRequest) { in.Version = 9 }),
		"bad_request:no request":     encode(func(in *enrolRequest) { in.CSR = nil }),
		"bad_request:broken request": encode(func(in *enrolRequest) { in.CSR[len(in.CSR)-1]++ }),
		"bad_request:traversal":      encode(func(in *enrolRequest) { in.Name = "../../x" }),
		"clock:an hour off":          encode(func(in *enrolRequest) { in.Time = in.Time.Add(time.Hour) }),
		"token_unknown:no secret":    encode(func(*enrolRequest) {}),
	} {
		resp, err := client.Post("https://"+e.address+pathEnrol, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var got refusal
		if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		resp.Body.Close()
		if code, _, _ := strings.Cut(what, ":"); got.Error.Code != code || resp.StatusCode == http.StatusOK || got.Error.Message == "" {
			t.Errorf("%s: %d %+v", what, resp.StatusCode, got.Error)
		}
	}
	if _, err := e.store.Get(t.Context(), control.BucketNodes, "mini"); !errors.Is(err, control.ErrNotFound) {
		t.Errorf("something was enrolled: %v", err)
	}
}

func TestAMovedGatewayIsLookedFor(t *testing.T) {
	e := newEndpoint(t)
	tok := e.token(t, TokenOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	find := func(_ context.Context, authority [32]byte) []string {
		asked++
		if authority != e.authority.Fingerprint() {
			t.Errorf("looked for %x", authority)
		}
		return []string{e.address}
	}
	dir := t.TempDir()
	short, done := context.WithTimeout(ctx, time.Minute)
	defer done()
	tok.Addresses = []string{"nowhere.invalid:1"}
	if _, err := Join(short, dir, tok, "mini", Options{Find: find}); err != nil || asked != 1 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	loaded, err := Load(dir, Options{Find: find})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loaded.Attach(ctx, someStart("one")); err != nil || asked != 1 {
		t.Errorf("what was found was not remembered: asked %d times, %v", asked, err)
	}
}

func TestALinkLocalAddressIsAskedWithItsZone(t *testing.T) {
	err := post(t.Context(), []string{"[fe80::1%lo]:1"}, pathEnrol, nil, enrolRequest{}, nil)
	if err == nil || strings.Contains(err.Error(), "escape") {
		t.Errorf("%v", err)
	}
}

func TestASwarmOnThisMachineIsNotLookedForElsewhere(t *testing.T) {
	e := newEndpoint(t)
	tok := e.token(t, TokenOptions{})
	tok.Addresses = []string{"127.0.0.1:1", "localhost:1", "[::1]:1"}
	_, err := Join(t.Context(), t.TempDir(), tok, "mini", Options{Find: func(context.Context, [32]byte) []string {
		t.Error("the network was asked")
		return nil
	}})
	if err == nil {
		t.Error("joined nobody")
	}
}
