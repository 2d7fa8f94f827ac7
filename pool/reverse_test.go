package pool

import (
	"context"
	"testing"
	"time"
)

// reverseWorld has a gateway that listens for node n1, which only dials.
func reverseWorld(t *testing.T, f func(w *world, n *node)) {
	inWorld(t, nil, func(w *world) {
		l, err := w.net.Listen("gateway:9")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- w.pool.ServeReverse(context.Background(), l) }()
		f(w, w.reverseNode("n1"))
		for _, n := range w.nodes {
			n.stop(t)
		}
		_ = w.pool.Close(context.Background())
		if err := <-served; err != nil {
			t.Errorf("serve reverse: %v", err)
		}
	})
}

func (w *world) reverseNode(name string) *node {
	w.t.Helper()
	srv, err := NewServer(ServerConfig{NodeID: name, SwarmID: "swarm", Plaintext: true}, echo)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &node{name: name, srv: srv, cancel: cancel, done: make(chan error, 1)}
	go func() {
		n.done <- srv.DialReverse(ctx, ReverseConfig{Addr: "gateway:9", Gateway: "gateway", Dial: w.net.Dialer(name)})
	}()
	w.nodes[name] = n
	return n
}

func reverseMap(names ...string) Map {
	m := Map{Groups: map[string]Group{}}
	for _, n := range names {
		m.Groups[n] = Group{IP4: {{Addr: n, Kind: Reverse}}}
	}
	return m
}

func TestReverseEndpoint(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		w.applyMap(reverseMap("n1"))
		settle(15 * time.Second)
		if g := w.group("n1"); g.FloorCurrent != 3 || g.Contours["active"] != 3 {
			t.Fatalf("%+v: want the floor, by the node's connections", g)
		}
		s := w.open("n1", OpenOptions{})
		mustEcho(t, s, make([]byte, 100000))
		// A swap: the node is asked for more, then the old ones drain.
		w.start("n2", echo, nil)
		m := reverseMap("n1")
		m.Groups["n2"] = GroupOf("n2:1")
		w.applyMap(m)
		settle(10 * time.Second)
		if g := w.pool.Snapshot().Generation; g.Active != 2 {
			t.Fatalf("%+v", g)
		}
		mustEcho(t, s, []byte("runs on"))
		s.Close(CodeNormal)
		settle(10 * time.Second)
		if got := len(n.srv.connections()); got != 3 {
			t.Errorf("the node holds %d connections, want 3", got)
		}
		// Losses are restored by the node.
		w.net.Cut("gateway", "n1")
		settle(15 * time.Second)
		if g := w.group("n1"); g.FloorCurrent != 3 {
			t.Errorf("after the cut: %+v", g)
		}
		if w.group("n1").Tries != 0 {
			t.Error("the gateway tried to dial a reverse endpoint")
		}
	})
}

func TestReverseNodeThatNobodyWants(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		settle(time.Minute)
		discarded := w.pool.Snapshot().WriterLosses["discarded"]
		if discarded == 0 || discarded > 20 {
			t.Errorf("%d connections discarded in a minute", discarded)
		}
		if len(w.pool.Snapshot().Writers) != 0 {
			t.Error("an unwanted node became a writer")
		}
		w.applyMap(reverseMap("n1"))
		settle(30 * time.Second)
		if g := w.group("n1"); g.FloorCurrent != 3 {
			t.Errorf("%+v", g)
		}
	})
}

func TestReverseSessionsIgnoreDirect(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		w.applyMap(reverseMap("n1"))
		settle(15 * time.Second)
		s := w.pool.Snapshot().Settings
		s.Fallback = FallbackDirect
		if err := w.pool.Reload(s); err != nil {
			t.Fatal(err)
		}
		c := w.open("n1", OpenOptions{})
		settle(10 * time.Minute)
		mustEcho(t, c, []byte("there is no other way to this node"))
		c.Close(CodeNormal)
	})
}

