//go:build !noengine

package test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"hecate/internal/control"
	"hecate/internal/control/admin"
	"hecate/internal/control/enrol"
	"hecate/swarm"
	"hecate/test/harness"
)

// thief is who has a member's data folder, or nothing at all.
type thief struct {
	t        *testing.T
	client   *http.Client
	tls      *tls.Config // with the stolen certificate, trusting anybody
	enrolled *enrol.Enrolment
}

// stolen takes a certificate and key from a node's folder; "": there is none.
func stolen(t *testing.T, dir string) *thief {
	t.Helper()
	th := &thief{t: t, tls: &tls.Config{InsecureSkipVerify: true}}
	if dir != "" {
		var err error
		if th.enrolled, err = enrol.Load(dir, enrol.Options{}); err != nil {
			t.Fatal(err)
		}
		certificate, err := tls.LoadX509KeyPair(filepath.Join(dir, "node.crt"), filepath.Join(dir, "node.key"))
		if err != nil {
			t.Fatal(err)
		}
		th.tls.Certificates = []tls.Certificate{certificate}
	}
	th.client = &http.Client{Transport: &http.Transport{TLSClientConfig: th.tls, DisableKeepAlives: true}}
	return th
}

// ask makes a request and gives the status, 0 for no connection, and the answer.
func (th *thief) ask(method, url string, body any) (int, string) {
	th.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		th.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(th.t.Context(), method, url, bytes.NewReader(data))
	if err != nil {
		th.t.Fatal(err)
	}
	resp, err := th.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// renewal asks for a certificate in a name, with the thief's own key.
func (th *thief) renewal(name string) any {
	th.t.Helper()
	var key any
	if th.enrolled != nil {
		key = th.enrolled.Credentials().Key()
	} else {
		fresh, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			th.t.Fatal(err)
		}
		key = fresh
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		th.t.Fatal(err)
	}
	return map[string]any{"version": 1, "name": name, "csr": csr, "time": time.Now()}
}

// tryControl asks for everything that the gateway's endpoint for members has and that
// is not the thief's: each is refused.
func (th *thief) tryControl(who, gateway, victim, victimWeights, hash string) {
	th.t.Helper()
	named := strings.NewReplacer("{id}", victim, "{action}", "remove")
	for _, route := range admin.Routes() {
		method, path, _ := strings.Cut(named.Replace(route), " ")
		if code, text := th.ask(method, gateway+path, map[string]any{}); code != http.StatusForbidden {
			th.t.Errorf("%s: %s: %d %s, want 403", who, route, code, text)
		}
	}
	for _, path := range []string{"/v1/enrol", "/v1/renew"} {
		if code, text := th.ask("POST", gateway+path, th.renewal(victim)); code != http.StatusForbidden && code != http.StatusConflict {
			th.t.Errorf("%s: %s in the name of another: %d %s, want a refusal", who, path, code, text)
		}
	}
	if th.enrolled == nil {
		if code, text := th.ask("POST", gateway+"/v1/attach", someStart("Ukey")); code != http.StatusForbidden {
			th.t.Errorf("%s: attach: %d %s, want 403", who, code, text)
		}
		for _, c := range []struct{ method, url string }{
			{"GET", gateway + "/v1/weights/" + hash + "/0"}, {"POST", gateway + "/v1/weights/" + hash + "/next"},
		} {
			if code, text := th.ask(c.method, c.url, map[string]any{"pieces": []string{"0"}}); code != http.StatusForbidden {
				th.t.Errorf("%s: %s: %d %s, want 403", who, c.url, code, text)
			}
		}
		if code, text := th.ask("GET", "https://"+victimWeights+"/v1/weights/"+hash+"/0", nil); code != 0 {
			th.t.Errorf("%s: weights of a node: %d %s, want no connection", who, code, text)
		}
	}
}

func someStart(busKey string) enrol.AttachRequest {
	return enrol.AttachRequest{
		Instance: "a thief", Host: "elsewhere", PID: 1, BusKey: busKey,
		Profile: swarm.NodeProfile{MemoryBytes: 1 << 20, Score: 1, LatencyMS: 1, Endpoints: []string{"127.0.0.1:1"}},
	}
}

// noDataPlane says that a node's data plane does not let the thief in: only
// gateways are.
func (th *thief) noDataPlane(who, address string) {
	th.t.Helper()
	conn, err := tls.Dial("tcp", address, th.tls)
	if err != nil {
		return
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		th.t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil || n > 0 {
		th.t.Errorf("%s: a node's data plane answered", who)
	}
}

// bus connects to the control plane as the stolen member.
func (th *thief) bus() (*nats.Conn, error) {
	th.t.Helper()
	key, err := nkeys.CreateUser()
	if err != nil {
		th.t.Fatal(err)
	}
	public, err := key.PublicKey()
	if err != nil {
		th.t.Fatal(err)
	}
	attached, err := th.enrolled.Attach(th.t.Context(), someStart(public))
	if err != nil {
		return nil, err
	}
	return nats.Connect("tls://"+attached.Bus[0], nats.Secure(th.tls),
		nats.UserJWT(func() (string, error) { return attached.BusToken, nil }, key.Sign), nats.CustomInboxPrefix("_INBOX.node-"+th.enrolled.Name()),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {})) // refusals are looked at one by one
}

