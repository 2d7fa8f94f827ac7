package chaos

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"
)

// stage is where one request meets its fault.
type stage struct {
	u *Upstream
	w http.ResponseWriter
	r *http.Request
	q question
}

// honest answers rightly.
func (s *stage) honest() { s.play(rightAnswer(s.q)) }

// play sends a whole answer.
func (s *stage) play(a answer) {
	if !s.q.Stream {
		if s.rest(time.Duration(len(a.tokens)) * s.u.opt.Pace) {
			writeJSON(s.w, http.StatusOK, a.whole())
		}
		return
	}
	s.open()
	s.stream(a)
}

// stream sends all events of a stream.
func (s *stage) stream(a answer) {
	if s.tokens(a, len(a.tokens)) {
		s.close(a)
	}
}

// open sends the headers of a stream.
func (s *stage) open() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.Header().Set("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	s.flush()
}

// tokens streams the first n tokens of an answer; false when the client left.
func (s *stage) tokens(a answer, n int) bool {
	if s.q.chat {
		s.event(a.head())
	}
	for _, token := range a.tokens[:n] {
		if !s.rest(s.u.opt.Pace) {
			return false
		}
		s.event(a.piece(token))
	}
	return true
}

// close sends what stands behind the tokens of a complete stream.
func (s *stage) close(a answer) {
	s.event(a.tail())
	if s.q.StreamOptions.IncludeUsage {
		s.event(a.bill())
	}
	s.line("[DONE]")
}

func (s *stage) event(v any) { s.line(string(encode(v))) }

func (s *stage) line(data string) {
	_, _ = fmt.Fprintf(s.w, "data: %s\n\n", data)
	s.flush()
}

// flush fails only when the client is gone, which the request's context says.
func (s *stage) flush() { _ = http.NewResponseController(s.w).Flush() }

// rest lets time pass; false when the client left meanwhile.
func (s *stage) rest(d time.Duration) bool {
	if d <= 0 {
		return s.r.Context().Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.r.Context().Done():
		return false
	}
}

// hang keeps the connection open, mute, until the client leaves.
func (s *stage) hang() {
	<-s.r.Context().Done()
	panic(http.ErrAbortHandler) // returning would end the answer cleanly
}

func (s *stage) tooMany() {
	seconds := int((s.u.opt.RetryAfter + time.Second - 1) / time.Second)
	s.w.Header().Set("Retry-After", fmt.Sprint(seconds))
	writeError(s.w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", fmt.Sprintf("Too many requests. Try again in %d s.", seconds))
}

func (s *stage) broken() {
	writeError(s.w, http.StatusInternalServerError, "server_error", "", "The server had an error while processing the request.")
}

func (s *stage) unavailable() {
	writeError(s.w, http.StatusServiceUnavailable, "server_error", "", "The server is unavailable.")
}

func (s *stage) contextLength() {
	writeError(s.w, http.StatusBadRequest, "invalid_request_error", "context_length_exceeded", "This model's maximum context length is exceeded by the messages.")
}

func (s *stage) contentFilter() {
	writeError(s.w, http.StatusBadRequest, "invalid_request_error", "content_filter", "The prompt was refused by the content filter.")
}

// reset makes the kernel send RST: closing with a linger of 0 does.
func (s *stage) reset() {
	conn, _, err := http.NewResponseController(s.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (s *stage) silence() { s.hang() }

func (s *stage) late() {
	if s.q.Stream {
		s.open()
	}
	if !s.rest(s.u.opt.Delay) {
		panic(http.ErrAbortHandler)
	}
	a := rightAnswer(s.q)
	if !s.q.Stream {
		writeJSON(s.w, http.StatusOK, a.whole())
		return
	}
	s.stream(a)
}

// half sends half of the answer: tokens of a stream, or bytes of a body whose
// full length was announced.
func (s *stage) half() {
	a := rightAnswer(s.q)
	if s.q.Stream {
		s.open()
		s.tokens(a, half(a))
		return
	}
	body := encode(a.whole())
	s.w.Header().Set("Content-Type", "application/json")
	s.w.Header().Set("Content-Length", fmt.Sprint(len(body)))
	s.w.WriteHeader(http.StatusOK)
	_, _ = s.w.Write(body[:len(body)/2])
	s.flush()
}

func half(a answer) int { return (len(a.tokens) + 1) / 2 }

func (s *stage) cut() {
	s.half()
	panic(http.ErrAbortHandler)
}

func (s *stage) stall() {
	s.half()
	s.hang()
}

// malformed slips one event that breaks off between the right ones.
func (s *stage) malformed() {
	a := rightAnswer(s.q)
	if !s.q.Stream {
		body := encode(a.whole())
		s.w.Header().Set("Content-Type", "application/json")
		s.w.WriteHeader(http.StatusOK)
		_, _ = s.w.Write(body[:len(body)/2])
		return
	}
	s.open()
	s.tokens(a, half(a))
	event := encode(a.piece("broken"))
	s.line(string(event[:len(event)/2]))
	for _, token := range a.tokens[half(a):] {
		s.event(a.piece(token))
	}
	s.close(a)
}

func (s *stage) noDone() {
	a := rightAnswer(s.q)
	if !s.q.Stream {
		s.play(a)
		return
	}
	s.open()
	s.tokens(a, len(a.tokens))
}

func (s *stage) empty() {
	kind := "application/json"
	if s.q.Stream {
		kind = "text/event-stream"
	}
	s.w.Header().Set("Content-Type", kind)
	s.w.WriteHeader(http.StatusOK)
}

func (s *stage) filtered() {
	a := rightAnswer(s.q)
	a.tokens, a.finish = a.tokens[:half(a)], "content_filter"
	a.usage.Completion = len(a.tokens)
	a.usage.Total = a.usage.Prompt + a.usage.Completion
	s.play(a)
}

func (s *stage) wrongUsage() {
	a := rightAnswer(s.q)
	a.usage = usage{Prompt: -1, Completion: 1_000_000_000, Total: 3}
	s.play(a)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: an event that cannot be written: " + err.Error())
	}
	return b
}
