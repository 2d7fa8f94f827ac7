package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Version range of the protocol that this package speaks.
const (
	MinVersion uint16 = 1
	MaxVersion uint16 = 1
)

// castagnoli is the CRC-32C table; the standard library uses the processor's own
// instruction for it where there is one.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Type says what a frame is.
type Type uint8

// Frame types. OPEN, DATA, ACK, CLOSE and CANCEL belong to one session and carry
// its conn_id, which is never 0. PING, PONG, GOAWAY and WANT belong to the connection
// and carry conn_id 0.
const (
	TypeOpen   Type = 1 // starts a session: windows and metadata, see [Open]
	TypeData   Type = 2 // a message, or a chunk of one
	TypeAck    Type = 3 // returns credit to the sender, see [Ack]
	TypeClose  Type = 4 // ends a session, see [Reason]
	TypeCancel Type = 5 // asks the peer to stop working on a session, see [Reason]
	TypePing   Type = 6 // asks for a PONG with the same token
	TypePong   Type = 7 // answers a PING
	TypeGoAway Type = 8 // the sender drains: no new OPEN, see [Reason]
	TypeWant   Type = 9 // a gateway tells a reverse node how many connections it wants, as the token
)

var typeNames = [...]string{
	TypeOpen: "OPEN", TypeData: "DATA", TypeAck: "ACK", TypeClose: "CLOSE",
	TypeCancel: "CANCEL", TypePing: "PING", TypePong: "PONG", TypeGoAway: "GOAWAY", TypeWant: "WANT",
}

// Known reports whether this version of the protocol defines t.
func (t Type) Known() bool { return t >= TypeOpen && t <= TypeWant }

func (t Type) String() string {
	if t.Known() {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// lengths gives the smallest and largest legal payload of type t in bytes.
func (t Type) lengths() (lo, hi uint32) {
	switch t {
	case TypeOpen:
		return openSize, openSize + MaxOpenMeta
	case TypeAck:
		return ackSize, ackSize
	case TypeClose, TypeCancel, TypeGoAway:
		return reasonSize, reasonSize + MaxReason
	case TypePing, TypePong, TypeWant:
		return pingSize, pingSize
	default:
		return 0, MaxPayload
	}
}

// legalID reports whether a frame of type t may carry conn_id id.
func (t Type) legalID(id uint64) bool {
	switch t {
	case TypePing, TypePong, TypeGoAway, TypeWant:
		return id == 0
	case TypeOpen, TypeData, TypeAck, TypeClose, TypeCancel:
		return id != 0
	default:
		return true
	}
}

// Flags modify a frame.
type Flags uint8

// FlagMore on a DATA frame says that the message goes on in the next DATA frame of
// the same session.
const FlagMore Flags = 1 << 0

// Header is the decoded fixed part of a frame.
type Header struct {
	Length   uint32 // payload bytes, 0 <= Length <= MaxPayload
	Type     Type
	Flags    Flags
	ConnID   uint64
	Sequence uint32 // per direction, modulo 2^32
	Checksum uint32 // CRC-32C of the 20 bytes before it and the payload
}

// More reports whether the message goes on in a later frame.
func (h Header) More() bool { return h.Flags&FlagMore != 0 }

func (h Header) String() string {
	more := ""
	if h.More() {
		more = " more"
	}
	return fmt.Sprintf("%v conn=%d seq=%d len=%d%s", h.Type, h.ConnID, h.Sequence, h.Length, more)
}

// Frame is a header with its payload. Who owns the payload's memory is said by
// whoever hands the frame out.
type Frame struct {
	Header
	Payload []byte
}

// checksumOffset is where the checksum stands in the header; it covers all bytes
// before it.
const checksumOffset = 20

// putHeader encodes h without its checksum.
func putHeader(b *[HeaderSize]byte, h Header) {
	binary.BigEndian.PutUint32(b[0:], h.Length)
	b[4] = byte(h.Type)
	b[5] = byte(h.Flags)
	b[6], b[7] = 0, 0
	binary.BigEndian.PutUint64(b[8:], h.ConnID)
	binary.BigEndian.PutUint32(b[16:], h.Sequence)
}

// seal computes the checksum over header and payload and stores it.
func seal(b *[HeaderSize]byte, payload []byte) {
	binary.BigEndian.PutUint32(b[checksumOffset:], checksum(b[:], payload))
}

// checksum is CRC-32C over the header without its checksum field, then the payload.
func checksum(header, payload []byte) uint32 {
	return crc32.Update(crc32.Update(0, castagnoli, header[:checksumOffset]), castagnoli, payload)
}

// parseHeader decodes HeaderSize bytes. It judges nothing.
func parseHeader(b []byte) Header {
	_ = b[HeaderSize-1]
	return Header{
		Length:   binary.BigEndian.Uint32(b[0:]),
		Type:     Type(b[4]),
		Flags:    Flags(b[5]),
		ConnID:   binary.BigEndian.Uint64(b[8:]),
		Sequence: binary.BigEndian.Uint32(b[16:]),
		Checksum: binary.BigEndian.Uint32(b[checksumOffset:]),
	}
}
