//go:build !noengine

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hecate/internal/control/controltest"
	"hecate/test/harness"
)

// alone runs the calling test again in a network of its own, with the binary
// that was built already. It reports whether the caller is that run.
func alone(t *testing.T) bool {
	t.Helper()
	t.Setenv(harness.BinaryVariable, harness.Binary(t))
	if !controltest.InNetwork(t) {
		return false
	}
	// Machines reach one another through us, as through a router.
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		t.Skipf("this network cannot forward: %v", err)
	}
	return true
}

// A machine is a network namespace at the other end of a cable, with a worker
// in it.
type machine struct {
	*harness.Worker
	cable string // our end
	ip    string // its address
}

// plug starts a worker on a machine of its own. setup are shell commands for
// its network.
func plug(t *testing.T, number int, name, setup string, args ...string) *machine {
	t.Helper()
	m := &machine{cable: fmt.Sprintf("hec%da", number), ip: fmt.Sprintf("10.98.%d.2", number)}
	far := fmt.Sprintf("hec%db", number)
	ip(t, "link", "add", m.cable, "type", "veth", "peer", "name", far)
	ip(t, "addr", "add", fmt.Sprintf("10.98.%d.1/24", number), "dev", m.cable)
	ip(t, "link", "set", m.cable, "up")
	script := fmt.Sprintf(`until ip link show %[1]s >/dev/null 2>&1; do read -t 0.02 _ </dev/zero; done
		ip link set lo up && ip addr add %[2]s/24 dev %[1]s && ip link set %[1]s up && ip route add default via 10.98.%[3]d.1 && %[4]s exec "$0" "$@"`,
		far, m.ip, number, setup)
	args = append([]string{"--name", name, "--data", filepath.Join(t.TempDir(), name), "--memory", "64MiB"}, args...)
	m.Worker = harness.JoinVia(t, []string{"unshare", "--net", "bash", "-c", script}, args...)
	inOtherNetwork(t, m.PID())
	ip(t, "link", "set", far, "netns", fmt.Sprint(m.PID()))
	return m
}

// inOtherNetwork waits until a process has left our network.
func inOtherNetwork(t *testing.T, pid int) {
	t.Helper()
	for {
		ours, err1 := os.Readlink("/proc/self/ns/net")
		theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err1 == nil && err2 == nil && ours != theirs {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the other machine does not come to be")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		t.Fatalf("ip %v: %v: %s", args, err, out)
	}
}

// everywhere lets machines at any cable join.
var everywhere = []string{"--join-listen", "0.0.0.0:0"}

func status(s *harness.Swarm, node string) func() string {
	return func() string { return listedNodes(s.T.(*testing.T), s)[node].Status }
}

func awaitStatus(s *harness.Swarm, node, want string) {
	s.T.Helper()
	s.Await(node+" is "+want, 30*time.Second, func() bool { return status(s, node)() == want })
}

// A machine whose data plane nobody can dial serves all the same: it finds out
// and connects by itself, also to a gateway that was started anew. Its death is
// noticed at once.
func TestAMachineBehindAFirewall(t *testing.T) {
	if !alone(t) {
		return
	}
	data := t.TempDir()
	s := harness.ServeIn(t, data, append(everywhere, "--copies", "1")...)
	far := plug(t, 1, "far", "ip addr add 10.97.0.2/32 dev lo &&", "--listen", "10.97.0.2:0", "--join", s.Token())
	s.AwaitHealthy()
	want := s.Ask(harness.Story, map[string]any{"max_tokens": 12}).Text()
	if !s.Node("far").Reverse || !strings.Contains(far.Log(), "cannot reach this node") {
		t.Errorf("the node does not know that it cannot be reached\n%s", far.Log())
	}
	for _, w := range poolNow(s).Writers {
		if w.Endpoint != "reverse" {
			t.Errorf("a connection to %s, which cannot be reached", w.Endpoint)
		}
	}

	s.Kill()
	s = harness.ServeIn(t, data, append(everywhere, "--copies", "1")...)
	s.AwaitHealthy()
	if got := s.Ask(harness.Story, map[string]any{"max_tokens": 12}).Text(); got != want {
		t.Errorf("after the gateway was killed: %q, before %q", got, want)
	}
	signalProcess(t, far.PID(), syscall.SIGKILL)
	awaitStatus(s, "far", "dead")
	if !strings.Contains(s.Log(), "node far is dead: connection refused") {
		t.Errorf("the idle gateway did not notice the death by its connections, and that nobody has its name on the bus\n%s", s.Log())
	}
}

// Cables are pulled and plugged in again, and carry one way only, and a machine
// stands still, under constant load: nothing is lost, and each comes back.
func TestBrokenCablesUnderLoad(t *testing.T) {
	if !alone(t) {
		return
	}
	s := harness.Serve(t, append(everywhere, "--rescue-time", "30s")...)
	var machines []*machine
	names := []string{"first", "second", "third"}
	for i, name := range names {
		machines = append(machines, plug(t, i+1, name, "", "--join", s.Token()))
	}
	s.Await("three nodes", time.Minute, func() bool { return len(s.Status().Nodes) == 3 })
	s.AwaitHealthy()
	c := gather(s, 3)
	for _, f := range []struct {
		what       string
		machine    int
		hurt, mend func(m *machine)
	}{
		{"the cable is pulled", 0, func(m *machine) { ip(t, "link", "set", m.cable, "down") }, func(m *machine) { ip(t, "link", "set", m.cable, "up") }},
		{"it does not hear us", 1, func(m *machine) { ip(t, "route", "add", "blackhole", m.ip+"/32") }, func(m *machine) { ip(t, "route", "del", "blackhole", m.ip+"/32") }},
		{"it stands still", 2, func(m *machine) { signalProcess(t, m.PID(), syscall.SIGSTOP) }, func(m *machine) { signalProcess(t, m.PID(), syscall.SIGCONT) }},
	} {
		m, name := machines[f.machine], names[f.machine]
		c.more(s, 2)
		f.hurt(m)
		awaitStatus(s, name, "dead")
		c.more(s, 2)
		f.mend(m)
		awaitStatus(s, name, "alive")
		s.AwaitHealthy()
		t.Logf("%s: dead and back", f.what)
	}
	c.leave(t)
	for i, m := range machines {
		if n := listedNodes(t, s)[names[i]]; n.Record.Incarnation != 1 || n.Record.PID != m.PID() {
			t.Errorf("%s is start %d, process %d; it was never restarted", names[i], n.Record.Incarnation, n.Record.PID)
		}
	}
}

func signalProcess(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}
