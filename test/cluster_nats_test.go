//go:build !noengine

package test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hecate/internal/control/controltest"
	"hecate/test/harness"
)

// natsVariable makes the test binary a NATS server with that configuration
// file, until its standard input ends.
const natsVariable = "HECATE_TEST_NATS"

func runNATS(path string) error {
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return err
	}
	opts.NoSigs, opts.TLSTimeout = true, 10
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin)
	s.Shutdown()
	return nil
}

// natsCluster is real NATS servers, three of them as a rule, each a process, as an operator would
// run them: with certificates of an authority of their own.
type natsCluster struct {
	urls  []string
	trust string // PEM file of their authority
	pids  []int
}

func startNATS(t *testing.T, accounts string, servers int) *natsCluster {
	t.Helper()
	dir := t.TempDir()
	_, trust, key := controltest.ServerCertificate(t, dir)
	c := &natsCluster{trust: trust}
	if err := os.WriteFile(filepath.Join(dir, "hecate-accounts.conf"), []byte(accounts), 0o600); err != nil {
		t.Fatal(err)
	}
	var routes []string
	for range servers {
		routes = append(routes, controltest.FreeAddress(t))
	}
	for i, route := range routes {
		address := controltest.FreeAddress(t)
		path := filepath.Join(dir, fmt.Sprintf("nats-%d.conf", i))
		text := fmt.Sprintf(`include hecate-accounts.conf
server_name: nats-%d
listen: %q
tls { cert_file: %q, key_file: %q }
jetstream { store_dir: %q, sync_interval: always }
`, i, address, c.trust, key, filepath.Join(dir, fmt.Sprint(i)))
		if servers > 1 {
			text += fmt.Sprintf("cluster { name: hecate, listen: %q, routes: [ nats-route://%s ] }\n", route, strings.Join(routes, ", nats-route://"))
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.urls = append(c.urls, "tls://"+address)
		c.pids = append(c.pids, startNATSProcess(t, path))
	}
	return c
}

func startNATSProcess(t *testing.T, config string) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), natsVariable+"="+config)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// flags are what a gateway needs to use the cluster.
func (c *natsCluster) flags(name string) []string {
	out := []string{"--name", name, "--nats-trust", c.trust, "--nats-replicas", fmt.Sprint(len(c.urls))}
	for _, u := range c.urls {
		out = append(out, "--nats", u)
	}
	return out
}

// Two gateways on three NATS servers: a server is killed, then the gateway that
// plans, under load on the other one. Nothing is lost and nobody condemned; the
// other one plans, lets in a new machine, and the first one comes back.
func TestTwoGatewaysOnANATSClusterThatLosesAServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("three servers with synced files take seconds")
	}
	first, second := t.TempDir(), t.TempDir()
	accounts, errs, code := harness.Run(t, "", "serve", "--nats-config", "--data", first)
	if code != 0 {
		t.Fatalf("serve --nats-config: %s", errs)
	}
	c := startNATS(t, accounts, 3)
	one := harness.ServeIn(t, first, c.flags("one")...)
	controltest.CopyAuthority(t, first, second)
	two := harness.ServeIn(t, second, c.flags("two")...)
	harness.Join(t, "a", "--join", one.Token(), "--memory", "64MiB")
	harness.Join(t, "b", "--join", two.Token(), "--memory", "64MiB")
	one.AwaitHealthy()
	two.AwaitHealthy()
	if answer, other := one.Ask(harness.Story, map[string]any{"max_tokens": 8}).Text(), two.Ask(harness.Story, map[string]any{"max_tokens": 8}).Text(); answer != other {
		t.Errorf("one says %q, the other %q", answer, other)
	}
	if found, err := filepath.Glob(filepath.Join(second, "headers", "*", "header")); err != nil || len(found) != 1 {
		t.Errorf("the second gateway did not take the model's header from a node: %v, %v", found, err)
	}

	crowd := gather(two, 2)
	crowd.more(two, 2)
	signalProcess(t, c.pids[0], syscall.SIGKILL)
	crowd.more(two, 2)
	one.Kill()
	two.Await("the other gateway plans", time.Minute, func() bool { return strings.Contains(two.Log(), "this gateway plans now") })
	harness.Join(t, "c", "--join", strings.TrimSpace(two.Do("token", "create")), "--memory", "64MiB")
	two.Await("a new machine is planned", time.Minute, func() bool { n := listedNodes(t, two)["c"]; return n.Health != nil && len(n.Health.Held) > 0 })
	crowd.more(two, 2)
	crowd.leave(t)
	if log := two.Log(); strings.Contains(log, "is dead") {
		t.Errorf("a node was condemned:\n%s", log)
	}

	again := harness.ServeIn(t, first, c.flags("one")...)
	again.AwaitHealthy()
	if n := len(listedNodes(t, again)); n != 3 {
		t.Errorf("the gateway that came back sees %d nodes, want 3", n)
	}
}

// A model outlives the gateway where it was added: a machine that joins another one
// takes the layers from the nodes that hold them. What no living node has is named in
// the status, with what to do.
func TestWeightsOutliveTheGatewayThatHadThem(t *testing.T) {
	t.Parallel()
	first, second := t.TempDir(), t.TempDir()
	accounts, errs, code := harness.Run(t, "", "serve", "--nats-config", "--data", first)
	if code != 0 {
		t.Fatalf("serve --nats-config: %s", errs)
	}
	c := startNATS(t, accounts, 1)
	one := harness.ServeIn(t, first, append(c.flags("one"), "--copies", "2")...)
	controltest.CopyAuthority(t, first, second)
	two := harness.ServeIn(t, second, append(c.flags("two"), "--copies", "2")...)
	// Neither has room for the whole.
	a := harness.Join(t, "a", "--join", one.Token(), "--memory", "14MiB", "--score", "1")
	harness.Join(t, "b", "--join", two.Token(), "--memory", "14MiB", "--score", "1")
	two.Await("they hold it together", patience, func() bool { return listedModels(t, two)[harness.Model].Ready })
	one.Kill()
	token := strings.TrimSpace(two.Do("token", "create", "--uses", "2"))
	third := harness.Join(t, "c", "--join", token, "--memory", "64MiB", "--score", "1")
	two.Await("the newcomer holds all", 2*patience, func() bool { return wholeAt(two, "c") })
	if from := receivedFrom(two, "c"); len(from) != 2 || from["a"] == 0 || from["b"] == 0 {
		t.Errorf("it was sent %v by sender, want a and b", from)
	}

	for _, w := range []*harness.Worker{a, third} {
		w.Kill()
	}
	for _, name := range []string{"a", "c"} {
		two.Do("node", "remove", name, "--now")
	}
	harness.Join(t, "d", "--join", token, "--memory", "64MiB", "--score", "1")
	two.Await("the status says what is missing", 2*patience, func() bool {
		why := strings.Join(two.Status().Why, "\n")
		return strings.Contains(why, "node d could not load layers") && strings.Contains(why, "hecate model add")
	})
	harness.ServeIn(t, first, append(c.flags("one"), "--copies", "2")...)
	two.Await("the gateway that has the model is back, and mends it", 2*patience, func() bool { return wholeAt(two, "d") })
}

// wholeAt says that a node holds the whole demo model.
func wholeAt(s *harness.Swarm, node string) bool {
	for _, n := range s.Status().Nodes {
		if n.ID == node && n.Alive && len(n.Fragments) == 1 && n.Fragments[0].Layers.Len() == 12 {
			return true
		}
	}
	return false
}
