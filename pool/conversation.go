package pool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"hecate/pool/wire"
)

// session is one end of a conversation.
//
//	open ----> ended
//
// It ends once, for the first reason that comes: our Close, the peer's CLOSE or
// CANCEL, the loss of the connection, a broken rule. What the peer sent before
// its CLOSE can still be received afterwards.
type session struct {
	id     uint64
	owner  sessionOwner
	at     atomic.Pointer[link] // changes only before the OPEN is queued; see registry.rebind
	window int                  // bytes that the peer advertised for this session; set before it is published
	lane   lane                 // guarded by the link's outbox

	pacer pacer
	ready chan struct{} // capacity 1: a message is there
	done  chan struct{}
	over  atomic.Bool // copy of mu.err != nil for the reader
	// stop cancels the context of the handler that serves this session.
	stop context.CancelFunc

	mu struct {
		sync.Mutex
		err       *CloseError // nil while open
		in        inbox
		out       credit
		fullSince time.Time // inbox full and nobody reads since; zero otherwise
	}

	bound binding // guarded by the registry's lock
}

// sessionOwner keeps the index that the session is in.
type sessionOwner interface {
	// ended takes the session out of the index. Idempotent; called without
	// any lock held.
	ended(s *session, why endReason)
}

func newSession(id uint64, owner sessionOwner, l *link) *session {
	s := &session{id: id, owner: owner, ready: make(chan struct{}, 1), done: make(chan struct{})}
	s.lane.id = id
	s.settle(l)
	return s
}

// settle ties the session to a connection and takes over its windows.
func (s *session) settle(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at.Store(l)
	s.mu.in = inbox{st: l.st, maxBytes: int(l.mine.WindowBytes), maxMessages: int(l.mine.WindowMessages)}
	s.advertised(l.peerHello.WindowBytes, l.peerHello.WindowMessages)
}

// advertised is the peer's window for this unpublished session.
func (s *session) advertised(bytes, messages uint32) {
	s.mu.out = newCredit(bytes, messages)
	s.window = s.mu.out.windowBytes
}

// on is the connection that carries the session.
func (s *session) on() *link { return s.at.Load() }

func (s *session) ID() uint64            { return s.id }
func (s *session) Peer() Peer            { return s.on().peer }
func (s *session) MaxMessage() int       { return maxMessage(s.window) }
func (s *session) Done() <-chan struct{} { return s.done }

func (s *session) Draining() <-chan struct{} { return s.on().draining }

func (s *session) Err() error {
	if err := s.closeError(); err != nil {
		return err
	}
	return nil
}

func (s *session) closeError() *CloseError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.err
}

// Send implements Session.
func (s *session) Send(ctx context.Context, payload []byte) error {
	if len(payload) > s.MaxMessage() {
		return &TooLargeError{Bytes: len(payload), Limit: s.MaxMessage()}
	}
	s.pace(ctx)
	if err := s.spend(ctx, len(payload)); err != nil {
		return err
	}
	wait := s.on().settings().SendWait.D()
	p := s.on().out.pack(&s.lane, payload)
	got, err := s.on().out.send(ctx, &p, wait)
	if got == taken {
		return nil
	}
	s.refund(len(payload))
	return s.notSent(ctx, got, err, len(payload), wait)
}

// notSent words the error of a message that was not queued.
func (s *session) notSent(ctx context.Context, got offered, err error, n int, wait time.Duration) error {
	switch {
	case err != nil:
		return fmt.Errorf("send on session %d: %w", s.id, context.Cause(ctx))
	case got == noRoom:
		return &QueueFullError{Peer: s.on().peer.Node, Bytes: n, Waited: wait}
	}
	// The connection is going; the reason follows at once.
	if err := s.closeError(); err != nil {
		return err
	}
	return &CloseError{Code: CodeDraining, Detail: "the connection takes nothing more"}
}