// The data folder of one node opens nothing that is another's: not its health, its
// commands or its name, nor plan, keys and administration. Without any
// credentials there is nothing at all; with those of a removed node likewise.
func TestStolenCredentialsOpenNothingElse(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--copies", "1")
	dir := filepath.Join(t.TempDir(), "lost")
	lost := worker(t, s, "lost", dir)
	s.AwaitHealthy()
	worker(t, s, "victim", filepath.Join(t.TempDir(), "victim"))
	s.Await("both are members", patience, func() bool { return listedNodes(t, s)["victim"].Status == "alive" })
	s.Do("key", "create", "--note", "somebody")
	gateway, hash := onlyModel(t, s)
	victim := listedNodes(t, s)["victim"]
	data := victim.Record.Profile.Endpoints[0]
	host, _, err := net.SplitHostPort(data)
	if err != nil {
		t.Fatal(err)
	}
	weightsAt := net.JoinHostPort(host, fmt.Sprint(victim.Health.WeightsPort))
	nobody, member := stolen(t, ""), stolen(t, dir)

	nobody.tryControl("nobody", gateway, "victim", weightsAt, hash)
	nobody.noDataPlane("nobody", data)
	if _, err := member.bus(); err == nil || !strings.Contains(err.Error(), "another process has this node's key") {
		t.Errorf("a thief beside the living node: %v", err)
	}
	if err := lost.Stop(); err != nil {
		t.Fatal(err)
	}
	member.tryControl("a member", gateway, "victim", weightsAt, hash)
	member.noDataPlane("a member", data)
	bus, err := member.bus()
	if err != nil {
		t.Fatal(err)
	}
	defer bus.Close()
	if nc, err := nats.Connect(bus.ConnectedUrl(), nats.Secure(nobody.tls)); err == nil {
		nc.Close()
		t.Error("nobody was let onto the control plane")
	}
	if nc, err := nats.Connect(bus.ConnectedUrl(), nats.Secure(member.tls)); err == nil {
		nc.Close()
		t.Error("a certificate without a token was let onto the control plane")
	}
	tryBus(t, bus)
	if n := listedNodes(t, s)["victim"]; n.Status != "alive" || n.Health.Incarnation != victim.Health.Incarnation {
		t.Errorf("the victim is %s in incarnation %d", n.Status, n.Health.Incarnation)
	}

	s.Do("node", "remove", "lost", "--now")
	s.Await("the thief is put out", patience, func() bool { _, err := member.bus(); return err != nil && !bus.IsConnected() })
	for _, url := range []string{gateway + "/v1/weights/" + hash + "/0", "https://" + weightsAt + "/v1/weights/" + hash + "/0"} {
		s.Await("a removed node gets no weights", patience, func() bool { code, _ := member.ask("GET", url, nil); return code == http.StatusForbidden })
	}
	if code, text := member.ask("POST", gateway+"/v1/renew", member.renewal("lost")); code != http.StatusForbidden {
		t.Errorf("a removed node renews: %d %s", code, text)
	}
}

// tryBus tries each subject of the control plane that is not the node's own.
func tryBus(t *testing.T, bus *nats.Conn) {
	t.Helper()
	refused := func(what, subject string, act func() error) {
		t.Helper()
		if err := act(); err != nil {
			t.Fatal(err)
		}
		if err := bus.FlushTimeout(patience); err != nil {
			t.Fatal(err)
		}
		if err := bus.LastError(); err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(`"`+subject+`"`)) {
			t.Errorf("a node may %s %s: %v", what, subject, err)
		}
	}
	for _, subject := range []string{
		control.HealthSubject("victim"), control.CommandSubject("victim"), control.CommandSubject("lost"), "hecate.v1.event.x",
		"$KV.plan.current", "$KV.nodes.victim", "$KV.keys.x", "$KV.models.x", "$KV.lease.planner",
		"$JS.API.DIRECT.GET.KV_keys.$KV.keys.x", "$JS.API.CONSUMER.CREATE.KV_keys.c", "$JS.API.STREAM.MSG.GET.KV_keys",
		"$JS.API.DIRECT.GET.KV_nodes.$KV.nodes.victim", "$JS.API.CONSUMER.CREATE.KV_nodes.c",
		"$JS.API.STREAM.DELETE.KV_plan", "$JS.API.STREAM.PURGE.KV_plan", "$JS.API.STREAM.UPDATE.KV_plan", "$JS.API.STREAM.CREATE.X",
		"_INBOX.node-victim.x", "_INBOX.gateway-gateway.x", "$SYS.REQ.SERVER.PING",
	} {
		refused("publish on", subject, func() error { return bus.PublishRequest(subject, "_INBOX.node-lost.x", []byte("{}")) })
	}
	for _, subject := range []string{
		">", control.AllHealth, control.HealthSubject("victim"), control.CommandSubject("victim"), "hecate.v1.>", "_INBOX.>", "_INBOX.node-victim.>", "$KV.>",
	} {
		refused("listen on", subject, func() error { _, err := bus.SubscribeSync(subject); return err })
	}
}
