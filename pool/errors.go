package pool

import (
	"errors"
	"fmt"
	"time"
)

// Facts that callers branch on. The typed errors below match them with
// errors.Is.
var (
	// ErrPoolClosed: Close was called, or the pool is shutting down.
	ErrPoolClosed = errors.New("pool is closed")
	// ErrUnknownGroup: the desired map has no such group (never had, or
	// membership took it out). Never waited for.
	ErrUnknownGroup = errors.New("group is not in the desired map")
	// ErrNoWriter: the group is wanted, but no living writer took the session
	// in time.
	ErrNoWriter = errors.New("no living writer")
	// ErrSessionClosed: the session is over; see CloseError for the reason.
	ErrSessionClosed = errors.New("session is closed")
	// ErrWriterLost: the session ended because its connection died.
	ErrWriterLost = errors.New("connection lost")
	// ErrQueueFull: the writer's queue had no room for the whole of send_wait.
	// Nothing of the message was sent.
	ErrQueueFull = errors.New("writer queue is full")
	// ErrTooLarge: the message can never fit the peer's window.
	ErrTooLarge = errors.New("message is larger than the peer's window")
	// ErrStaleRevision: Apply was given a map older than the current one, or
	// other contents under the same revision.
	ErrStaleRevision = errors.New("desired map is not newer than the current one")
)

// NoWriterError says which group could not take a session, and why.
type NoWriterError struct {
	Group  string
	Reason string        // what is missing, for people
	Waited time.Duration // 0 for a rescue
}

func (e *NoWriterError) Error() string {
	return fmt.Sprintf("group %q: no living writer after %v: %s", e.Group, e.Waited, e.Reason)
}

// Is makes the error match ErrNoWriter.
func (e *NoWriterError) Is(target error) bool { return target == ErrNoWriter }

// CloseError is how a session's Recv, Send and Err report its end.
type CloseError struct {
	Code   CloseCode
	Remote bool   // the peer said so
	Detail string // more for people, may be empty
	// Silent: with CodeLost, nobody closed the connection, the peer just answered
	// no more. It may be dead, cut off, or too busy to answer.
	Silent bool
}

func (e *CloseError) Error() string {
	who := "here"
	if e.Remote {
		who = "by the peer"
	}
	if e.Detail == "" {
		return fmt.Sprintf("session closed %s: %s", who, e.Code)
	}
	return fmt.Sprintf("session closed %s: %s: %s", who, e.Code, e.Detail)
}

// Is makes every CloseError match ErrSessionClosed, and a lost connection
// ErrWriterLost as well.
func (e *CloseError) Is(target error) bool {
	return target == ErrSessionClosed || target == ErrWriterLost && e.Code == CodeLost
}

// QueueFullError is the typed refusal of a Send that found no room.
type QueueFullError struct {
	Peer   string
	Bytes  int // of the message
	Waited time.Duration
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("send %d bytes to %s: writer queue is full for %v", e.Bytes, e.Peer, e.Waited)
}

// Is makes the error match ErrQueueFull.
func (e *QueueFullError) Is(target error) bool { return target == ErrQueueFull }

// TooLargeError is the typed refusal of a message above Session.MaxMessage.
type TooLargeError struct{ Bytes, Limit int }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("message of %d bytes is above the limit of %d", e.Bytes, e.Limit)
}

// Is makes the error match ErrTooLarge.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }
