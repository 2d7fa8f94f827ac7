package poolbench

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"hecate/pool"
)

// hecate is our own contestant: a pool and one or more servers of one node.
type hecate struct {
	id     identities
	pool   *pool.Pool
	events chan pool.Event
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup

	mu     sync.Mutex
	nodes  []*hecateNode
	faults []error // of servers that ended by themselves
	rev    uint64
}

// hecateNode is one server of the node, with its accepted connections.
type hecateNode struct {
	net.Listener
	mu    sync.Mutex
	conns []*net.TCPConn
}

// Accept remembers the connection, so that it can be lost later.
func (n *hecateNode) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		n.mu.Lock()
		n.conns = append(n.conns, tcp)
		n.mu.Unlock()
	}
	return c, err
}

// abort resets the newest k connections that are still open and returns how many it found.
func (n *hecateNode) abort(k int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	done := 0
	for i := len(n.conns) - 1; i >= 0 && done < k; i-- {
		if n.conns[i].SetLinger(0) == nil && n.conns[i].Close() == nil {
			done++
		}
		n.conns = n.conns[:i]
	}
	return done
}

// oneWriter makes the pool use a single connection, as the other contestants do.
func oneWriter(s pool.Settings) pool.Settings {
	s.Floor, s.FloorBase, s.FloorMin, s.ShadowWriters = pool.FloorStatic, 1, 1, 0
	return s
}

func newHecate(id identities) (transport, error) {
	return startHecate(id, oneWriter(pool.DefaultSettings()))
}

func startHecate(id identities, settings pool.Settings) (*hecate, error) {
	h := &hecate{id: id, events: make(chan pool.Event, 4096)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	client := id.client.Clone()
	client.ServerName = ""
	p, err := pool.New(pool.Config{
		NodeID: clientName, SwarmID: swarmName, TLS: client, Settings: settings,
		Observe: func(e pool.Event) {
			select {
			case h.events <- e:
			default: // nobody looks: measurements that need events read them as they come
			}
		},
	})
	if err != nil {
		h.cancel()
		return nil, err
	}
	h.pool = p
	addr, err := h.addNode()
	if err == nil {
		err = h.apply(addr)
	}
	if err == nil {
		err = h.awaitFloor(context.Background())
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// addNode starts one more server and returns its address.
func (h *hecate) addNode() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening: %w", err)
	}
	n := &hecateNode{Listener: l}
	cfg := pool.ServerConfig{NodeID: serverName, SwarmID: swarmName, TLS: h.serverTLS()}
	h.mu.Lock()
	h.nodes = append(h.nodes, n)
	h.mu.Unlock()
	h.wg.Go(func() {
		if err := pool.Serve(h.ctx, n, cfg, serveHecate); err != nil {
			h.mu.Lock()
			h.faults = append(h.faults, err)
			h.mu.Unlock()
		}
	})
	return l.Addr().String(), nil
}

func (h *hecate) serverTLS() *tls.Config { return h.id.server.Clone() }

// apply makes addrs the endpoints of the node.
func (h *hecate) apply(addrs ...string) error {
	h.mu.Lock()
	h.rev++
	rev := h.rev
	h.mu.Unlock()
	return h.pool.Apply(pool.Map{Revision: rev, Groups: map[string]pool.Group{serverName: pool.GroupOf(addrs...)}})
}

// atFloor reports whether every family has the writers that it should have.
func (h *hecate) atFloor() bool {
	r := h.pool.Ready(serverName)
	for _, f := range r.Families {
		if f.Living < f.Floor {
			return false
		}
	}
	return r.Ready && len(r.Families) > 0
}

// awaitFloor polls, because floors are reached in the background.
func (h *hecate) awaitFloor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, floorTimeout)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !h.atFloor() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the pool does not reach its floor: %v", h.pool.Ready(serverName).Missing)
		}
	}
	return nil
}

func serveHecate(ctx context.Context, s pool.Session) {
	ch := &hecateChannel{s: s}
	b, err := ch.recv()
	if err != nil {
		return
	}
	if sp, err := decodeSpec(b); err == nil {
		_ = serve(ctx, ch, sp)
	}
}

func (h *hecate) open(ctx context.Context, sp spec) (channel, error) {
	s, err := h.pool.Open(ctx, serverName, pool.OpenOptions{Payload: sp.encode()})
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &hecateChannel{s: s}, nil
}

func (h *hecate) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	err := h.pool.Close(ctx)
	h.cancel()
	h.wg.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return errors.Join(append(h.faults, err)...)
}

type hecateChannel struct {
	s    pool.Session
	last []byte
}

func (c *hecateChannel) send(p []byte) error { return c.s.Send(context.Background(), p) }

func (c *hecateChannel) recv() ([]byte, error) {
	if c.last != nil {
		c.s.Recycle(c.last)
		c.last = nil
	}
	p, err := c.s.Recv(context.Background())
	c.last = p
	return p, err
}

func (c *hecateChannel) close() { c.s.Close(pool.CodeCancelled) }
