package plane

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hecate/internal/control"
	"hecate/internal/control/enrol"
	"hecate/internal/control/natsbus"
	"hecate/swarm"
)

// testLog shows what happens when a test is run with -v.
func testLog(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("test", t.Name())
}

func startGateway(t *testing.T, dir string, patience control.Patience) *Gateway {
	t.Helper()
	g, err := StartGateway(t.Context(), GatewayConfig{
		Dir: dir, Planner: swarm.Planner{}.Plan, Patience: patience, Log: testLog(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func addModel(t *testing.T, g *Gateway) {
	t.Helper()
	hash := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	err := control.PutModel(t.Context(), g.Store(), &control.ModelRecord{
		ID: "demo", Hash: hash, Size: 6 << 20, ContextLength: 512, Created: time.Now(), Demo: true,
		Spec: swarm.ModelSpec{ID: "demo", Layers: 6, LayerBytes: []int64{1 << 20}, KVBytes: 16, ContextTokens: 512},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func token(t *testing.T, g *Gateway, uses int) string {
	t.Helper()
	tok, err := g.CreateToken(t.Context(), enrol.TokenOptions{Uses: uses})
	if err != nil {
		t.Fatal(err)
	}
	return tok.Encode()
}

// worker is a node whose room holds at once whatever the plan says.
type worker struct {
	node  *Node
	plan  atomic.Pointer[control.PlanDocument]
	stop  func() error
	ended chan struct{} // closed when Run has returned
}

func startWorker(t *testing.T, dir, name, token string) *worker {
	t.Helper()
	n, err := OpenNode(t.Context(), NodeConfig{Dir: dir, Name: name, Token: token, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := &worker{node: n, ended: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	var result error
	go func() {
		defer close(w.ended)
		result = n.Run(ctx, w.duty())
	}()
	w.stop = sync.OnceValue(func() error {
		cancel()
		<-w.ended
		n.Close()
		return result
	})
	t.Cleanup(func() { _ = w.stop() })
	return w
}

func (w *worker) duty() Duty {
	return Duty{
		Profile: func() enrol.AttachRequest {
			return enrol.AttachRequest{Profile: swarm.NodeProfile{
				MemoryBytes: 5 << 20, Score: 1, Endpoints: []string{"127.0.0.1:7000"},
			}}
		},
		Fill: func(h *control.Health) {
			d := w.plan.Load()
			if d == nil {
				return
			}
			h.PlanGeneration = d.Generation
			mine, _ := d.Plan.Node(w.node.ID())
			for _, f := range mine.Fragments {
				h.Held = append(h.Held, control.HeldFragment{Model: f.Model, Layers: f.Layers, State: control.HoldServing})
			}
		},
		Plan: func(d *control.PlanDocument) {
			w.plan.Store(d)
			w.node.Changed()
		},
	}
}

// await polls for what happens in other goroutines; the test binary's own
// deadline bounds it.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-t.Context().Done():
			t.Fatal("this did not happen: " + what)
		case <-tick.C:
		}
	}
}

func alive(g *Gateway) (n int) {
	for _, m := range g.Membership().View().Members {
		if m.Status.Living() {
			n++
		}
	}
	return n
}

// holding counts the nodes that report layers.
func holding(g *Gateway) (n int) {
	for _, m := range g.Membership().View().Members {
		if m.Status.Living() && m.Health != nil && len(m.Health.Held) > 0 {
			n++
		}
	}
	return n
}

func TestASwarmFromNothingToLayersAndThroughARestartOfItsGateway(t *testing.T) {
	dir := t.TempDir()
	g := startGateway(t, dir, control.Patience{FirstNodes: 3})
	addModel(t, g)
	tok := token(t, g, 3)
	workers := map[string]*worker{}
	for _, name := range []string{"a", "b", "c"} {
		workers[name] = startWorker(t, t.TempDir(), name, tok)
	}
	await(t, "three nodes hold layers", func() bool { return holding(g) == 3 })
	plan := workers["a"].plan.Load()
	if plan.Generation != 1 || len(plan.Plan.Pipelines) != 2 {
		t.Errorf("%s with %d copies", plan, len(plan.Plan.Pipelines))
	}

	swarmID, join := g.Swarm(), g.JoinAddresses()[0]
	g.Close()
	g.Close()
	g = startGateway(t, dir, control.Patience{FirstNodes: 3})
	if g.Swarm() != swarmID || g.JoinAddresses()[0] != join {
		t.Errorf("swarm %s at %s, was %s at %s", g.Swarm(), g.JoinAddresses()[0], swarmID, join)
	}
	await(t, "the nodes come back by themselves", func() bool { return holding(g) == 3 })
	for _, m := range g.Membership().View().Members {
		if m.Record.Incarnation != 1 {
			t.Errorf("node %s has incarnation %d though it was not restarted", m.ID, m.Record.Incarnation)
		}
	}
	await(t, "the new epoch arrives", func() bool {
		d := workers["b"].plan.Load()
		return d.Epoch > plan.Epoch && d.Hash == plan.Hash
	})
}

func TestANodeComesAndGoes(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	tok := token(t, g, 1)
	dir := t.TempDir()
	events := g.Membership().Subscribe()
	defer events.Close()
	for i := range 5 {
		w := startWorker(t, dir, "mini", tok)
		if e, ok := (<-events.C).(control.Joined); !ok || e.Incarnation != uint64(i+1) {
			t.Fatalf("start %d: %v", i, e)
		}
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		if e, ok := (<-events.C).(control.Left); !ok || e.Removed {
			t.Fatalf("stop %d: %v", i, e)
		}
	}
	if members := g.Membership().View().Members; len(members) != 1 {
		t.Errorf("%d entries for one node", len(members))
	}
}

func TestARemovedNodeEndsAndMayComeBackWithAToken(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	addModel(t, g)
	dir := t.TempDir()
	w := startWorker(t, dir, "mini", token(t, g, 1))
	startWorker(t, t.TempDir(), "maxi", token(t, g, 1))
	await(t, "both hold layers", func() bool { return holding(g) == 2 })
	if err := control.SetDesired(t.Context(), g.Store(), "mini", control.DesiredRemoved); err != nil {
		t.Fatal(err)
	}
	await(t, "it is gone", func() bool { return alive(g) == 1 })
	<-w.ended
	if err := w.stop(); !errors.Is(err, enrol.ErrRemoved) {
		t.Errorf("it ended with %v", err)
	}
	if d := w.plan.Load(); d.DesiredOf("mini") != control.DesiredRemoved {
		t.Errorf("its last plan is %s, where it is %s", d, d.DesiredOf("mini"))
	}
	again := startWorker(t, t.TempDir(), "mini", token(t, g, 1))
	await(t, "it is back", func() bool { return holding(g) == 2 })
	if d := again.plan.Load(); d.DesiredOf("mini") != control.DesiredActive {
		t.Errorf("%s still has it as %s", d, d.DesiredOf("mini"))
	}
}

func TestARemovedNodeThatDoesNotGoIsExpelled(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	w := startWorker(t, t.TempDir(), "mini", token(t, g, 1))
	await(t, "it lives", func() bool { return alive(g) == 1 })
	// It neither reads plans nor asks: a connection made with its credentials.
	user, err := natsbus.NewUser()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := g.accounts.NodeToken("mini", user.PublicKey(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	user.SetToken(tok)
	stubborn, err := natsbus.Connect(t.Context(), natsbus.Config{
		Servers: g.busServers(nil), Credentials: w.node.Credentials(), User: user,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stubborn.Close()
	if err := control.SetDesired(t.Context(), g.Store(), "mini", control.DesiredRemoved); err != nil {
		t.Fatal(err)
	}
	await(t, "it is expelled", func() bool { return !stubborn.Connected() })
	if err := stubborn.Reconnect(); err != nil {
		t.Fatal(err)
	}
	if _, err := natsbus.Connect(t.Context(), natsbus.Config{
		Servers: g.busServers(nil), Credentials: w.node.Credentials(), User: user,
	}); err == nil {
		t.Error("a removed node was admitted again")
	}
}

func TestFoldersAndNames(t *testing.T) {
	dir := t.TempDir()
	g := startGateway(t, dir, control.Patience{})
	if _, err := StartGateway(t.Context(), GatewayConfig{Dir: dir, Planner: swarm.Planner{}.Plan}); !errors.Is(err, ErrFolderInUse) {
		t.Errorf("a second gateway in one folder: %v", err)
	}
	nodeDir := t.TempDir()
	w := startWorker(t, nodeDir, "mini", token(t, g, 1))
	await(t, "it lives", func() bool { return alive(g) == 1 })
	if _, err := OpenNode(t.Context(), NodeConfig{Dir: nodeDir}); !errors.Is(err, ErrFolderInUse) {
		t.Errorf("a second node in one folder: %v", err)
	}
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNode(t.Context(), NodeConfig{Dir: nodeDir, Name: "maxi"}); err == nil {
		t.Error("an enrolled folder took another name")
	}
	n, err := OpenNode(t.Context(), NodeConfig{Dir: nodeDir})
	if err != nil || n.ID() != "mini" {
		t.Fatalf("without a token: %v", err)
	}
	n.Close()
	if _, err := OpenNode(t.Context(), NodeConfig{Dir: t.TempDir()}); !errors.Is(err, enrol.ErrNotEnrolled) {
		t.Errorf("an empty folder without a token: %v", err)
	}
	if _, err := OpenNode(t.Context(), NodeConfig{Dir: t.TempDir(), Name: "mini", Token: token(t, g, 1)}); !errors.Is(err, enrol.ErrNameTaken) {
		t.Errorf("a name that is taken: %v", err)
	}
}

func TestTwoProcessesWithOneKey(t *testing.T) {
	g := startGateway(t, t.TempDir(), control.Patience{})
	dir, copied := t.TempDir(), t.TempDir()
	first := startWorker(t, dir, "mini", token(t, g, 1))
	await(t, "it lives", func() bool { return alive(g) == 1 })
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	// CopyFS widens permissions; a key that others can read is refused anyway.
	for _, file := range []string{"node.key", "node.crt", "swarm.json"} {
		if err := os.Chmod(copied+"/"+file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second, err := OpenNode(t.Context(), NodeConfig{Dir: copied, Log: testLog(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	w := &worker{node: second}
	if err := second.Run(t.Context(), w.duty()); !errors.Is(err, enrol.ErrDuplicate) {
		t.Errorf("the copy ended with %v", err)
	}
	if alive(g) != 1 {
		t.Error("the first one suffered")
	}
	if err := first.stop(); err != nil {
		t.Error(err)
	}
}
