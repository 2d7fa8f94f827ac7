package memnet

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"
)

const (
	// backlog is how many connections wait for Accept; further ones are as if their
	// SYN was lost.
	backlog = 128

	// firstRetry and maxRetries are how a dial without answer is repeated: after
	// 1, 2, 4 ... seconds, as Linux does, which ends after about two minutes.
	firstRetry = time.Second
	maxRetries = 6
)

// Listener accepts connections at one address.
type Listener struct {
	net    *Network
	addr   Addr
	queue  chan *Conn
	done   chan struct{}
	closed bool // guarded by net.mu
}

var _ net.Listener = (*Listener)(nil)

// Listen opens host:port; port 0 chooses a free one.
func (n *Network) Listen(addr string) (*Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("memnet: listening: %w", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	a := Addr(addr)
	if port == "0" {
		a = n.ephemeralLocked(host)
	} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return nil, fmt.Errorf("memnet: listening on port %q: %w", port, err)
	}
	switch {
	case n.closed:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: a, Err: net.ErrClosed}
	case n.listeners[a.String()] != nil:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: a, Err: syscall.EADDRINUSE}
	}
	l := &Listener{net: n, addr: a, queue: make(chan *Conn, backlog), done: make(chan struct{})}
	n.listeners[a.String()] = l
	return l, nil
}

// Accept waits for a connection or Close.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case c := <-l.queue:
			return c, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
}

// Addr returns the address.
func (l *Listener) Addr() net.Addr { return l.addr }

// Close ends Accept and resets connections that nobody accepted.
func (l *Listener) Close() error {
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.closed {
		return &net.OpError{Op: "close", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
	l.closeLocked()
	return nil
}

func (l *Listener) closeLocked() {
	l.closed = true
	delete(l.net.listeners, l.addr.String())
	close(l.done)
	for {
		select {
		case c := <-l.queue:
			c.resetLocked()
			c.closeLocked()
		default:
			return
		}
	}
}

// Dialer returns a function with the shape of net.Dialer.DialContext that connects
// from host.
func (n *Network) Dialer(host string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return n.Dial(ctx, host, addr)
	}
}

// Dial connects from a host to an address. It takes one round trip; a refusal
// takes as long, and silence lasts until ctx ends or about two minutes.
func (n *Network) Dial(ctx context.Context, host, addr string) (net.Conn, error) {
	to := Addr(addr)
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: err}
	}
	pause := firstRetry
	for range maxRetries {
		trip, lost := n.trip(host, to.host())
		if !lost {
			if err := sleep(ctx, trip); err != nil {
				return fail(err)
			}
			c, err := n.connect(host, to)
			if c != nil {
				return c, nil // not c, err: a nil *Conn is no nil net.Conn
			}
			if err != nil {
				return fail(err)
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return fail(err)
		}
		pause *= 2
	}
	return fail(syscall.ETIMEDOUT)
}

// trip returns how long a round trip takes, or that it has no end.
func (n *Network) trip(a, b string) (d time.Duration, lost bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	there, back := pair{a, b}, pair{b, a}
	lost = n.silentLocked(there) || n.silentLocked(back)
	for _, p := range []pair{there, back} {
		link := n.linkLocked(p)
		d += link.Delay + link.lateness(packet, n.rng)
	}
	return d, lost
}

// connect makes the connection; nil and no error mean that the attempt got lost.
func (n *Network) connect(host string, to Addr) (*Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.listeners[to.String()]
	switch {
	case n.closed:
		return nil, net.ErrClosed
	case n.silentLocked(pair{host, to.host()}) || n.silentLocked(pair{to.host(), host}):
		return nil, nil
	case l == nil || n.refusing[to.host()]:
		return nil, syscall.ECONNREFUSED
	case len(l.queue) == cap(l.queue):
		return nil, nil
	}
	d, a := n.newPairLocked(n.ephemeralLocked(host), to)
	l.queue <- a
	return d, nil
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
