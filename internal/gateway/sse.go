package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"hecate/internal/gateway/openai"
)

// Before the first token nothing is written, so that a failure can still be an
// honest status; after headBound the client is told that we live.
const (
	headBound = 10 * time.Second
	keepAlive = 10 * time.Second
)

// writePatience is how long a client may take nothing of what it asked for. Its
// answer holds room on the nodes all that time, which others wait for.
const writePatience = 30 * time.Second

// stream writes server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	client  context.Context   // ends when the client is gone
	head    func(http.Header) // of the answer that is sent
	started bool
	buf     []byte
}

// newStream makes a stream to the client of a request. unhook ends what watches him.
func newStream(w http.ResponseWriter, r *http.Request) (s *stream, unhook func() bool) {
	s = &stream{w: w, control: http.NewResponseController(w), client: r.Context()}
	return s, context.AfterFunc(s.client, func() { _ = s.control.SetWriteDeadline(time.Now()) })
}

// start writes status and headers, once.
func (s *stream) start() {
	if s.started {
		return
	}
	s.started = true
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("Trailer", "X-Hecate-Rescues, "+degradedHeader) // failures may come after the headers
	s.head(h)
	s.w.WriteHeader(http.StatusOK)
}

// event writes one data event.
func (s *stream) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an event that cannot be written: " + err.Error())
	}
	return s.raw(b)
}

func (s *stream) raw(data []byte) error {
	s.start()
	s.buf = append(append(append(s.buf[:0], "data: "...), data...), "\n\n"...)
	return s.write(s.buf)
}

// patient writes to a client who must take something every writePatience.
type patient struct {
	w       io.Writer
	control *http.ResponseController
}

// patientPiece is what he must take in that time, in bytes.
const patientPiece = 16 << 10

// Write implements io.Writer.
func (p patient) Write(b []byte) (done int, err error) {
	for piece := range slices.Chunk(b, patientPiece) {
		_ = p.control.SetWriteDeadline(time.Now().Add(writePatience)) // not every writer can
		n, err := p.w.Write(piece)
		if done += n; err != nil {
			return done, fmt.Errorf("%w: %w", errDeaf, err)
		}
	}
	return done, nil
}

func (s *stream) write(b []byte) error {
	if err := sendNow(s.client, s.w, s.control, b); err != nil {
		return fmt.Errorf("%w: %w", errDeaf, err)
	}
	return nil
}

// sendNow writes at once, or fails when the client is gone or takes nothing for too
// long.
func sendNow(client context.Context, w http.ResponseWriter, control *http.ResponseController, b []byte) error {
	_ = control.SetWriteDeadline(time.Now().Add(writePatience)) // not every writer can
	if client.Err() != nil {
		return context.Cause(client) // or this would be the last deadline that is set
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return control.Flush()
}

// errDeaf: the client takes nothing any more.
var errDeaf = errors.New("the client takes nothing of its answer")

// comment shows that the connection lives.
func (s *stream) comment() error {
	s.start()
	return s.write([]byte(": the answer is on its way\n\n"))
}

// fail ends a stream that cannot go on. A clean end would be taken for a whole
// answer, so the connection is aborted after the error event.
func (s *stream) fail(e *openai.Error) {
	if !s.started {
		e.Write(s.w)
		return
	}
	_ = s.raw(e.Body())
	panic(http.ErrAbortHandler)
}

// done ends a whole stream, and tells how many failures it survived, and who
// answered if it was another model.
func (s *stream) done(rescues int, asked string) {
	s.w.Header().Set("X-Hecate-Rescues", strconv.Itoa(rescues))
	if asked != "" {
		s.w.Header().Set(degradedHeader, asked)
	}
	_ = s.raw([]byte("[DONE]"))
}
