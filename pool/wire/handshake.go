package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"
)

// Conn is what a handshake needs of a connection; every net.Conn is one.
type Conn interface {
	io.ReadWriter
	SetDeadline(time.Time) error
}

// HandshakeOptions tune a handshake; the zero value is useful.
type HandshakeOptions struct {
	// Timeout bounds the whole handshake beside the context's own deadline; 0 means
	// DefaultHandshakeTimeout.
	Timeout time.Duration
	// Check sees the peer's hello after version, swarm and features were found to
	// fit, for instance to compare its identity with the certificate. A *Refusal is
	// sent to the peer as it is, any other error as RefusePolicy with its text. A
	// listener that is full says RefuseBusy here rather than closing without a word:
	// closing with unread bytes resets the connection and the reason may be lost.
	Check func(peer Hello) error
}

// Dial runs the dialing side of the handshake on an established connection. It
// never reads beyond the handshake. On success the deadline is
// cleared; on any error the caller closes the connection. A *Refusal in the chain means that one
// side did not want the other.
func Dial(ctx context.Context, c Conn, mine Hello, opt HandshakeOptions) (Agreed, error) {
	return run(ctx, c, mine, opt, func(h *handshake) (Agreed, error) {
		if err := h.send(kindHello, h.mine.encode()); err != nil {
			return Agreed{}, err
		}
		peer, err := h.receiveHello()
		if err != nil {
			return Agreed{}, h.refuse(peer, err)
		}
		agreed, err := h.judge(peer)
		if err != nil {
			return Agreed{}, h.refuse(peer, err)
		}
		return agreed, h.send(kindConfirm, nil)
	})
}

// Accept runs the accepting side of the handshake; see [Dial].
func Accept(ctx context.Context, c Conn, mine Hello, opt HandshakeOptions) (Agreed, error) {
	return run(ctx, c, mine, opt, func(h *handshake) (Agreed, error) {
		peer, err := h.receiveHello()
		if err != nil {
			return Agreed{}, h.refuse(peer, err)
		}
		agreed, err := h.judge(peer)
		if err != nil {
			return Agreed{}, h.refuse(peer, err)
		}
		if err := h.send(kindHello, h.mine.encode()); err != nil {
			return Agreed{}, err
		}
		_, err = h.receive(kindConfirm)
		return agreed, h.refuse(peer, err)
	})
}

// handshake is one side of one handshake.
type handshake struct {
	conn Conn
	mine Hello
	opt  HandshakeOptions
}

// run puts a handshake under deadline and context.
func run(ctx context.Context, c Conn, mine Hello, opt HandshakeOptions, side func(*handshake) (Agreed, error)) (Agreed, error) {
	mine, err := mine.filled()
	if err != nil {
		return Agreed{}, err
	}
	if opt.Timeout <= 0 {
		opt.Timeout = DefaultHandshakeTimeout
	}
	deadline := time.Now().Add(opt.Timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := c.SetDeadline(deadline); err != nil {
		return Agreed{}, fmt.Errorf("wire: handshake: %w", err)
	}
	// A cancelled context ends a read that is under way by moving its deadline into the past.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	agreed, err := side(&handshake{conn: c, mine: mine, opt: opt})
	cancelled := !stop()
	switch {
	case err != nil && ctx.Err() != nil:
		return Agreed{}, fmt.Errorf("wire: handshake: %w (%w)", err, context.Cause(ctx))
	case err != nil:
		return Agreed{}, fmt.Errorf("wire: handshake: %w", err)
	case cancelled:
		return Agreed{}, fmt.Errorf("wire: handshake: %w", context.Cause(ctx))
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return Agreed{}, fmt.Errorf("wire: handshake: %w", err)
	}
	return agreed, nil
}

func (h *handshake) send(k kind, body []byte) error {
	if _, err := h.conn.Write(appendMessage(nil, k, body)); err != nil {
		return fmt.Errorf("sending: %w", err)
	}
	return nil
}

// receive reads one message of the wanted kind. A refusal by the peer, and a
// message that deserves one, come back as *Refusal.
func (h *handshake) receive(want kind) ([]byte, error) {
	var pre [preambleSize]byte
	// The magic is looked at before more is awaited: a stranger may send less than a
	// preamble and then wait for us.
	if err := h.readFull(pre[:len(magic)]); err != nil {
		return nil, err
	}
	if [4]byte(pre[:]) != magic {
		return nil, &Refusal{Reason: RefuseMagic, Text: fmt.Sprintf("first bytes %x are not ours", pre[:len(magic)])}
	}
	if err := h.readFull(pre[len(magic):]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint16(pre[6:])
	if n > MaxHello {
		return nil, &Refusal{Reason: RefuseMessage, Text: fmt.Sprintf("message of %d bytes, at most %d", n, MaxHello)}
	}
	body := make([]byte, n)
	if err := h.readFull(body); err != nil {
		return nil, err
	}
	sum := crc32.Update(crc32.Checksum(pre[:preambleCovers], castagnoli), castagnoli, body)
	if sum != binary.BigEndian.Uint32(pre[preambleCovers:]) {
		return nil, &Refusal{Reason: RefuseMessage, Text: "checksum mismatch"}
	}
	return body, h.expect(want, kind(pre[4]), body)
}

// expect compares the kind that came with the one that is due.
func (h *handshake) expect(want, got kind, body []byte) error {
	switch got {
	case want:
		return nil
	case kindRefusal:
		r, err := decodeRefusal(body)
		if err != nil {
			return err
		}
		return r
	default:
		return &Refusal{Reason: RefuseMessage, Text: fmt.Sprintf("message kind %d where %d was due", got, want)}
	}
}

func (h *handshake) readFull(b []byte) error {
	if _, err := io.ReadFull(h.conn, b); err != nil {
		return fmt.Errorf("waiting for the peer: %w", err)
	}
	return nil
}

func (h *handshake) receiveHello() (Hello, error) {
	body, err := h.receive(kindHello)
	if err != nil {
		return Hello{}, err
	}
	peer, err := decodeHello(body)
	if err != nil {
		return Hello{}, &Refusal{Reason: RefuseMessage, Text: err.Error()}
	}
	return peer, nil
}

// judge decides whether we want this peer.
func (h *handshake) judge(peer Hello) (Agreed, error) {
	agreed, no := agree(h.mine, peer)
	if no != nil {
		return Agreed{}, no
	}
	if h.opt.Check == nil {
		return agreed, nil
	}
	err := h.opt.Check(peer)
	if err == nil {
		return agreed, nil
	}
	if r := (*Refusal)(nil); errors.As(err, &r) {
		own := *r
		return Agreed{}, &own
	}
	return Agreed{}, &Refusal{Reason: RefusePolicy, Text: err.Error()}
}

// refuse tells the peer when err is a refusal of ours, and completes it. Whether
// the peer still hears it changes nothing.
func (h *handshake) refuse(peer Hello, err error) error {
	r := (*Refusal)(nil)
	if !errors.As(err, &r) {
		return err
	}
	if r.Peer == (Hello{}) {
		r.Peer = peer
	}
	if !r.Remote {
		r.Text = printable([]byte(r.Text), MaxReason)
		_ = h.send(kindRefusal, r.encode())
	}
	return r
}
