package wire

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// Code says why a session or connection ends. Codes below [CodeApplication] belong
// to the pool, the others to whoever uses it.
type Code uint16

// Codes of the pool.
const (
	CodeOK         Code = 0 // the sender has said all it wanted to say
	CodeCancelled  Code = 1 // whoever wanted the answer is gone
	CodeOverloaded Code = 2 // the window was broken, or the consumer stopped reading
	CodeUnknown    Code = 3 // no such session here
	CodeRefused    Code = 4 // the session was not accepted
	CodeLost       Code = 5 // the connection under the session was lost; never sent
	CodeDraining   Code = 6 // the sender shuts down or forces a drain to its end
	CodeProtocol   Code = 7 // the peer broke the protocol
	CodeInternal   Code = 8 // a fault of the sender
	CodeTimeout    Code = 9 // a deadline passed

	// CodeApplication is the first code that the pool gives no meaning.
	CodeApplication Code = 1024
)

var codeNames = [...]string{
	"ok", "cancelled", "overloaded", "unknown", "refused", "lost", "draining", "protocol", "internal", "timeout",
}

func (c Code) String() string {
	switch {
	case int(c) < len(codeNames):
		return codeNames[c]
	case c >= CodeApplication:
		return fmt.Sprintf("application(%d)", uint16(c-CodeApplication))
	default:
		return fmt.Sprintf("code(%d)", uint16(c))
	}
}

// Open is the payload of OPEN.
type Open struct {
	// WindowBytes and WindowMessages are what the opener is ready to receive on this session
	// before it has returned credit.
	WindowBytes    uint32
	WindowMessages uint32
	// Meta is for the application, at most MaxOpenMeta bytes. After ParseOpen it
	// lies in the payload's memory.
	Meta []byte
}

// Ack is the payload of ACK: how much more the peer may send on this session.
type Ack struct {
	Bytes    uint32
	Messages uint32
}

// Reason is the payload of CLOSE, CANCEL and GOAWAY.
type Reason struct {
	Code Code
	Text string // for logs, at most MaxReason bytes of UTF-8
}

func (r Reason) String() string {
	if r.Text == "" {
		return r.Code.String()
	}
	return r.Code.String() + ": " + r.Text
}

// AppendOpen appends an OPEN. Metadata beyond MaxOpenMeta is refused.
func (w *Writer) AppendOpen(id uint64, o Open) error {
	if len(o.Meta) > MaxOpenMeta {
		return fmt.Errorf("wire: OPEN metadata of %d bytes, at most %d: %w", len(o.Meta), MaxOpenMeta, ErrLength)
	}
	b := w.control[:]
	binary.BigEndian.PutUint32(b[0:], o.WindowBytes)
	binary.BigEndian.PutUint32(b[4:], o.WindowMessages)
	n := openSize + copy(b[openSize:], o.Meta)
	return w.Append(TypeOpen, 0, id, b[:n])
}

// AppendAck appends an ACK.
func (w *Writer) AppendAck(id uint64, a Ack) error {
	b := w.control[:ackSize]
	binary.BigEndian.PutUint32(b[0:], a.Bytes)
	binary.BigEndian.PutUint32(b[4:], a.Messages)
	return w.Append(TypeAck, 0, id, b)
}

// AppendReason appends a CLOSE, CANCEL or GOAWAY. A text beyond MaxReason is cut.
func (w *Writer) AppendReason(t Type, id uint64, r Reason) error {
	b := w.control[:]
	binary.BigEndian.PutUint16(b[0:], uint16(r.Code))
	n := reasonSize + copy(b[reasonSize:], cut(r.Text, MaxReason))
	return w.Append(t, 0, id, b[:n])
}

// AppendPing appends a PING or PONG with a token.
func (w *Writer) AppendPing(t Type, token uint64) error {
	b := w.control[:pingSize]
	binary.BigEndian.PutUint64(b, token)
	return w.Append(t, 0, 0, b)
}

// ParseOpen decodes the payload of OPEN.
func ParseOpen(payload []byte) (Open, error) {
	if len(payload) < openSize {
		return Open{}, fmt.Errorf("OPEN of %d bytes: %w", len(payload), ErrPayload)
	}
	return Open{
		WindowBytes:    binary.BigEndian.Uint32(payload[0:]),
		WindowMessages: binary.BigEndian.Uint32(payload[4:]),
		Meta:           payload[openSize:],
	}, nil
}

// ParseAck decodes the payload of ACK.
func ParseAck(payload []byte) (Ack, error) {
	if len(payload) != ackSize {
		return Ack{}, fmt.Errorf("ACK of %d bytes: %w", len(payload), ErrPayload)
	}
	return Ack{Bytes: binary.BigEndian.Uint32(payload[0:]), Messages: binary.BigEndian.Uint32(payload[4:])}, nil
}

// ParseReason decodes the payload of CLOSE, CANCEL and GOAWAY. The text is copied,
// and made safe for logs: bytes that are no printable UTF-8 become '?'.
func ParseReason(payload []byte) (Reason, error) {
	if len(payload) < reasonSize {
		return Reason{}, fmt.Errorf("reason of %d bytes: %w", len(payload), ErrPayload)
	}
	return Reason{
		Code: Code(binary.BigEndian.Uint16(payload)),
		Text: printable(payload[reasonSize:], MaxReason),
	}, nil
}

// ParsePing decodes the payload of PING and PONG.
func ParsePing(payload []byte) (token uint64, err error) {
	if len(payload) != pingSize {
		return 0, fmt.Errorf("PING of %d bytes: %w", len(payload), ErrPayload)
	}
	return binary.BigEndian.Uint64(payload), nil
}

// cut shortens s to at most n bytes without splitting a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
