package pool

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// link is one established connection: after TLS and hello, before any session.
// Three goroutines own it: the send loop writes, the receive loop reads, the
// keeper watches the time. The first fault ends all three; the owner hears of
// it once, after they are gone.
type link struct {
	conn       net.Conn // TLS, or plain in tests
	raw        net.Conn // below TLS: closing it never blocks
	flush      func() error
	endWrite   func() error // says to the peer's kernel that nothing follows
	peer       Peer
	mine       wire.Hello
	peerHello  wire.Hello
	maxMessage int
	born       time.Time

	st       *store
	counts   *counters
	out      *outbox
	owner    linkOwner
	settings func() *Settings

	draining  chan struct{} // closed when no new session may start here
	drainOnce sync.Once
	gone      chan struct{} // closed when all goroutines have ended
	stop      chan struct{} // closed by the first fault
	fault     atomic.Pointer[linkFault]
	wg        sync.WaitGroup

	held     atomic.Int64 // bytes in the inboxes of its sessions
	maxHeld  int64
	heard    atomic.Int64 // nanoseconds since born of the newest inbound bytes
	rtt      atomic.Int64 // smoothed, nanoseconds; 0: unknown
	degraded atomic.Bool
	leaving  atomic.Bool // everything is written, and the peer was told so

	life struct {
		sync.Mutex
		*liveness
	}
}

// linkFault is why a link ended.
type linkFault struct {
	why    lossReason
	detail string
	clean  bool // nothing is cut off: the peer closed between two frames, or we did
}

// linkOwner is what stands above a link: a pool's writer, or a server's
// connection.
type linkOwner interface {
	// find returns the live session with this id, or nil. Called per frame.
	find(id uint64) *session
	// open is an OPEN of the peer; false: refused.
	open(id uint64, o wire.Open) bool
	// goAway is a GOAWAY of the peer.
	goAway(r wire.Reason)
	// wanted is a WANT of the peer.
	wanted(n int)
	// answered is called after each PONG that gave a round trip.
	answered(took time.Duration)
	// doubtAfter is how long a PING may be unanswered before it is overdue; 0: never.
	doubtAfter() time.Duration
	// overdue is called once for a PING that is, with the time it was sent.
	overdue(sent time.Time)
	// healthChanged is called after each change of degraded.
	healthChanged()
	// tick is called by the keeper about twice a second.
	tick(now time.Time)
	// lost is called once, when the link's goroutines have ended.
	lost(f *linkFault)
}

// linkParts is what a handshake hands over.
type linkParts struct {
	conn, raw net.Conn
	flush     func() error
	endWrite  func() error
	peer      Peer
	mine      wire.Hello
	theirs    wire.Hello
	roundTrip time.Duration // of the hello
}

func newLink(parts linkParts, st *store, counts *counters, settings func() *Settings) *link {
	now := time.Now()
	l := &link{
		conn: parts.conn, raw: parts.raw, flush: parts.flush, endWrite: parts.endWrite,
		peer: parts.peer, mine: parts.mine, peerHello: parts.theirs, born: now,
		st: st, counts: counts, out: newOutbox(st, counts, settings()), settings: settings,
		draining: make(chan struct{}), gone: make(chan struct{}), stop: make(chan struct{}),
	}
	l.maxHeld = maxHeld
	window := newCredit(parts.theirs.WindowBytes, parts.theirs.WindowMessages)
	l.maxMessage = max(0, maxMessage(window.windowBytes))
	l.life.liveness = newLiveness(settings(), now, parts.roundTrip)
	return l
}

// start sets the link going. The owner must be complete by then.
func (l *link) start(owner linkOwner) {
	l.owner = owner
	l.wg.Add(3)
	go l.sendLoop()
	go l.receiveLoop()
	go l.keep()
	go func() {
		l.wg.Wait()
		close(l.gone)
		owner.lost(l.fault.Load())
	}()
}

// fail ends the link for the first reason given; later ones are ignored. It
// never blocks: the socket is closed below TLS.
func (l *link) fail(f linkFault) {
	if l.leaving.Load() && (f.why == lossPeerClosed || f.why == lossReset || f.why == lossSilent || f.why == lossRetired) {
		f = linkFault{why: lossRetired, detail: "drained", clean: true}
	}
	if !l.fault.CompareAndSwap(nil, &f) {
		return
	}
	close(l.stop)
	l.out.close()
	if !f.clean {
		abort(l.raw)
	}
	_ = l.raw.Close()
}

// abort makes the close that follows a reset, where the transport can: the peer
// shall not take it for a good end.
func abort(c net.Conn) {
	switch c := c.(type) {
	case interface{ SetLinger(sec int) error }:
		_ = c.SetLinger(0)
	case interface{ Reset() }:
		c.Reset()
	}
}

// retire ends the link after everything queued has been sent, at most
// closeLinger from now.
func (l *link) retire() {
	l.markDraining()
	l.out.finish()
}

// markDraining says that no new session may start here. Idempotent.
func (l *link) markDraining() { l.drainOnce.Do(func() { close(l.draining) }) }

// hold counts bytes into (or out of) the inboxes of the link's sessions, and says
// whether they are within what one peer may make us keep.
func (l *link) hold(n int) bool {
	if n == 0 {
		return true
	}
	l.counts.buffered.Add(int64(n))
	return l.held.Add(int64(n)) <= l.maxHeld
}

// configure applies reloaded settings.
func (l *link) configure() {
	s := l.settings()
	l.out.configure(s)
	l.life.Lock()
	l.life.configure(s)
	l.life.Unlock()
}

// faultOf tells a read or write error apart.
func faultOf(err error) linkFault {
	var broken *wire.FrameError
	switch {
	case errors.Is(err, io.EOF):
		return linkFault{why: lossPeerClosed, detail: "closed by the peer", clean: true}
	case errors.As(err, &broken) && !errors.Is(err, wire.ErrTruncated):
		return linkFault{why: lossProtocol, detail: err.Error()}
	}
	var alert tls.AlertError
	if errors.As(err, &alert) {
		return linkFault{why: lossProtocol, detail: err.Error()}
	}
	return linkFault{why: lossReset, detail: err.Error()}
}
