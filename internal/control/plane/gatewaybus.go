package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/identity"
	"hecate/internal/control/natsbus"
)

// An External is a NATS cluster that somebody else runs.
type External struct {
	Servers []string // host:port or tls:// URLs
	// Trust is a PEM file with the authority of the servers' certificates.
	Trust string
	// Accounts is the file with the account's keys; empty: the swarm's own,
	// which the servers must then be configured with (see ServerConfig).
	Accounts string
	// Replicas of each bucket; 0: 3.
	Replicas int
}

// accountsPath is where the swarm's own account keys are.
func accountsPath(dir string) string { return filepath.Join(dir, "authority", "bus.json") }

// ServerConfig writes what the configuration of each server of an external
// NATS cluster must contain for the swarm of a gateway's data folder. It makes
// the keys when there are none.
func ServerConfig(dir string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(accountsPath(dir)), 0o700); err != nil {
		return "", fmt.Errorf("the authority's folder: %w", err)
	}
	accounts, err := natsbus.OpenAccounts(accountsPath(dir))
	if err != nil {
		return "", err
	}
	return accounts.ServerConfig()
}

func (g *Gateway) openBus(ctx context.Context) error {
	cfg := natsbus.Config{Credentials: g.credentials, Log: g.cfg.Log}
	var err error
	if g.cfg.External == nil {
		err = g.embed(ctx, &cfg)
	} else {
		err = g.useExternal(&cfg)
	}
	if err != nil {
		return err
	}
	if cfg.User, err = g.accounts.GatewayUser(g.cfg.Name); err != nil {
		return err
	}
	err = g.enter(ctx, cfg)
	for began := time.Now(); err != nil && g.server == nil && ctx.Err() == nil && time.Since(began) < clusterWait; err = g.enter(ctx, cfg) {
		g.cfg.Log.Warn("the NATS cluster is not ready, trying again", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(restartPause):
		}
	}
	return err
}

// clusterWait is how long a gateway waits for an external cluster: after a power
// cut everything starts at once.
const clusterWait = 30 * time.Second

// enter connects and makes what buckets are missing.
func (g *Gateway) enter(ctx context.Context, cfg natsbus.Config) error {
	conn, err := natsbus.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	if err := conn.Prepare(ctx); err != nil {
		conn.Close()
		return err
	}
	g.conn = conn
	return nil
}

// embed starts the swarm's own server.
func (g *Gateway) embed(ctx context.Context, cfg *natsbus.Config) error {
	var err error
	if g.accounts, err = natsbus.OpenAccounts(accountsPath(g.cfg.Dir)); err != nil {
		return err
	}
	listen, err := g.ports.pick("bus", g.cfg.Bus)
	if err != nil {
		return err
	}
	g.server, err = natsbus.StartServer(ctx, natsbus.ServerConfig{
		Name: g.cfg.Name, Dir: filepath.Join(g.cfg.Dir, "nats"), Listen: listen, Log: g.cfg.Log,
		TLS: g.credentials.Server(g.Admit, identity.RoleNode, identity.RoleGateway), Accounts: g.accounts,
	})
	if err != nil {
		return err
	}
	g.ports.keep("bus", g.server.Addr())
	cfg.Embedded = g.server
	return nil
}

// defaultReplicas survive the loss of one server of three.
const defaultReplicas = 3

func (g *Gateway) useExternal(cfg *natsbus.Config) error {
	ext := g.cfg.External
	if len(ext.Servers) == 0 || ext.Trust == "" {
		return errors.New("an external NATS cluster needs its addresses and the file with its authority's certificate")
	}
	path := ext.Accounts
	if path == "" {
		path = accountsPath(g.cfg.Dir)
	}
	var err error
	if g.accounts, err = natsbus.OpenAccounts(path); err != nil {
		return err
	}
	if g.trust, err = os.ReadFile(ext.Trust); err != nil {
		return fmt.Errorf("the authority of the NATS cluster: %w", err)
	}
	if cfg.Trust, err = poolOf(g.trust); err != nil {
		return fmt.Errorf("%s: %w", ext.Trust, err)
	}
	cfg.Servers, cfg.Replicas = ext.Servers, ext.Replicas
	if cfg.Replicas == 0 {
		cfg.Replicas = defaultReplicas
	}
	return nil
}

// busServers is what members are told.
func (g *Gateway) busServers(seen net.Addr) []string {
	if g.server == nil {
		return g.cfg.External.Servers
	}
	return advertised(g.server.Addr(), g.cfg.Advertise, seen)
}

// Admit refuses members that were removed, though their certificate is still good:
// also when their name was given to another machine since. Until membership runs
// there is nobody to refuse.
func (g *Gateway) Admit(id identity.ID, key string) error {
	rec := g.recordOf(id.Name)
	switch {
	case rec == nil || id.Role != identity.RoleNode:
		return nil
	case rec.Desired == control.DesiredRemoved:
		return fmt.Errorf("%w: %q", enrol.ErrRemoved, id.Name)
	case rec.Key != key:
		return fmt.Errorf("%w: %q is another machine now", enrol.ErrRemoved, id.Name)
	}
	return nil
}

// recordOf is what is known of a node; nil: nothing.
func (g *Gateway) recordOf(node string) *control.NodeRecord {
	membership := g.admission.Load()
	if membership == nil {
		return nil
	}
	if m := membership.View().Member(node); m != nil {
		return m.Record
	}
	return nil
}

// expelAfter lets a removed node read that it was removed, and go by itself.
const expelAfter = 3 * time.Second

// expel ends the connections of removed nodes, also of those that were not heard
// any more: somebody may have their key. Those of a key whose name another machine
// takes end at once; that machine's, if it has any yet, are made anew. On an external cluster it cannot; there
// the node's token runs out within a day, and until then nobody listens to it.
func (g *Gateway) expel(ctx context.Context) {
	if g.server == nil {
		return
	}
	records, err := g.conn.Watch(ctx, control.BucketNodes, "")
	if err != nil {
		g.cfg.Log.Error("removed nodes keep their connections", "error", err)
		return
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	keys := map[string]string{} // by node
	for u := range records {
		rec := new(control.NodeRecord)
		if u.Synced || u.Deleted || control.Decode(u.Value, rec) != nil {
			continue
		}
		if old, known := keys[rec.ID]; known && old != rec.Key {
			g.kick(rec.ID)
		}
		keys[rec.ID] = rec.Key
		if rec.Desired == control.DesiredRemoved {
			waiting.Go(func() { g.expelLater(ctx, rec.ID) })
		}
	}
}

func (g *Gateway) expelLater(ctx context.Context, node string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(expelAfter):
	}
	if rec := g.recordOf(node); rec != nil && rec.Desired == control.DesiredRemoved { // else it enrolled anew meanwhile
		g.kick(node)
	}
}

func (g *Gateway) kick(node string) {
	if err := g.server.Kick(node); err != nil {
		g.cfg.Log.Warn("a removed node is still connected", "node", node, "error", err)
	}
}
