//go:build !noengine

package test

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hecate/internal/control/controltest"
	"hecate/internal/control/enrol"
	"hecate/pool/faultproxy"
	"hecate/test/harness"
)

// altered gives a token with something in it that is not as it was made.
func altered(t *testing.T, text string, change func(*enrol.Token)) string {
	t.Helper()
	token, err := enrol.ParseToken(text)
	if err != nil {
		t.Fatal(err)
	}
	change(&token)
	return token.Encode()
}

// Who is not let in is told why in one line, and what to do.
func TestMachinesThatAreNotLetIn(t *testing.T) {
	t.Parallel()
	s, other := harness.Serve(t), harness.Serve(t)
	make := func(more ...string) string {
		return strings.TrimSpace(s.Do(append([]string{"token", "create"}, more...)...))
	}
	first := harness.Join(t, "mini", "--join", make(), "--memory", "64MiB")
	s.Await("mini is a member", time.Minute, func() bool { return listedNodes(t, s)["mini"].Status == "alive" })
	used := make()
	harness.Join(t, "second", "--join", used, "--memory", "64MiB")
	s.Await("second is a member", time.Minute, func() bool { return listedNodes(t, s)["second"].Status == "alive" })
	expired := make("--life", "1s")
	expiry, err := enrol.ParseToken(expired)
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := enrol.ParseToken(other.Token())
	if err != nil {
		t.Fatal(err)
	}
	s.Await("a token expires", time.Minute, func() bool { return time.Now().After(expiry.Expires) })
	for _, c := range []struct{ what, token, name, says string }{
		{"no token", "hecate-join-nonsense", "a", "token"},
		{"a used-up token", used, "a", "as many machines"},
		{"an expired token", expired, "a", "expired"},
		{"a guessed token", altered(t, make(), func(k *enrol.Token) { k.Secret[0]++ }), "a", "does not know this token"},
		{"a token of another swarm", altered(t, make(), func(k *enrol.Token) { k.Addresses = foreign.Addresses }), "a", "another swarm"},
		{"a gateway that is not there", altered(t, make(), func(k *enrol.Token) { k.Addresses = []string{"127.0.0.1:1"} }), "a", "is it running"},
		{"a name that is taken", make(), "mini", "--name"},
		{"a name with a path", make(), "../a", "name"},
	} {
		_, errs, code := harness.Run(t, "", "node", "run", "--name", c.name, "--data", filepath.Join(t.TempDir(), "n"), "--listen", "127.0.0.1:0",
			"--memory", "64MiB", "--join", c.token)
		last := errs[strings.LastIndex(strings.TrimSpace(errs), "\n")+1:]
		if code == 0 || !strings.Contains(last, c.says) {
			t.Errorf("%s: code %d, %q, want it to say %q", c.what, code, last, c.says)
		}
	}
	if n := listedNodes(t, s); len(n) != 2 {
		t.Errorf("%d members, want 2", len(n))
	}
	if first.Gone() {
		t.Error("the node whose name was wanted ended")
	}
}

// A machine that is too small for one layer is a member, and says that it holds
// nothing and why.
func TestAMachineTooSmallForALayer(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--copies", "1")
	harness.Join(t, "large", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	small := harness.Join(t, "small", "--join", s.Token(), "--memory", "64KiB")
	s.Await("the small machine says what is wrong", time.Minute, func() bool {
		return strings.Contains(small.Log(), "the plan gives this node nothing to hold") && strings.Contains(small.Log(), "too little for any layer")
	})
	s.Ask(harness.Story, map[string]any{"max_tokens": 4})
}

// One machine that is started and killed again and again is one member.
func TestTheSameMachineTwentyTimes(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, "--copies", "1")
	data, token := t.TempDir(), s.Token()
	for i := range 20 {
		w := harness.JoinVia(t, nil, "--name", "again", "--data", data, "--listen", "127.0.0.1:0", "--memory", "64MiB", "--join", token)
		s.Await("it has joined", time.Minute, func() bool {
			n := listedNodes(t, s)["again"]
			return n.Status == "alive" && n.Record.Incarnation == uint64(i+1) && n.Health != nil && n.Health.PID == w.PID()
		})
		if i < 19 {
			w.Kill()
		}
	}
	s.AwaitHealthy()
	if n := listedNodes(t, s); len(n) != 1 || len(s.Status().Nodes) != 1 {
		t.Errorf("%d members, %d in the status, want one", len(n), len(s.Status().Nodes))
	}
	s.Ask(harness.Story, map[string]any{"max_tokens": 4})
}

// standStill lets time pass in which nothing may happen.
func standStill(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// A gateway that stood still for longer than any node may be silent condemns
// nobody, and goes on.
func TestAGatewayThatStoodStillCondemnsNobody(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t)
	harness.Join(t, "first", "--join", s.Token(), "--memory", "64MiB")
	harness.Join(t, "second", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	signalProcess(t, s.PID(), syscall.SIGSTOP)
	standStill(t, 6*time.Second)
	signalProcess(t, s.PID(), syscall.SIGCONT)
	s.Ask(harness.Story, map[string]any{"max_tokens": 8})
	s.AwaitHealthy()
	if log := s.Log(); strings.Contains(log, "is dead") {
		t.Errorf("somebody was condemned:\n%s", log)
	}
}

// 200 ms each way and a loss of 5 %, on the control plane and on the data plane:
// slow, but nobody is condemned and nothing is lost.
func TestASlowAndLossyNetwork(t *testing.T) {
	t.Parallel()
	join, bus := controltest.FreeAddress(t), controltest.FreeAddress(t)
	s := harness.Serve(t, "--join-listen", join, "--bus-listen", bus, "--advertise", "127.0.0.3", "--allow-chaos", "--copies", "1")
	bad := faultproxy.Direction{Delay: 200 * time.Millisecond, Loss: 0.05}
	var ways []*faultproxy.Proxy
	for i, target := range []string{join, bus} {
		p, err := faultproxy.Listen(strings.Replace(target, "127.0.0.1", "127.0.0.3", 1), target, faultproxy.Options{Seed: uint64(i + 1)})
		if err != nil {
			t.Skipf("this machine has no other loopback address: %v", err)
		}
		defer p.Close()
		ways = append(ways, p)
	}
	harness.Join(t, "far", "--join", s.Token(), "--memory", "64MiB")
	s.AwaitHealthy()
	for _, p := range ways {
		if err := p.Set(faultproxy.Fault{Up: bad, Down: bad}); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"delay 200ms", "loss 0.05"} {
		code, _, body := s.Post(t.Context(), "/v1/swarm/chaos/link", map[string]string{"node": "far", "command": command})
		if code != http.StatusOK {
			t.Fatalf("%s: %d %s", command, code, body)
		}
	}
	for range 4 {
		s.Ask(harness.Story, map[string]any{"max_tokens": 8})
	}
	if log := s.Log(); strings.Contains(log, "is dead") {
		t.Errorf("the far node was condemned:\n%s", log)
	}
	if lost := s.Status().Answers.Lost; lost != 0 {
		t.Errorf("%d answers were lost", lost)
	}
}
