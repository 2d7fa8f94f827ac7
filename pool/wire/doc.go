// Package wire is the framing of the data plane: the hello that opens a
// connection and the frames that follow it. It is a pure codec. It owns no
// goroutine, no clock beyond the deadline it puts on a handshake, and no
// policy: what a gap or a refusal means for a connection is the caller's
// business, except that after any decoding error the connection is finished.
//
// # Connection
//
// A connection runs inside TLS 1.3, so bytes cannot be changed on the way by
// anybody without the keys. Checksum and sequence number guard against what
// encryption does not: a buffer that was reused too early, two goroutines
// writing at once, a frame lost between two queues. All of these are bugs, and a
// stream that has met one cannot be trusted further; nothing here resynchronises.
//
//	dialer                          acceptor
//	hello            -------------->            check
//	     check       <-------------- hello | refusal
//	confirm | refusal-------------->            established, or both know why not
//
// The dialer may send frames right behind its confirmation, so the hello costs
// one round trip. Either side may refuse, and the other one always receives the
// reason as a [Refusal].
//
// # Frame
//
// All integers are big endian.
//
//	0       4    5     6        8                16         20         24
//	+-------+----+-----+--------+----------------+----------+----------+---------
//	| length|type|flags|reserved| conn_id        | sequence | CRC-32C  | payload
//	+-------+----+-----+--------+----------------+----------+----------+---------
//
// Length counts the payload only. Sequence starts at 0 in each direction, grows
// by one per frame and wraps at 2^32. The checksum covers the first 20 bytes and
// the payload. Reserved bytes and unknown flags are zero when sent and ignored
// when read; an unknown type is delivered, so that the caller can count it.
//
// A message longer than one frame travels as chunks: every DATA frame but the last
// carries [FlagMore]. Chunks of different sessions may be interleaved, chunks of
// one session are in order. [NextChunk] makes them.
package wire
