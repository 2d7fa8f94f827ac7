package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// magic opens every handshake message, so that a peer which speaks something else
// is recognised by its first four bytes.
var magic = [4]byte{'H', 'C', 'T', 'E'}

// Role says what the sender of a hello is.
type Role uint8

// Roles.
const (
	RoleGateway Role = 1 // opens sessions
	RoleNode    Role = 2 // serves sessions
)

func (r Role) String() string {
	switch r {
	case RoleGateway:
		return "gateway"
	case RoleNode:
		return "node"
	default:
		return fmt.Sprintf("role(%d)", uint8(r))
	}
}

// Features is a set of optional parts of the protocol, one bit each. No bit is
// assigned in version 1.
type Features uint64

// Hello is how one side of a connection introduces itself.
type Hello struct {
	// MinVersion and MaxVersion are the range of protocol versions that the sender
	// speaks; both 0 mean this package's own range.
	MinVersion, MaxVersion uint16
	// Node is the sender's identity, at most MaxIdentity bytes. It is a claim: the
	// receiver compares it with the certificate.
	Node string
	// Swarm is the swarm's id, at most MaxIdentity bytes. Both sides must name the same one.
	Swarm string
	// Role is what the sender is.
	Role Role
	// Reverse is set by a dialing node that offers its connection to the gateway as
	// if the gateway had dialed it.
	Reverse bool
	// Features are those that the sender can use, Required those among them
	// without which it will not talk.
	Features, Required Features
	// WindowBytes and WindowMessages are what the sender is ready to receive on each session that the
	// peer has not yet been told otherwise about.
	WindowBytes, WindowMessages uint32
}

// Agreed is the outcome of a successful handshake.
type Agreed struct {
	Peer     Hello
	Version  uint16   // the highest version that both speak
	Features Features // those that both can use
}

// kind is the kind of a handshake message.
type kind uint8

const (
	kindHello   kind = 1
	kindRefusal kind = 2
	kindConfirm kind = 3
)

// A handshake message is magic, kind, reserved byte, body length, CRC-32C over
// what precedes it and the body, body. This layout, and that of a
// refusal's body, are the same in all versions: otherwise two versions could not
// tell each other that they do not fit.
const (
	preambleSize   = 12
	preambleCovers = 8
	helloFixed     = 34
	reverseBit     = 1 << 0
)

// appendMessage encodes one handshake message.
func appendMessage(b []byte, k kind, body []byte) []byte {
	start := len(b)
	b = append(b, magic[:]...)
	b = append(b, byte(k), 0)
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	sum := crc32.Update(crc32.Checksum(b[start:], castagnoli), castagnoli, body)
	b = binary.BigEndian.AppendUint32(b, sum)
	return append(b, body...)
}

// encode gives the body of a hello. Fields are fixed first, then the two strings;
// later versions append behind them, and older ones ignore what is behind.
func (h Hello) encode() []byte {
	b := make([]byte, 0, helloFixed+2+len(h.Node)+len(h.Swarm))
	b = binary.BigEndian.AppendUint16(b, h.MinVersion)
	b = binary.BigEndian.AppendUint16(b, h.MaxVersion)
	var bits byte
	if h.Reverse {
		bits |= reverseBit
	}
	b = append(b, byte(h.Role), bits)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Features))
	b = binary.BigEndian.AppendUint64(b, uint64(h.Required))
	b = binary.BigEndian.AppendUint32(b, h.WindowBytes)
	b = binary.BigEndian.AppendUint32(b, h.WindowMessages)
	b = append(b, byte(len(h.Node)), byte(len(h.Swarm)))
	b = append(b, 0, 0) // reserved
	b = append(b, h.Node...)
	return append(b, h.Swarm...)
}

// decodeHello reads the body of a hello from a peer that nobody knows yet.
func decodeHello(b []byte) (Hello, error) {
	if len(b) < helloFixed {
		return Hello{}, fmt.Errorf("hello of %d bytes, at least %d: %w", len(b), helloFixed, ErrPayload)
	}
	h := Hello{
		MinVersion:     binary.BigEndian.Uint16(b[0:]),
		MaxVersion:     binary.BigEndian.Uint16(b[2:]),
		Role:           Role(b[4]),
		Reverse:        b[5]&reverseBit != 0,
		Features:       Features(binary.BigEndian.Uint64(b[6:])),
		Required:       Features(binary.BigEndian.Uint64(b[14:])),
		WindowBytes:    binary.BigEndian.Uint32(b[22:]),
		WindowMessages: binary.BigEndian.Uint32(b[26:]),
	}
	node, swarm := int(b[30]), int(b[31])
	rest := b[helloFixed:]
	if node > MaxIdentity || swarm > MaxIdentity || node+swarm > len(rest) {
		return Hello{}, fmt.Errorf("hello names of %d and %d bytes in %d: %w", node, swarm, len(rest), ErrPayload)
	}
	h.Node = printable(rest[:node], MaxIdentity)
	h.Swarm = printable(rest[node:node+swarm], MaxIdentity)
	return h, nil
}

// filled applies the defaults of a hello that this side is about to send.
func (h Hello) filled() (Hello, error) {
	if h.MinVersion == 0 && h.MaxVersion == 0 {
		h.MinVersion, h.MaxVersion = MinVersion, MaxVersion
	}
	h.Features |= h.Required
	if len(h.Node) > MaxIdentity || len(h.Swarm) > MaxIdentity {
		return h, fmt.Errorf("wire: node identity of %d and swarm id of %d bytes, at most %d each: %w",
			len(h.Node), len(h.Swarm), MaxIdentity, ErrLength)
	}
	return h, nil
}

// agree compares two hellos. It is symmetric, so that both sides come to the same
// verdict; the refusal, if any, is worded for the peer.
func agree(mine, peer Hello) (Agreed, *Refusal) {
	version := min(mine.MaxVersion, peer.MaxVersion)
	switch {
	case version < mine.MinVersion || version < peer.MinVersion:
		return Agreed{}, &Refusal{Reason: RefuseVersion, Text: fmt.Sprintf("versions %d to %d here, %d to %d there",
			mine.MinVersion, mine.MaxVersion, peer.MinVersion, peer.MaxVersion)}
	case mine.Swarm != peer.Swarm:
		return Agreed{}, &Refusal{Reason: RefuseSwarm, Text: fmt.Sprintf("swarm %q here, %q there", mine.Swarm, peer.Swarm)}
	}
	if missing := mine.Required&^peer.Features | peer.Required&^mine.Features; missing != 0 {
		return Agreed{}, &Refusal{Reason: RefuseFeatures, Text: fmt.Sprintf("required features %#x are missing", uint64(missing))}
	}
	return Agreed{Peer: peer, Version: version, Features: mine.Features & peer.Features}, nil
}