func TestReverseOverTLS(t *testing.T) {
	noLeaks(t)
	ca := newAuthority(t)
	p, err := New(Config{NodeID: "gateway", SwarmID: "swarm", TLS: ca.tls(t, "gateway")})
	if err != nil {
		t.Fatal(err)
	}
	l := listenLoopback(t)
	served := make(chan error, 1)
	go func() { served <- p.ServeReverse(context.Background(), l) }()
	srv, err := NewServer(ServerConfig{NodeID: "n1", SwarmID: "swarm", TLS: ca.tls(t, "n1")}, echo)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	dialled := make(chan error, 1)
	go func() {
		dialled <- srv.DialReverse(ctx, ReverseConfig{Addr: l.Addr().String(), Gateway: "gateway"})
	}()
	m := reverseMap("n1")
	m.Revision = 1
	if err := p.Apply(m); err != nil {
		t.Fatal(err)
	}
	s, err := p.Open(context.Background(), "n1", OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustEcho(t, s, make([]byte, 1<<20))
	s.Close(CodeNormal)
	_ = p.Close(context.Background())
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if err := <-dialled; err != nil {
		t.Error(err)
	}
}

// Idle connections of a node that dials are replaced like those that are dialled:
// the successor comes first, and the floor is never left.
func TestReverseIdleWritersAreReplacedFirstThenDrained(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		s := w.pool.Snapshot().Settings
		s.Floor = FloorStatic
		if err := w.pool.Reload(s); err != nil {
			t.Fatal(err)
		}
		w.applyMap(reverseMap("n1"))
		settle(15 * time.Second)
		early := w.pool.Snapshot().WriterLosses["discarded"] // it came before the map
		for range 200 {
			settle(time.Second)
			if g := w.group("n1"); g.FloorCurrent < 3 {
				t.Fatalf("below the floor: %+v", g)
			}
		}
		snap := w.pool.Snapshot()
		if n := snap.Replacements["committed"]; n < 9 || n > 18 {
			t.Errorf("%d replacements in 200 s at 45 s: %v", n, snap.Replacements)
		}
		for _, ws := range snap.Writers {
			if ws.Idle > 50*time.Second {
				t.Errorf("idle for %v: %+v", ws.Idle, ws)
			}
		}
		if got := len(n.srv.connections()); got > 4 {
			t.Errorf("the node holds %d connections, want 3, and one that drains", got)
		}
		if n := snap.WriterLosses["discarded"]; n > early {
			t.Errorf("%d connections came in vain", n)
		}
	})
}

// A successor that does not come leaves everything as it is.
func TestReverseReplacementThatDoesNotCome(t *testing.T) {
	reverseWorld(t, func(w *world, n *node) {
		w.applyMap(reverseMap("n1"))
		settle(40 * time.Second)
		w.net.Refuse("gateway", true)
		settle(40 * time.Second)
		snap := w.pool.Snapshot()
		if g := w.group("n1"); g.FloorCurrent < 2 || snap.Replacements["aborted"] == 0 || snap.Replacements["committed"] != 0 {
			t.Errorf("%+v, %v: want the old ones to serve on", g, snap.Replacements)
		}
		mustEcho(t, w.open("n1", OpenOptions{}), []byte("still there"))
		w.net.Refuse("gateway", false)
		settle(2 * time.Minute)
		if snap := w.pool.Snapshot(); snap.Replacements["committed"] == 0 {
			t.Errorf("%v: want replacements now", snap.Replacements)
		}
	})
}

// Rotation brings a successor for each connection, and sessions stay.
func TestReverseRotation(t *testing.T) {
	reverseWorld(t, func(w *world, _ *node) {
		w.applyMap(reverseMap("n1"))
		settle(15 * time.Second)
		s := w.open("n1", OpenOptions{})
		w.pool.Rotate()
		for range 30 {
			settle(time.Second)
			if g := w.group("n1"); g.FloorCurrent < 3 {
				t.Fatalf("below the floor: %+v", g)
			}
		}
		mustEcho(t, s, []byte("runs on"))
		if n := w.pool.Snapshot().Replacements["committed"]; n != 3 {
			t.Errorf("%d replaced, want 3", n)
		}
		s.Close(CodeNormal)
	})
}
