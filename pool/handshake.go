package pool

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"hecate/pool/wire"
)

// handshaker turns a raw connection into the parts of a link: TLS, identity,
// hello.
type handshaker struct {
	node, swarm string
	role        wire.Role
	reverse     bool        // this side offers a reverse connection
	tls         *tls.Config // nil: plaintext
	identify    func(tls.ConnectionState) (string, error)
	settings    func() *Settings
}

// dial runs the dialling side on raw, which is closed on failure. want is the
// node that must be at the other end, "" for any.
func (h *handshaker) dial(ctx context.Context, raw net.Conn, want string) (linkParts, error) {
	peerRole := wire.RoleNode
	if h.role == wire.RoleNode {
		peerRole = wire.RoleGateway
	}
	return h.run(ctx, raw, tls.Client, wire.Dial, expectation{node: want, role: peerRole})
}

// accept runs the accepting side. peerReverse says that a reverse node is
// expected.
func (h *handshaker) accept(ctx context.Context, raw net.Conn, peerReverse bool) (linkParts, error) {
	peerRole := wire.RoleGateway
	if h.role == wire.RoleGateway {
		peerRole = wire.RoleNode
	}
	return h.run(ctx, raw, tls.Server, wire.Accept, expectation{role: peerRole, reverse: peerReverse})
}

type (
	tlsSide   func(net.Conn, *tls.Config) *tls.Conn
	helloSide func(context.Context, wire.Conn, wire.Hello, wire.HandshakeOptions) (wire.Agreed, error)
)

func (h *handshaker) run(ctx context.Context, raw net.Conn, secure tlsSide, greet helloSide, want expectation) (_ linkParts, err error) {
	defer func() {
		if err != nil {
			_ = raw.Close()
		}
	}()
	tuneSocket(raw)
	batched := &batchConn{Conn: raw}
	parts := linkParts{conn: batched, raw: raw, flush: batched.flush, endWrite: batched.closeWrite, mine: h.hello()}
	if h.tls != nil {
		conn := secure(batched, h.tls)
		if err := conn.HandshakeContext(ctx); err != nil {
			return linkParts{}, fmt.Errorf("TLS with %s: %w", remoteAddr(raw), err)
		}
		if want.proved, err = h.identify(conn.ConnectionState()); err != nil {
			return linkParts{}, fmt.Errorf("identify %s: %w", remoteAddr(raw), err)
		}
		parts.conn = conn
	}
	start := time.Now()
	agreed, err := greet(ctx, parts.conn, parts.mine, wire.HandshakeOptions{Timeout: remaining(ctx), Check: want.check})
	if err != nil {
		return linkParts{}, fmt.Errorf("hello with %s: %w", remoteAddr(raw), err)
	}
	batched.batch()
	parts.roundTrip = time.Since(start)
	parts.theirs = agreed.Peer
	parts.peer = Peer{Node: agreed.Peer.Node, Swarm: agreed.Peer.Swarm, Addr: remoteAddr(raw)}
	return parts, nil
}

func (h *handshaker) hello() wire.Hello {
	s := h.settings()
	return wire.Hello{
		Node: h.node, Swarm: h.swarm, Role: h.role, Reverse: h.reverse,
		WindowBytes: uint32(s.SessionWindow), WindowMessages: uint32(s.SessionQueue),
	}
}

// remaining is how much time the context leaves, at least a moment.
func remaining(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return wire.DefaultHandshakeTimeout
	}
	return max(time.Until(deadline), time.Millisecond)
}

func remoteAddr(c net.Conn) string {
	if a := c.RemoteAddr(); a != nil {
		return a.String()
	}
	return "unknown"
}

// refusalOf finds the typed refusal in an error of dial or accept.
func refusalOf(err error) (*wire.Refusal, bool) {
	var r *wire.Refusal
	ok := errors.As(err, &r)
	return r, ok
}
