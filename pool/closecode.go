package pool

import "hecate/pool/wire"

// CloseCode says why a session ended. It travels in CLOSE frames; codes from
// CodeApplication on belong to the caller and are passed through untouched.
type CloseCode = wire.Code

// The pool's own codes.
const (
	CodeNormal     = wire.CodeOK         // the conversation is over; everything sent before is delivered
	CodeCancelled  = wire.CodeCancelled  // nobody wants the rest; unsent data is discarded on both sides
	CodeOverloaded = wire.CodeOverloaded // a window was broken, or a consumer stopped reading
	CodeUnknown    = wire.CodeUnknown    // the peer does not know this session
	CodeRefused    = wire.CodeRefused    // the peer takes no new sessions (draining, or at its limit)
	CodeLost       = wire.CodeLost       // the connection died; the peer may still hold its state
	CodeDraining   = wire.CodeDraining   // a drain reached its deadline, or one side is going away: resume elsewhere
	CodeProtocol   = wire.CodeProtocol   // the peer broke the rules of the wire
	CodeInternal   = wire.CodeInternal   // a fault of the other side, such as a panic in the handler
	CodeTimeout    = wire.CodeTimeout    // a deadline passed
	// CodeApplication is the first code that the pool never uses itself.
	CodeApplication = wire.CodeApplication
)
