package pool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// serving is one call of Serve or DialReverse: the connections it made, and
// the two moments of its end. Sessions are told to stop when hard ends.
type serving struct {
	srv  *Server
	hard context.Context
	want atomic.Int64   // connections that the gateway asks for (reverse only)
	wg   sync.WaitGroup // handshakes, connections and their handlers

	mu     sync.Mutex
	conns  map[*serverConn]struct{}
	ending bool // a connection that still arrives is shut at once
	idle   bell // rings when a connection or session ends
}

// Serve is the method behind the package function of that name. It may run
// several times, also beside DialReverse.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	hard, halt := context.WithCancel(context.WithoutCancel(ctx))
	defer halt()
	run := &serving{srv: s, hard: hard, conns: make(map[*serverConn]struct{})}
	unhook := context.AfterFunc(ctx, func() { _ = l.Close() })
	err := run.accept(ctx, l)
	unhook()
	_ = l.Close()
	if ctx.Err() != nil {
		err = nil
	}
	run.drain(halt)
	return err
}

func (r *serving) accept(ctx context.Context, l net.Listener) error {
	pause := acceptPause
	for {
		raw, err := l.Accept()
		if err == nil {
			pause = acceptPause
			r.greet(ctx, raw)
			continue
		}
		if ctx.Err() != nil || errors.Is(err, net.ErrClosed) || !isTemporary(err) {
			return fmt.Errorf("accept on %v: %w", l.Addr(), err)
		}
		// Out of descriptors, most likely: wait for some to come back.
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, time.Second)
	}
}

// acceptPause is the first pause after a failed Accept.
const acceptPause = 5 * time.Millisecond

func isTemporary(err error) bool {
	var t interface{ Temporary() bool }
	return errors.As(err, &t) && t.Temporary()
}

// greet shakes hands in the background, or refuses when there are too many.
func (r *serving) greet(ctx context.Context, raw net.Conn) {
	if !r.srv.admit() {
		_ = raw.Close()
		r.srv.event(Event{Kind: EventRefused, Endpoint: remoteAddr(raw), Reason: "too many connections"})
		return
	}
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		ctx, cancel := context.WithTimeout(ctx, r.srv.cfg.HandshakeTimeout)
		defer cancel()
		parts, err := r.srv.hs.accept(ctx, raw, false)
		if err != nil {
			r.srv.shaken()
			r.srv.event(Event{Kind: EventRefused, Endpoint: remoteAddr(raw), Reason: err.Error()})
			return
		}
		r.adopt(parts)
	}()
}

// admit counts a connection in handshake if there may be one more.
func (s *Server) admit() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.shaking+len(s.mu.conns) >= s.cfg.MaxConns {
		return false
	}
	s.mu.shaking++
	return true
}

func (s *Server) away() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.goingAway
}

func (s *Server) shaken() {
	s.mu.Lock()
	s.mu.shaking--
	s.mu.Unlock()
}

// adopt makes a finished handshake a connection.
func (r *serving) adopt(parts linkParts) *serverConn {
	c := newServerConn(r, parts)
	r.mu.Lock()
	r.conns[c] = struct{}{}
	ending := r.ending
	r.mu.Unlock()
	r.srv.mu.Lock()
	r.srv.mu.shaking--
	r.srv.mu.conns[c] = struct{}{}
	away := r.srv.mu.goingAway
	r.srv.mu.Unlock()
	r.srv.event(Event{Kind: EventPeerUp, Group: parts.peer.Node, Endpoint: parts.peer.Addr})
	r.wg.Add(1)
	c.link.start(c)
	if away {
		c.announceDrain("paused")
	}
	if ending {
		c.shut()
	}
	return c
}

// forget is the last act of a connection.
func (r *serving) forget(c *serverConn) {
	r.srv.mu.Lock()
	delete(r.srv.mu.conns, c)
	r.srv.mu.Unlock()
	r.mu.Lock()
	delete(r.conns, c)
	r.mu.Unlock()
	r.idle.ring()
	r.wg.Done()
}

func (r *serving) list() []*serverConn {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*serverConn, 0, len(r.conns))
	for c := range r.conns {
		list = append(list, c)
	}
	return list
}

// drain ends the run: no new sessions, DrainTime for the running ones, then the
// rest is closed. It returns when nothing is left.
func (r *serving) drain(halt func()) {
	for _, c := range r.list() {
		c.announceDrain("shutting down")
	}
	r.awaitSessions()
	r.mu.Lock()
	r.ending = true
	r.mu.Unlock()
	for _, c := range r.list() {
		c.shut()
	}
	halt()
	r.wg.Wait()
}

// awaitSessions waits for the sessions to end, at most DrainTime. A gateway closes
// a connection that has none as soon as it hears of the drain; until it did, or
// for openGrace, a session that it had opened before may still arrive.
func (r *serving) awaitSessions() {
	if r.srv.cfg.DrainTime == 0 {
		return
	}
	deadline := time.NewTimer(r.srv.cfg.DrainTime)
	defer deadline.Stop()
	grace := time.NewTimer(openGrace)
	defer grace.Stop()
	late := false
	for {
		changed := r.idle.heard()
		conns, open := r.list(), 0
		for _, c := range conns {
			open += c.count()
		}
		if len(conns) == 0 || late && open == 0 {
			return
		}
		select {
		case <-changed:
		case <-grace.C:
			late = true
		case <-deadline.C:
			return
		}
	}
}

var errShutdown = &CloseError{Code: CodeDraining, Detail: "shutting down"}

func shutdownReason(text string) wire.Reason { return wire.Reason{Code: CodeDraining, Text: text} }
