package wire

import (
	"errors"
	"fmt"
)

// What can be wrong with a frame. Each arrives wrapped in a [FrameError]; test with
// errors.Is. After any of them the connection must be aborted.
var (
	ErrLength    = errors.New("wire: illegal frame length")
	ErrChecksum  = errors.New("wire: checksum mismatch")
	ErrSequence  = errors.New("wire: sequence gap")
	ErrConnID    = errors.New("wire: conn_id does not fit the frame type")
	ErrTruncated = errors.New("wire: connection ended inside a frame")
)

// ErrPayload is what can be wrong with the content of a frame that arrived intact.
var ErrPayload = errors.New("wire: malformed payload")

// FrameError tells which frame broke the stream. It is always fatal to the
// connection.
type FrameError struct {
	Kind   error  // one of the sentinels above
	Header Header // as read; fields are untrusted when Kind is ErrLength or ErrChecksum
	Want   uint64 // expected sequence or checksum, or the length limit
	Got    uint64
	Cause  error // the transport's error when Kind is ErrTruncated
}

func (e *FrameError) Error() string {
	s := fmt.Sprintf("%v (%v", e.Kind, e.Header)
	switch {
	case e.Cause != nil:
		s += ": " + e.Cause.Error()
	case e.Want != e.Got:
		s += fmt.Sprintf(": want %#x, got %#x", e.Want, e.Got)
	}
	return s + ")"
}

// Unwrap lets errors.Is find the kind and the transport's cause.
func (e *FrameError) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}
