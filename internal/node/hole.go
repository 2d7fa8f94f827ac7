package node

import (
	"context"
	"net"
	"sync"
	"time"

	"hecate/pool"
)

// Hole is a listener whose connections, and those made through it, swallow all packets on command, as
// if the cable were pulled: nothing arrives, nothing leaves, nobody is told.
type Hole struct {
	net.Listener

	mu struct {
		sync.Mutex
		until time.Time
	}
}

// NewHole wraps a listener.
func NewHole(l net.Listener) *Hole { return &Hole{Listener: l} }

// Swallow starts dropping for a while.
func (h *Hole) Swallow(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.until = time.Now().Add(d)
}

// Accept waits until packets pass again.
func (h *Hole) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &holeConn{Conn: c, hole: h}, nil
}

// through lets connections that the node makes itself fall into the hole too. A
// nil Hole swallows nothing.
func (h *Hole) through(dial pool.DialFunc) pool.DialFunc {
	if h == nil {
		return dial
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &holeConn{Conn: c, hole: h}, nil
	}
}

// holeConn lost a packet once and is then dead for good: the stream has a gap.
type holeConn struct {
	net.Conn
	hole *Hole
	lost bool
}

func (c *holeConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.gone() {
			return n, err
		}
	}
}

func (c *holeConn) Write(b []byte) (int, error) {
	if c.gone() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *holeConn) gone() bool {
	c.hole.mu.Lock()
	defer c.hole.mu.Unlock()
	if time.Now().Before(c.hole.mu.until) {
		c.lost = true
	}
	return c.lost
}
