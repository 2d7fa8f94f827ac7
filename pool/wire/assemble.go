package wire

import "fmt"

// NextChunk splits the front off a message: the payload of the next DATA frame, its flags,
// and what remains. An empty message is one empty chunk.
func NextChunk(message []byte) (chunk, rest []byte, flags Flags) {
	if len(message) <= MaxPayload {
		return message, nil, 0
	}
	return message[:MaxPayload], message[MaxPayload:], FlagMore
}

// Chunks returns how many DATA frames a message of n bytes takes.
func Chunks(n int) int { return max(1, (n+MaxPayload-1)/MaxPayload) }

// Assembler puts the chunks of one session's messages together. The zero value is
// ready and accepts messages up to MaxMessage.
type Assembler struct {
	// Limit is the largest message in bytes; 0 and anything above it mean MaxMessage.
	Limit int

	buf []byte // chunks of the unfinished message; empty between messages
}

// Add takes the payload of one DATA frame. It returns the message and true once
// the last chunk is there. A message of a single chunk is returned as it came,
// without copying; a longer one belongs to the caller.
//
// ErrMessageTooLarge and ErrEmptyChunk mean that the peer broke the protocol on
// this session; the unfinished message is dropped.
func (a *Assembler) Add(flags Flags, chunk []byte) (message []byte, done bool, err error) {
	limit := a.limit()
	more := flags&FlagMore != 0
	switch {
	case more && len(chunk) == 0:
		// Such chunks cost the sender nothing and would never add up to a limit.
		a.Drop()
		return nil, false, ErrEmptyChunk
	case len(a.buf)+len(chunk) > limit:
		n := len(a.buf) + len(chunk)
		a.Drop()
		return nil, false, fmt.Errorf("%d bytes and more, limit %d: %w", n, limit, ErrMessageTooLarge)
	case !more && len(a.buf) == 0:
		return chunk, true, nil
	}
	a.buf = append(a.buf, chunk...)
	if more {
		return nil, false, nil
	}
	message, a.buf = a.buf, nil
	return message, true, nil
}

// Pending returns how many bytes of an unfinished message are held.
func (a *Assembler) Pending() int { return len(a.buf) }

// Drop forgets an unfinished message.
func (a *Assembler) Drop() { a.buf = nil }

func (a *Assembler) limit() int {
	if a.Limit <= 0 || a.Limit > MaxMessage {
		return MaxMessage
	}
	return a.Limit
}
