package wire

import "time"

// All limits of the codec, each with the threat it answers. They are part of the
// protocol: a peer that exceeds one is broken or hostile, and is dropped.
const (
	// HeaderSize is the fixed size of a frame header in bytes.
	HeaderSize = 24

	// MaxPayload is the largest payload of one frame in bytes. It answers two
	// threats: a peer announcing gigabytes to make us allocate them, and one
	// session's huge message making all others of the connection wait. At 1 Gbit/s
	// a full frame occupies the link for 0.26 ms.
	MaxPayload = 32 << 10

	// MaxFrame is the largest encoded frame in bytes.
	MaxFrame = HeaderSize + MaxPayload

	// MaxMessage is the largest message in bytes that anybody may put together, whatever
	// the window: a peer that never ends a message must not own our memory.
	MaxMessage = 64 << 20

	// MaxOpenMeta bounds the bytes that an OPEN carries for the application, so
	// that opening sessions stays cheap for the side that must keep the bytes.
	MaxOpenMeta = 4 << 10

	// MaxReason bounds the text of CLOSE, CANCEL and GOAWAY in bytes: the text goes
	// to logs, and a peer must not fill our disk.
	MaxReason = 128

	// MaxIdentity bounds node identity and swarm id in bytes, for the same reason.
	MaxIdentity = 128

	// MaxHello is the largest body of a handshake message in bytes. Until the
	// handshake has ended the peer is a stranger, and this is all the memory that a
	// stranger gets.
	MaxHello = 1 << 10

	// DefaultHandshakeTimeout ends a handshake with a peer that connects and then
	// says nothing, or one byte per minute.
	DefaultHandshakeTimeout = 5 * time.Second
)

// Payload sizes of the fixed control frames in bytes.
const (
	ackSize    = 8
	pingSize   = 8
	openSize   = 8 // the windows in front of the metadata
	reasonSize = 2 // the code in front of the text
)

// Buffer sizes in bytes. A TLS record holds 16 KiB, so multiples of it leave no
// short records behind when a buffer is written out because it is full.
const (
	tlsRecord        = 16 << 10
	readerBufferSize = 4 * tlsRecord

	// directPayload is from where on a payload goes straight to its owner's memory,
	// and directAhead how much is then read together with the next header.
	directPayload = 8 << 10
	directAhead   = 1 << 10

	writerBufferSize = 4 * tlsRecord
)
