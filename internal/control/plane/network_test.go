package plane

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/internal/control/enrol"
	"hecate/swarm"
)

// host starts a node process on a machine of its own: a network namespace at
// the other end of the test network's cable.
func host(t *testing.T, name, token string) *exec.Cmd {
	t.Helper()
	script := `until ip link show hec1 >/dev/null 2>&1; do read -t 0.02 _ </dev/zero; done
		ip link set lo up && ip addr add 10.99.0.2/24 dev hec1 && ip link set hec1 up &&
		ip route add 224.0.0.0/4 dev hec1 && exec "$0"`
	cmd := exec.Command("unshare", "--net", "bash", "-c", script, os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"=node", dirVariable+"="+t.TempDir(), nameVariable+"="+name, tokenVariable+"="+token)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may be dead already
		_ = cmd.Wait()
	})
	// Until unshare has made the namespace, the cable would only move to ours.
	await(t, "the other machine exists", func() bool {
		ours, err1 := os.Readlink("/proc/self/ns/net")
		theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
		return err1 == nil && err2 == nil && ours != theirs
	})
	ip(t, "link", "set", "hec1", "netns", fmt.Sprint(cmd.Process.Pid))
	return cmd
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

func networkGateway(t *testing.T) *Gateway {
	t.Helper()
	g, err := StartGateway(t.Context(), GatewayConfig{
		Dir: t.TempDir(), Planner: swarm.Planner{}.Plan, Join: "10.99.0.1:0", Bus: "10.99.0.1:0", Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func TestACableThatIsPulledAndOneThatCarriesOneWayOnly(t *testing.T) {
	if !controltest.InNetwork(t) {
		return
	}
	g := networkGateway(t)
	events := g.Membership().Subscribe()
	defer events.Close()
	host(t, "far", token(t, g, 1))
	next[control.Joined](t, events)
	if m := g.Membership().View().Member("far"); m.Record.Profile.Endpoints[0] != "127.0.0.1:7000" {
		t.Errorf("its endpoints: %v", m.Record.Profile.Endpoints)
	}

	ip(t, "link", "set", "hec0", "down")
	if d := next[control.Died](t, events); d.Cause != control.CauseSilence {
		t.Errorf("cable pulled: %s", d)
	}
	ip(t, "link", "set", "hec0", "up")
	if r := next[control.Returned](t, events); !r.WasDead {
		t.Errorf("cable back: %s", r)
	}

	ip(t, "route", "add", "blackhole", "10.99.0.2/32") // we hear it, it does not hear us
	next[control.Died](t, events)
	ip(t, "route", "del", "blackhole", "10.99.0.2/32")
	if r := next[control.Returned](t, events); !r.WasDead {
		t.Errorf("both ways again: %s", r)
	}
	if m := g.Membership().View().Member("far"); m.Record.Incarnation != 1 {
		t.Errorf("incarnation %d though it was never restarted", m.Record.Incarnation)
	}
}

func TestANodeFindsAGatewayThatIsNotWhereItsTokenSays(t *testing.T) {
	if !controltest.InNetwork(t) {
		return
	}
	g := networkGateway(t)
	events := g.Membership().Subscribe()
	defer events.Close()
	tok, err := g.CreateToken(t.Context(), enrol.TokenOptions{Addresses: []string{"10.99.0.9:7443"}})
	if err != nil {
		t.Fatal(err)
	}
	host(t, "far", tok.Encode())
	if j := next[control.Joined](t, events); j.Node != "far" {
		t.Errorf("%s", j)
	}
}
