package faultproxy

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Way is a direction through the proxy.
type Way int

// Ways.
const (
	Up   Way = 0 // from the side that connected to the target
	Down Way = 1 // back
)

func (w Way) String() string {
	if w == Up {
		return "up"
	}
	return "down"
}

func (f Fault) way(w Way) Direction {
	if w == Up {
		return f.Up
	}
	return f.Down
}

// link is one connection through the proxy.
type link struct {
	proxy          *Proxy
	client, target *net.TCPConn
	halfClosed     [2]atomic.Bool // by command, by way
	once           sync.Once
	done           chan struct{} // closed when the link is over
}

// ends returns where bytes of a way come from and go to.
func (l *link) ends(w Way) (src, dst *net.TCPConn) {
	if w == Up {
		return l.client, l.target
	}
	return l.target, l.client
}

// close ends the link in peace.
func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.client.Close()
		_ = l.target.Close()
	})
}

// reset ends the link by RST on both sides.
func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		abort(l.client)
		abort(l.target)
	})
}

func (l *link) halfClose(w Way) {
	_, dst := l.ends(w)
	l.halfClosed[w].Store(true)
	_ = dst.CloseWrite() // fails only when the link is over, which is fine
}

// abort closes c so that the peer gets a reset.
func abort(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// piece is a chunk on its way, or the end of the stream.
type piece struct {
	data  []byte
	due   time.Time
	fin   bool
	reset bool
}

// stream is one way of one link: receive reads and stamps, send waits and writes.
type stream struct {
	link  *link
	way   Way
	rng   *rand.Rand
	queue chan piece
	free  chan []byte // buffers for reuse

	bytes   atomic.Int64  // in the queue or being written
	drained chan struct{} // capacity 1: bytes fell
}

func newStream(l *link, w Way, rng *rand.Rand) *stream {
	return &stream{
		link: l, way: w, rng: rng, queue: make(chan piece, queued), free: make(chan []byte, queued),
		drained: make(chan struct{}, 1),
	}
}

func (s *stream) state() (Direction, <-chan struct{}) {
	st := s.link.proxy.state.Load()
	return st.fault.way(s.way), st.changed
}

// receive reads until the stream ends or the link is over.
func (s *stream) receive() {
	src, _ := s.link.ends(s.way)
	for {
		if !s.awaitRoom() {
			return
		}
		buf := s.buffer()
		n, err := src.Read(buf)
		d, _ := s.state()
		due := time.Now().Add(d.lateness(n, s.rng))
		if n > 0 && !s.push(piece{data: buf[:n], due: due}) {
			return
		}
		if err != nil {
			s.push(piece{due: due, fin: true, reset: !errors.Is(err, io.EOF)})
			return
		}
	}
}

// awaitRoom waits while a throttled way holds as much as it may. It returns false
// when the link is over.
func (s *stream) awaitRoom() bool {
	for {
		d, changed := s.state()
		limit := int64(float64(d.BytesPerSecond) * throttledQueue.Seconds())
		if d.BytesPerSecond == 0 || s.bytes.Load() <= limit {
			return true
		}
		select {
		case <-s.drained:
		case <-changed:
		case <-s.link.done:
			return false
		}
	}
}

func (s *stream) buffer() []byte {
	select {
	case b := <-s.free:
		return b[:chunk]
	default:
		return make([]byte, chunk)
	}
}

func (s *stream) push(p piece) bool {
	s.bytes.Add(int64(len(p.data)))
	select {
	case s.queue <- p:
		return true
	case <-s.link.done:
		return false
	}
}

// send writes each piece when its time has come.
func (s *stream) send() {
	_, dst := s.link.ends(s.way)
	for {
		var p piece
		select {
		case p = <-s.queue:
		case <-s.link.done:
			return
		}
		if !s.hold(p.due) {
			return
		}
		switch {
		case p.reset:
			s.link.reset()
			return
		case p.fin:
			_ = dst.CloseWrite()
			return
		case s.link.halfClosed[s.way].Load():
			// Thrown away; the other way goes on.
		case !s.write(dst, p.data) && !s.link.halfClosed[s.way].Load():
			s.link.reset() // the receiver is gone, and the sender hears of it
			return
		}
		s.bytes.Add(-int64(len(p.data)))
		select {
		case s.drained <- struct{}{}:
		default:
		}
		select {
		case s.free <- p.data:
		default:
		}
	}
}

// write sends data at the speed that is allowed.
func (s *stream) write(dst *net.TCPConn, data []byte) bool {
	for len(data) > 0 {
		d, _ := s.state()
		part := data
		if d.BytesPerSecond > 0 {
			step := max(1, int(float64(d.BytesPerSecond)*throttleStep.Seconds()))
			part = data[:min(len(data), step)]
			cost := time.Duration(float64(len(part)) / float64(d.BytesPerSecond) * float64(time.Second))
			if !s.hold(time.Now().Add(cost)) {
				return false
			}
		}
		n, err := dst.Write(part)
		s.link.proxy.bytes[s.way].Add(uint64(n))
		if err != nil {
			return false
		}
		data = data[n:]
	}
	return true
}

// hold waits until due and, if the way is silent then, until that ends. It returns
// false when the link is over.
func (s *stream) hold(due time.Time) bool {
	for {
		d, changed := s.state()
		wait := time.Until(due)
		if !d.Silent && wait <= 0 {
			return true
		}
		var timer <-chan time.Time
		if wait > 0 {
			timer = time.After(wait)
		}
		select {
		case <-timer:
		case <-changed:
		case <-s.link.done:
			return false
		}
	}
}
