package pool

import (
	"net"
	"sync"
)

// batchConn gathers what TLS writes into fewer calls of the socket: TLS makes
// one record, and so one system call, of every 16 KiB. It passes everything
// through until batch is called, so that a handshake flows by itself.
type batchConn struct {
	net.Conn
	mu  sync.Mutex
	buf []byte // nil while passing through; len(buf) <= batchLimit
}

// batchLimit holds a full wire.Writer after encryption: four records and some
// control frames.
const batchLimit = 72 << 10

func (c *batchConn) batch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = make([]byte, 0, batchLimit)
}

func (c *batchConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.buf == nil || len(p) > batchLimit {
		if err := c.flushLocked(); err != nil {
			return 0, err
		}
		return c.Conn.Write(p)
	}
	if len(c.buf)+len(p) > batchLimit {
		if err := c.flushLocked(); err != nil {
			return 0, err
		}
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// flush sends what was gathered.
func (c *batchConn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushLocked()
}

func (c *batchConn) flushLocked() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}

// closeWrite sends what was gathered and ends this direction, where the transport
// can.
func (c *batchConn) closeWrite() error {
	if err := c.flush(); err != nil {
		return err
	}
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close sends what was gathered, such as TLS's goodbye, then closes.
func (c *batchConn) Close() error {
	_ = c.flush()
	return c.Conn.Close()
}