// spend takes credit for n bytes, waiting for the peer to return some.
func (s *session) spend(ctx context.Context, n int) error {
	s.mu.Lock()
	if s.mu.err != nil {
		defer s.mu.Unlock()
		return s.mu.err
	}
	if s.mu.out.spend(n) {
		s.mu.Unlock()
		return nil
	}
	w := s.mu.out.queue(n)
	s.mu.Unlock()
	select {
	case <-w.granted:
		s.mu.Lock()
		s.mu.out.spare = w
		s.mu.Unlock()
		return nil
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.mu.out.leave(w) {
		s.mu.out.give(n, 1)
	}
	return fmt.Errorf("send on session %d: waiting for the peer to read: %w", s.id, context.Cause(ctx))
}

func (s *session) refund(n int) {
	s.mu.Lock()
	s.mu.out.give(n, 1)
	s.mu.Unlock()
}

// Recv implements Session.
func (s *session) Recv(ctx context.Context) ([]byte, error) {
	for {
		b, more, err := s.next()
		if b != nil {
			if more {
				kick(s.ready) // for another Recv that waits beside this one
			}
			return s.on().st.detach(b), nil
		}
		if err != nil {
			return nil, err
		}
		select {
		case <-s.ready:
		case <-s.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("receive on session %d: %w", s.id, context.Cause(ctx))
		}
	}
}

// next takes a message without waiting, and returns credit for it.
func (s *session) next() (b *buffer, more bool, err error) {
	s.mu.Lock()
	b, ok := s.mu.in.pop()
	if !ok {
		if s.mu.err != nil {
			err = s.mu.err
		}
		s.mu.Unlock()
		return nil, false, err
	}
	s.mu.fullSince = time.Time{}
	bytes, messages := 0, 0
	if s.mu.err == nil {
		s.on().hold(-len(b.b))
		bytes, messages = s.mu.in.credit()
	}
	more = s.mu.in.count > 0
	s.mu.Unlock()
	if messages > 0 {
		s.on().out.ack(&s.lane, bytes, messages)
	}
	return b, more, nil
}

// Recycle implements Session.
func (s *session) Recycle(payload []byte) { s.on().st.attach(payload) }

// Close implements Session.
func (s *session) Close(code CloseCode) {
	why := endLocal
	switch code {
	case CodeCancelled:
		why = endCancelled
	case CodeInternal:
		why = endInternal
	}
	s.closeFor(&CloseError{Code: code}, why)
}

// closeFor ends the session from our side and tells the peer; false: it was over
// already.
func (s *session) closeFor(err *CloseError, why endReason) bool {
	return s.end(err, why, true, func(out *outbox) {
		out.end(&s.lane, wire.Reason{Code: err.Code, Text: err.Detail}, err.Code == CodeCancelled)
	})
}

// end makes the session ended; false: it was already. With discard, what was
// received and not read is dropped. tell, unless nil, ends the lane: before the
// session leaves the index, so that nothing that still arrives for it is taken
// for unknown in between.
func (s *session) end(err *CloseError, why endReason, discard bool, tell func(*outbox)) bool {
	s.mu.Lock()
	if s.mu.err != nil {
		s.mu.Unlock()
		return false
	}
	s.mu.err = err
	s.over.Store(true)
	s.on().hold(-s.mu.in.bytes)
	if discard {
		s.mu.in.clear()
	} else {
		s.mu.in.abandon()
	}
	s.mu.out.waiting = nil // they watch done
	s.mu.Unlock()
	if tell != nil {
		tell(s.on().out)
	}
	// Whoever sees Done finds the counters and the index up to date.
	s.on().counts.ends[why].Add(1)
	s.owner.ended(s, why)
	close(s.done)
	if s.stop != nil {
		s.stop()
	}
	return true
}

// deliver is called by the reader with one DATA frame; see inbox.accept for own.
func (s *session) deliver(flags wire.Flags, payload []byte, own **buffer) {
	s.mu.Lock()
	if s.mu.err != nil {
		s.mu.Unlock()
		s.on().counts.drop(dropUnknown)
		return
	}
	before := s.mu.in.bytes
	complete, err := s.mu.in.accept(flags, payload, own)
	if !s.on().hold(s.mu.in.bytes-before) && err == nil {
		err = errHeld
	}
	if err == nil && complete && s.mu.fullSince.IsZero() && s.mu.in.full() {
		s.mu.fullSince = time.Now()
	}
	s.mu.Unlock()
	switch {
	case errors.Is(err, errWindow), errors.Is(err, errHeld):
		s.on().counts.drop(dropOverload)
		s.closeFor(&CloseError{Code: CodeOverloaded, Detail: err.Error()}, endOverloaded)
	case err != nil:
		s.closeFor(&CloseError{Code: CodeProtocol, Detail: err.Error()}, endProtocol)
	case complete:
		kick(s.ready)
	}
}

// acked is called by the reader with returned credit.
func (s *session) acked(a wire.Ack) {
	s.mu.Lock()
	honest := s.mu.out.give(int(a.Bytes), int(a.Messages))
	s.mu.Unlock()
	if !honest {
		s.on().counts.drop(dropAckExcess)
	}
}

// closedByPeer is called by the reader with CLOSE and CANCEL.
func (s *session) closedByPeer(r wire.Reason, cancelled bool) {
	err := &CloseError{Code: r.Code, Remote: true, Detail: r.Text}
	s.end(err, remoteEnd(r.Code, cancelled), cancelled, func(out *outbox) { out.hush(&s.lane) })
}

func remoteEnd(code CloseCode, cancelled bool) endReason {
	if cancelled {
		return endRemoteGone
	}
	switch code {
	case CodeOverloaded:
		return endOverloaded
	case CodeRefused:
		return endRefused
	case CodeUnknown:
		return endUnknown
	case CodeDraining:
		return endShutdown
	case CodeProtocol:
		return endProtocol
	case CodeInternal:
		return endInternal
	}
	return endRemote
}

// stalled says that the inbox has been full and unread for too long.
func (s *session) stalled(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.err == nil && !s.mu.fullSince.IsZero() && now.Sub(s.mu.fullSince) >= consumerStall
}
