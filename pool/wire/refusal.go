package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrRefused is what every *Refusal is.
var ErrRefused = errors.New("wire: handshake refused")

// RefusalReason says why a handshake failed.
type RefusalReason uint16

// Reasons. They keep their numbers in all versions of the protocol.
const (
	RefuseVersion  RefusalReason = 1 // no protocol version in common
	RefuseSwarm    RefusalReason = 2 // another swarm
	RefuseFeatures RefusalReason = 3 // a required feature is missing
	RefuseIdentity RefusalReason = 4 // not who the certificate, or the caller's expectation, says
	RefuseRole     RefusalReason = 5 // this side has no use for a peer of that role
	RefuseMagic    RefusalReason = 6 // the peer speaks another protocol
	RefuseMessage  RefusalReason = 7 // malformed or oversized handshake message
	RefusePolicy   RefusalReason = 8 // the caller's check said no
	RefuseBusy     RefusalReason = 9 // too many connections, or shutting down
)

var refusalNames = [...]string{
	RefuseVersion: "version", RefuseSwarm: "swarm", RefuseFeatures: "features", RefuseIdentity: "identity",
	RefuseRole: "role", RefuseMagic: "magic", RefuseMessage: "message", RefusePolicy: "policy", RefuseBusy: "busy",
}

func (r RefusalReason) String() string {
	if r > 0 && int(r) < len(refusalNames) {
		return refusalNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint16(r))
}

// Refusal is the error of a failed handshake. The side that refuses and the side
// that is refused get the same reason and text.
type Refusal struct {
	Reason RefusalReason
	Text   string // for logs, at most MaxReason bytes
	// Remote is set when the peer refused us.
	Remote bool
	// Peer is the peer's hello as far as it was read.
	Peer Hello
}

func (r *Refusal) Error() string {
	who := "we refused the peer"
	if r.Remote {
		who = "the peer refused us"
	}
	s := fmt.Sprintf("wire: %s (%v)", who, r.Reason)
	if r.Text != "" {
		s += ": " + r.Text
	}
	return s
}

// Is makes errors.Is(err, ErrRefused) true, and errors.Is with another *Refusal
// true when the reasons are equal.
func (r *Refusal) Is(target error) bool {
	if target == ErrRefused {
		return true
	}
	t, ok := target.(*Refusal)
	return ok && t.Reason == r.Reason
}

// refusalFixed is the size of a refusal's body in front of its text.
const refusalFixed = 2

func (r *Refusal) encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(r.Reason))
	return append(b, cut(r.Text, MaxReason)...)
}

func decodeRefusal(b []byte) (*Refusal, error) {
	if len(b) < refusalFixed {
		return nil, fmt.Errorf("refusal of %d bytes: %w", len(b), ErrPayload)
	}
	return &Refusal{
		Reason: RefusalReason(binary.BigEndian.Uint16(b)),
		Text:   printable(b[refusalFixed:], MaxReason),
		Remote: true,
	}, nil
}
