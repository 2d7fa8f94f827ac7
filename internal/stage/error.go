package stage

import "fmt"

// Code classes a refusal, so that the gateway knows whom to blame and whether
// another node could do better.
type Code string

const (
	CodeNoCells   Code = "no_cells"       // no KV room now; another node may have it
	CodeNotHeld   Code = "layer_not_held" // the node does not hold these layers (any more, or yet)
	CodeNotFinite Code = "not_finite"     // NaN or infinity came out; the answer is lost on any node
	CodeBad       Code = "bad_request"    // the gateway broke the protocol
	CodePaused    Code = "paused"         // the node takes nothing new
	CodeInternal  Code = "internal"       // the node failed at it
)

// Error is the node's no. The session ends after it.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Code) }

// Encode gives the message's bytes.
func (e *Error) Encode() ([]byte, error) { return encodeJSON(KindError, e) }

// DecodeError reads an Error; a malformed one becomes an error that says so.
func DecodeError(b []byte) error {
	var e Error
	if err := decodeJSON(KindError, b, &e); err != nil {
		return err
	}
	return &e
}
