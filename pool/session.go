package pool

import "context"

// Session is one conversation, bound to exactly one connection for its whole
// life. It preserves message boundaries: one Send is one Recv. Send may be
// called from one goroutine and Recv from another; concurrent Sends are
// serialised, concurrent Recvs each get different messages.
type Session interface {
	// ID is the conn_id: unique within the pool (or, on the node's side,
	// within the connection) for the life of the process.
	ID() uint64
	// Peer says who is at the other end, as proved by its certificate.
	Peer() Peer
	// MaxMessage is the largest message Send takes, in bytes: what the peer's
	// window can hold at once.
	MaxMessage() int

	// Send queues one message; the slice is free for reuse when it returns.
	// It waits for the peer's window as long as ctx allows, and for room in
	// the writer's queue at most send_wait. An error means that nothing of
	// the message was sent: *CloseError, *QueueFullError, *TooLargeError or
	// the context's own.
	Send(ctx context.Context, payload []byte) error
	// Recv returns the next message. The slice belongs to the caller for
	// good; one that is done with it may hand it back through Recycle.
	// Messages that arrived before the peer closed are delivered first, then
	// *CloseError.
	Recv(ctx context.Context) ([]byte, error)
	// Recycle gives a slice obtained from Recv back to the buffer store, so
	// that steady traffic allocates nothing. The caller must not touch it any
	// more. Optional.
	Recycle(payload []byte)

	// Close ends the session. With CodeCancelled unsent data is discarded and
	// the peer hears of it before anything queued; with any other code
	// everything sent before is delivered first. Only the first call counts.
	Close(code CloseCode)
	// Done is closed as soon as the session has ended, from either side.
	Done() <-chan struct{}
	// Draining is closed when the connection under the session takes no new
	// sessions any more: its owner may want to move to a fresh one at the next
	// convenient moment, before the drain's deadline ends it.
	Draining() <-chan struct{}
	// Err is nil before Done, and a *CloseError after.
	Err() error
}

// Peer is the other end of a session or connection.
type Peer struct {
	Node  string // node id proved by the certificate and repeated in the hello
	Swarm string
	Addr  string // remote network address
}

// OpenOptions adjusts one Open. The zero value is an ordinary admission.
type OpenOptions struct {
	// Rescue: the session replaces one that just died. It never waits for a
	// writer: it is bound at once or fails at once.
	Rescue bool
	// Reconnect: the session goes on where one stood whose connection broke. It
	// waits like an ordinary admission, but no longer than lost_after (or four
	// round trips), and not for a group that is known to be lost. Rescue then does not matter.
	Reconnect bool
	// Payload is the session's first message: it travels with the OPEN and is
	// the handler's first Recv. Nil: none; empty: an empty message.
	Payload []byte
	// Endpoint, if not empty, is tried first (an Endpoint.Addr of the group);
	// when none of its writers can take the session, any other does.
	Endpoint string
}
