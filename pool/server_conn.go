package pool

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"hecate/pool/wire"
)

// serverConn is one connection from a gateway: the index of its sessions and
// the handlers that serve them.
type serverConn struct {
	run  *serving
	link *link
	told chan struct{} // capacity 1: the gateway said how many connections it wants

	mu        sync.RWMutex
	sessions  map[uint64]*session
	handlers  int       // running; >= len(sessions); <= MaxSessions
	refuseAt  time.Time // no new sessions from then on; zero: never
	idleSince time.Time // no session since then; zero while there are some
}

func newServerConn(run *serving, parts linkParts) *serverConn {
	c := &serverConn{run: run, told: make(chan struct{}, 1), sessions: make(map[uint64]*session), idleSince: time.Now()}
	c.link = newLink(parts, run.srv.st, run.srv.counts, run.srv.policy.Load)
	return c
}

func (c *serverConn) find(id uint64) *session {
	c.mu.RLock()
	s := c.sessions[id]
	c.mu.RUnlock()
	return s
}

func (c *serverConn) count() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.sessions)
}

// open starts a session and its handler. Handlers are bounded, not only
// sessions: a peer that opens and closes in a loop must not pile up goroutines.
func (c *serverConn) open(id uint64, o wire.Open) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	late := !c.refuseAt.IsZero() && !time.Now().Before(c.refuseAt)
	if late || c.handlers >= c.run.srv.cfg.MaxSessions || c.sessions[id] != nil {
		return false
	}
	s := newSession(id, c, c.link)
	s.lane.opened = true
	s.advertised(o.WindowBytes, o.WindowMessages)
	ctx, cancel := context.WithCancel(c.run.hard)
	s.stop = cancel
	c.sessions[id] = s
	c.handlers++
	c.idleSince = time.Time{}
	c.run.srv.counts.opened.Add(1)
	c.run.wg.Add(1)
	go c.serve(ctx, s)
	return true
}

// serve runs the handler and closes the session behind it.
func (c *serverConn) serve(ctx context.Context, s *session) {
	defer c.run.wg.Done()
	defer c.handlerDone()
	code := CodeInternal
	defer func() {
		if fault := recover(); fault != nil {
			text := fmt.Sprintf("handler panic: %v\n%s", fault, debug.Stack())
			c.run.srv.event(Event{Kind: EventHandlerPanic, Group: c.link.peer.Node, Session: s.id, Reason: text})
		}
		s.Close(code)
	}()
	c.run.srv.handler(ctx, s)
	code = CodeNormal
}

func (c *serverConn) handlerDone() {
	c.mu.Lock()
	c.handlers--
	c.mu.Unlock()
	c.run.idle.ring()
}

// ended implements sessionOwner.
func (c *serverConn) ended(s *session, _ endReason) {
	c.mu.Lock()
	if c.sessions[s.id] == s {
		delete(c.sessions, s.id)
		if len(c.sessions) == 0 {
			c.idleSince = time.Now()
		}
	}
	c.mu.Unlock()
	c.run.idle.ring()
}

// announceDrain says that no new sessions are taken, and refuses them from a
// moment later: those that the gateway had opened before it heard are welcome.
func (c *serverConn) announceDrain(why string) {
	c.mu.Lock()
	already := !c.refuseAt.IsZero()
	if !already {
		c.refuseAt = time.Now().Add(openGrace)
	}
	c.mu.Unlock()
	c.link.markDraining()
	if !already {
		c.link.out.goAway(shutdownReason(why))
	}
}

// shut closes what is left and ends the connection when that is written.
func (c *serverConn) shut() {
	for _, s := range c.list() {
		s.closeFor(errShutdown, endShutdown)
	}
	c.link.retire()
	// A peer that does not read must not hold up the end.
	time.AfterFunc(closeLinger, func() { c.link.fail(linkFault{why: lossShutdown, detail: "did not drain in time"}) })
}

func (c *serverConn) list() []*session {
	c.mu.RLock()
	defer c.mu.RUnlock()
	list := make([]*session, 0, len(c.sessions))
	for _, s := range c.sessions {
		list = append(list, s)
	}
	return list
}

// goAway: the gateway moves to another connection. It overtakes what the gateway
// opened before, so nothing is refused for it.
func (c *serverConn) goAway(wire.Reason) {
	c.link.markDraining()
	c.run.idle.ring()
}

// wanted: how many connections the gateway asks a reverse node for.
func (c *serverConn) wanted(n int) {
	c.run.want.Store(int64(max(1, n)))
	kick(c.told)
	c.run.idle.ring()
}

func (c *serverConn) answered(time.Duration)    {}
func (c *serverConn) doubtAfter() time.Duration { return 0 }
func (c *serverConn) overdue(time.Time)         {}
func (c *serverConn) healthChanged()            {}

// tick ends sessions whose consumer stopped, and a connection that was idle for
// too long.
func (c *serverConn) tick(now time.Time) {
	limit := c.run.srv.cfg.IdleTimeout
	c.mu.RLock()
	idle := limit > 0 && len(c.sessions) == 0 && now.Sub(c.idleSince) >= limit
	c.mu.RUnlock()
	if idle {
		c.link.retire()
		return
	}
	for _, s := range c.list() {
		endStalledSession(s, now)
	}
}

// endStalledSession applies the policy for a consumer that stopped reading.
func endStalledSession(s *session, now time.Time) {
	if s.stalled(now) {
		err := &CloseError{Code: CodeOverloaded, Detail: fmt.Sprintf("nothing read for %v", consumerStall)}
		s.closeFor(err, endStalled)
	}
}

// lost ends every session that still belongs to the connection.
func (c *serverConn) lost(f *linkFault) {
	c.run.srv.counts.losses[f.why].Add(1)
	c.mu.Lock()
	c.refuseAt = c.link.born
	c.mu.Unlock()
	for _, s := range c.list() {
		s.end(&CloseError{Code: CodeLost, Detail: f.detail, Silent: f.why == lossSilent}, endLost, false, nil)
	}
	c.run.srv.event(Event{Kind: EventPeerLost, Group: c.link.peer.Node, Endpoint: c.link.peer.Addr, Reason: f.detail})
	c.run.forget(c)
}
