package pool

import (
	"errors"

	"hecate/pool/wire"
)

// inbox holds one session's inbound messages. It is a value under the
// session's lock.
//
// Contract: deliver never blocks. What exceeds the window that the peer was
// told (in bytes, or in messages) is the peer's fault and reported, never
// dropped silently.
type inbox struct {
	st          *store
	maxBytes    int
	maxMessages int

	ring       []*buffer // messages; ring[(start+i)%len] for i in 0..count
	start      int
	count      int     // <= maxMessages
	bytes      int     // in ring and unfinished; <= maxBytes
	unfinished *buffer // chunks of a message whose end is not there

	takenBytes, takenMessages int // consumed, credit not yet returned
}

var (
	errWindow     = errors.New("peer broke its window")
	errHeld       = errors.New("the connection's sessions hold too much unread")
	errEmptyChunk = errors.New("empty chunk announces more")
)

// deliver adds one DATA frame and says whether a message became complete. The
// payload is copied.
func (q *inbox) deliver(flags wire.Flags, payload []byte) (complete bool, err error) {
	return q.accept(flags, payload, new(*buffer))
}

// accept is deliver for a payload that may lie in *own. Then a message of one
// frame is taken over together with its memory, and *own becomes nil.
func (q *inbox) accept(flags wire.Flags, payload []byte, own **buffer) (complete bool, err error) {
	more := flags&wire.FlagMore != 0
	switch {
	case q.bytes+len(payload) > q.maxBytes, q.count >= q.maxMessages:
		return false, errWindow
	case more && len(payload) == 0:
		return false, errEmptyChunk
	}
	q.bytes += len(payload)
	switch {
	case q.unfinished != nil:
		q.unfinished = q.st.grow(q.unfinished, len(payload))
		q.unfinished.b = append(q.unfinished.b, payload...)
	case more:
		// The end is somewhere behind; start with room for a few chunks.
		q.unfinished = q.st.get(4 * len(payload))
		q.unfinished.b = append(q.unfinished.b, payload...)
	case *own != nil:
		(*own).b = payload
		q.push(*own)
		*own = nil
		return true, nil
	default:
		q.push(q.st.copyOf(payload))
		return true, nil
	}
	if more {
		return false, nil
	}
	q.push(q.unfinished)
	q.unfinished = nil
	return true, nil
}

func (q *inbox) push(b *buffer) {
	if q.count == len(q.ring) {
		q.enlarge()
	}
	q.ring[(q.start+q.count)&(len(q.ring)-1)] = b
	q.count++
}

// enlarge doubles the ring, whose length is a power of two.
func (q *inbox) enlarge() {
	bigger := make([]*buffer, max(4, 2*len(q.ring)))
	for i := range q.count {
		bigger[i] = q.ring[(q.start+i)&(len(q.ring)-1)]
	}
	q.ring, q.start = bigger, 0
}

// pop takes the oldest message.
func (q *inbox) pop() (*buffer, bool) {
	if q.count == 0 {
		return nil, false
	}
	b := q.ring[q.start]
	q.ring[q.start] = nil
	q.start = (q.start + 1) & (len(q.ring) - 1)
	q.count--
	q.bytes -= len(b.b)
	q.takenBytes += len(b.b)
	q.takenMessages++
	return b, true
}

// credit returns what should be given back to the peer now, and resets it.
func (q *inbox) credit() (bytes, messages int) {
	if q.takenBytes < ackThreshold(q.maxBytes) && q.takenMessages < ackMessages(q.maxMessages) {
		return 0, 0
	}
	bytes, messages = q.takenBytes, q.takenMessages
	q.takenBytes, q.takenMessages = 0, 0
	return bytes, messages
}

// full says that the peer cannot send another message before one is consumed.
func (q *inbox) full() bool {
	return q.count+q.takenMessages >= q.maxMessages || q.bytes+q.takenBytes >= q.maxBytes-ackThreshold(q.maxBytes)
}

// abandon drops an unfinished message: its end will never come.
func (q *inbox) abandon() {
	if q.unfinished != nil {
		q.bytes -= len(q.unfinished.b)
		q.st.put(q.unfinished)
		q.unfinished = nil
	}
}

// clear drops everything.
func (q *inbox) clear() {
	q.abandon()
	for b, ok := q.pop(); ok; b, ok = q.pop() {
		q.st.put(b)
	}
	q.ring, q.start = nil, 0
}
