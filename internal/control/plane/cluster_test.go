package plane

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"hecate/internal/control"
	"hecate/internal/control/controltest"
	"hecate/swarm"
)

// A cluster is three real NATS servers on loopback, as an operator would run
// them: with certificates of an authority of their own, and our accounts from
// the configuration that we print.
type cluster struct {
	servers []*server.Server
	trust   string // PEM file
}

func startCluster(t *testing.T, config string) *cluster {
	t.Helper()
	dir := t.TempDir()
	c := &cluster{}
	cert, trust, _ := controltest.ServerCertificate(t, dir)
	c.trust = trust
	routes := make([]string, 3)
	for i := range routes {
		routes[i] = fmt.Sprintf("nats-route://%s", controltest.FreeAddress(t))
	}
	for i := range routes {
		path := filepath.Join(dir, fmt.Sprintf("nats-%d.conf", i))
		text := config + fmt.Sprintf(`
			server_name: nats-%d
			listen: "127.0.0.1:-1"
			jetstream { store_dir: %q, sync_interval: always }
			cluster { name: test, listen: %q, routes: [ %s ] }
		`, i, filepath.Join(dir, fmt.Sprint(i)), strings.TrimPrefix(routes[i], "nats-route://"), strings.Join(routes, ", "))
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		opts, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		opts.NoSigs, opts.NoLog, opts.TLSTimeout = true, true, 5
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}}
		s, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		c.servers = append(c.servers, s)
	}
	await(t, "the cluster has a leader", func() bool {
		for _, s := range c.servers {
			if s.JetStreamIsLeader() {
				return s.ReadyForConnections(time.Second)
			}
		}
		return false
	})
	return c
}

func (c *cluster) addresses() (out []string) {
	for _, s := range c.servers {
		out = append(out, s.Addr().String())
	}
	return out
}

func TestTwoGatewaysShareASwarmOverAClusterThatLosesAServer(t *testing.T) {
	if testing.Short() {
		t.Skip("three servers with synced files take seconds")
	}
	first, second := t.TempDir(), t.TempDir()
	config, err := ServerConfig(first)
	if err != nil {
		t.Fatal(err)
	}
	c := startCluster(t, config)
	start := func(dir, name string) *Gateway {
		t.Helper()
		g, err := StartGateway(t.Context(), GatewayConfig{
			Dir: dir, Name: name, Planner: swarm.Planner{}.Plan, Log: testLog(t),
			Patience: control.Patience{FirstNodes: 3}, External: &External{Servers: c.addresses(), Trust: c.trust},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(g.Close)
		return g
	}
	one := start(first, "one")
	controltest.CopyAuthority(t, first, second)
	two := start(second, "two")
	addModel(t, one)
	tok := token(t, one, 2)
	workers := []*worker{startWorker(t, t.TempDir(), "a", tok), startWorker(t, t.TempDir(), "b", tok), startWorker(t, t.TempDir(), "c", token(t, two, 1))}
	await(t, "both gateways see three nodes with layers", func() bool { return holding(one) == 3 && holding(two) == 3 })
	before := workers[0].plan.Load()

	leader, other := one, two
	if two.Reconciler().Leading() {
		leader, other = two, one
	}
	events := other.Membership().Subscribe()
	defer events.Close()
	c.servers[0].Shutdown()
	c.servers[0].WaitForShutdown()
	leader.Close()
	await(t, "the other gateway plans", func() bool {
		d := workers[0].plan.Load()
		return other.Reconciler().Leading() && d.Epoch > before.Epoch && d.Hash == before.Hash
	})
	await(t, "the nodes report to it", func() bool { return holding(other) == 3 })
	for len(events.C) > 0 {
		if e, ok := (<-events.C).(control.Died); ok {
			t.Errorf("a lost server or gateway condemned a node: %s", e)
		}
	}
}
