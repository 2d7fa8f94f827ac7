package memnet

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Conn is one end of a connection.
type Conn struct {
	net           *Network
	local, remote Addr
	in, out       *half

	// Guarded by net.mu.
	closed                      bool
	readDeadline, writeDeadline time.Time
	readAlarm, writeAlarm       alarm
}

var _ net.Conn = (*Conn)(nil)

// newPairLocked joins two ends.
func (n *Network) newPairLocked(dialer, listener Addr) (d, l *Conn) {
	there := newHalf(n, pair{dialer.host(), listener.host()}, 2*n.made)
	back := newHalf(n, pair{listener.host(), dialer.host()}, 2*n.made+1)
	n.made++
	d = &Conn{net: n, local: dialer, remote: listener, in: back, out: there}
	l = &Conn{net: n, local: listener, remote: dialer, in: there, out: back}
	n.conns[d], n.conns[l] = struct{}{}, struct{}{}
	return d, l
}

// Read waits for data, the end of the stream, a reset, the deadline or Close.
func (c *Conn) Read(p []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	for {
		now := time.Now()
		if err := c.stateLocked(c.in, c.readDeadline, now); err != nil {
			return 0, c.opError("read", err)
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, again, err := c.in.receive(p, now)
		if n > 0 || err != nil {
			return n, err
		}
		c.readAlarm.set(c.in.cond, earlier(again, c.readDeadline))
		c.in.cond.Wait()
	}
}

// Write waits for room in the buffer. Data that was written before an error may
// still arrive.
func (c *Conn) Write(p []byte) (int, error) {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	written := 0
	for {
		now := time.Now()
		err := c.stateLocked(c.out, c.writeDeadline, now)
		if err == nil && (c.out.fin || c.out.nobody && c.in.arrivedFin(now)) {
			err = syscall.EPIPE
		}
		if err != nil {
			return written, c.opError("write", err)
		}
		if n := min(len(p)-written, c.out.room()); n > 0 {
			c.out.send(p[written:written+n], now)
			written += n
		}
		if written == len(p) {
			return written, nil
		}
		c.writeAlarm.set(c.out.cond, c.writeDeadline)
		c.out.cond.Wait()
	}
}

// stateLocked tells why h can no longer be used from this end.
func (c *Conn) stateLocked(h *half, deadline, now time.Time) error {
	switch {
	case c.closed:
		return net.ErrClosed
	case h.reset != nil:
		return h.reset
	case !deadline.IsZero() && !deadline.After(now):
		return os.ErrDeadlineExceeded
	default:
		return nil
	}
}

// Close ends both directions: the peer reads what was written, then io.EOF.
func (c *Conn) Close() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.opError("close", net.ErrClosed)
	}
	c.closeLocked()
	return nil
}

func (c *Conn) closeLocked() {
	c.closed = true
	c.out.finish(time.Now())
	c.in.abandon()
	c.out.cond.Broadcast()
	c.readAlarm.stop()
	c.writeAlarm.stop()
	delete(c.net.conns, c)
}

// CloseWrite ends the outgoing direction only.
func (c *Conn) CloseWrite() error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if err := c.stateLocked(c.out, time.Time{}, time.Time{}); err != nil {
		return c.opError("close", err)
	}
	c.out.finish(time.Now())
	return nil
}

// Reset aborts the connection: both ends fail with ECONNRESET at once.
func (c *Conn) Reset() {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	c.resetLocked()
}

func (c *Conn) resetLocked() {
	c.in.fail(syscall.ECONNRESET)
	c.out.fail(syscall.ECONNRESET)
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline ends reads that are under way or come later with os.ErrDeadlineExceeded.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline does so for writes.
func (c *Conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *Conn) setDeadlines(t time.Time, read, write bool) error {
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	if read {
		c.readDeadline = t
		c.in.cond.Broadcast()
	}
	if write {
		c.writeDeadline = t
		c.out.cond.Broadcast()
	}
	return nil
}

func (c *Conn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// alarm wakes those who wait on a condition at one moment.
type alarm struct {
	timer *time.Timer
	at    time.Time // zero: not set
}

// set makes sure that cond is signalled at the given time; zero means never. An
// alarm that rings too early only makes its owner look and set it again.
func (a *alarm) set(cond *sync.Cond, at time.Time) {
	if at.IsZero() || at.Equal(a.at) {
		return
	}
	now := time.Now()
	if a.at.After(now) && a.at.Before(at) {
		return
	}
	a.at = at
	if a.timer == nil {
		a.timer = time.AfterFunc(at.Sub(now), func() {
			cond.L.Lock()
			defer cond.L.Unlock()
			a.at = time.Time{}
			cond.Broadcast()
		})
		return
	}
	a.timer.Reset(at.Sub(now))
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
}

// earlier returns the earlier of two times, where zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
