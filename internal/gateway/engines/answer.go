package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// Limits of what is held of an answer.
const (
	wholeUpTo  = 1 << 20  // bytes of an answer that is not streamed; a larger one leaves as it comes
	validUpTo  = 16 << 10 // bytes of JSON that are checked to the last one
	holdUpTo   = 64 << 10 // bytes of events that say nothing
	eventUpTo  = 8 << 20  // bytes of one event
	streamRoom = 4 << 10  // least free memory for a read
)

// whole passes on an answer that is not streamed. Up to a size it is taken in
// before a byte of it leaves, so that one that breaks off is asked for elsewhere.
func (a *attempt) whole(resp *http.Response) error {
	b := newBuffer()
	defer b.release()
	ended, err := b.take(resp.Body, resp.ContentLength)
	if err != nil {
		return a.fail(Cut, err)
	}
	if !ended {
		return a.pour(resp, b)
	}
	if f := a.judge(resp, b.data); f != nil {
		return f
	}
	resp.ContentLength = int64(len(b.data))
	a.relay.open(resp, a.grant.engine.rec.ID)
	if err := a.relay.put(b.data); err != nil {
		return err
	}
	a.relay.tokens = usageOf(b.data)
	a.answered(0, a.relay.tokens.completion)
	return nil
}

// take reads up to wholeUpTo bytes, and says whether that was all.
func (b *buffer) take(r io.Reader, size int64) (ended bool, err error) {
	if size > wholeUpTo {
		return false, nil
	}
	err = b.fill(io.LimitReader(r, wholeUpTo+1), size)
	return len(b.data) <= wholeUpTo, err
}

// judge says what is wrong with an answer of status 200.
func (a *attempt) judge(resp *http.Response, body []byte) *failure {
	body = bytes.TrimSpace(body)
	if len(body) == 0 && resp.StatusCode != http.StatusNoContent {
		return a.fail(Empty, errors.New("it answers with nothing at all"))
	}
	if !strings.Contains(resp.Header.Get("Content-Type"), "json") {
		return nil
	}
	if !soundJSON(body, a.relay.dialect) {
		return a.fail(Malformed, errors.New("its answer is JSON that breaks off"))
	}
	return nil
}

func soundJSON(body []byte, d dialect) bool {
	first, last := body[0], body[len(body)-1]
	switch {
	case first == '{' && last != '}', first == '[' && last != ']':
		return false
	case len(body) <= validUpTo:
		return json.Valid(body)
	case d != unknown:
		return object(body, func([]byte, span) error { return nil }) == nil
	}
	return true
}

// pour passes on a large answer as it comes.
func (a *attempt) pour(resp *http.Response, b *buffer) error {
	a.relay.open(resp, a.grant.engine.rec.ID)
	for {
		a.timer.Stop() // while the client takes nothing, the engine is not silent
		if err := a.relay.put(b.data); err != nil {
			return err
		}
		a.heard()
		b.data = b.data[:0]
		b.grow(readBuffer)
		n, err := resp.Body.Read(b.data[:cap(b.data)])
		b.data = b.data[:n]
		a.heard()
		switch {
		case errors.Is(err, io.EOF):
			if err := a.relay.put(b.data); err != nil {
				return err
			}
			a.answered(0, 0)
			return nil
		case err != nil:
			return a.fail(Cut, err)
		}
	}
}

func (a *attempt) heard() {
	a.timer.Reset(a.grant.engine.silence())
	a.grant.engine.heard.Store(time.Now().UnixNano())
}

// answered notes what a whole answer took.
func (a *attempt) answered(first time.Duration, tokens int) {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	e := a.grant.engine
	e.measures.answered(a.call.PromptTokens, first, time.Since(a.began), tokens)
	e.circuit.Success(time.Now())
}

// stream passes events on as they come, whole ones only: what breaks off in the
// middle of an event is not the client's to make sense of.
func (a *attempt) stream(resp *http.Response) error {
	s := &streaming{attempt: a, resp: resp, d: a.relay.dialect, b: newBuffer()}
	defer s.b.release()
	defer s.charge()
	for {
		if cap(s.b.data)-len(s.b.data) < streamRoom {
			s.b.grow(len(s.b.data) + streamRoom)
		}
		n, err := resp.Body.Read(s.b.data[len(s.b.data):cap(s.b.data)])
		s.b.data = s.b.data[:len(s.b.data)+n]
		if n > 0 {
			if err := s.feed(); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return s.end()
		case err != nil && s.complete():
			if err := s.closeOff(); err != nil {
				return err
			}
			return s.counted()
		case err != nil:
			return a.fail(Cut, err)
		}
	}
}

// complete says that all of the answer has left, whatever became of the
// connection since.
func (s *streaming) complete() bool { return s.facts.finished && s.call.choices == 1 }

// closeOff ends such a stream in the engine's stead.
func (s *streaming) closeOff() error {
	if s.facts.done {
		return nil
	}
	return s.relay.write([]byte("data: [DONE]\n\n"))
}

// streaming is one stream of events on its way.
type streaming struct {
	*attempt
	resp  *http.Response
	d     dialect
	b     *buffer // events that have not left
	quiet int     // how much of b is known to say nothing
	first time.Duration
	facts facts
}

// feed sends what has become whole.
func (s *streaming) feed() error {
	n := len(s.b.data)
	if s.d != unknown {
		n = wholeEvents(s.b.data)
	}
	if n == 0 {
		if len(s.b.data) > eventUpTo {
			return s.fail(Malformed, fmt.Errorf("an event of more than %d bytes", eventUpTo))
		}
		return nil
	}
	return s.send(n)
}

// send sends the first n bytes, unless they say nothing yet.
func (s *streaming) send(n int) error {
	if s.first == 0 {
		if err := s.begin(n); err != nil || s.first == 0 {
			return err
		}
	}
	s.heard()
	events := s.b.data[:n]
	sound := s.facts.look(events, s.d)
	out := s.relay.past.note(events[:sound])
	if len(out) > 0 {
		s.timer.Stop() // while the client takes nothing, the engine is not silent
		if err := s.relay.write(out); err != nil {
			return err
		}
		s.heard()
	}
	if sound < len(events) {
		return s.fail(Malformed, errors.New("an event that breaks off, or an end before any finish reason"))
	}
	s.b.data = s.b.data[:copy(s.b.data, s.b.data[n:])]
	return nil
}

// begin looks for the first content; until it comes, another engine may still be
// asked and nothing leaves.
func (s *streaming) begin(n int) error {
	switch openingOf(s.b.data[s.quiet:n], s.d) {
	case nothingYet:
		if s.quiet = n; n <= holdUpTo {
			return nil
		}
	case refusal:
		return s.fail(Broken, errors.New("an error event instead of an answer"))
	case broken:
		return s.fail(Malformed, errors.New("its first event is no JSON"))
	}
	s.first = max(1, time.Since(s.began))
	s.relay.open(s.resp, s.grant.engine.rec.ID)
	return nil
}

// end judges a stream that ended cleanly.
func (s *streaming) end() error {
	if err := s.tail(); err != nil {
		return err
	}
	switch {
	case s.first == 0:
		return s.fail(Empty, errors.New("a stream without an answer"))
	case !s.facts.whole(s.d), s.call.choices > 1 && !s.facts.done && s.d != unknown:
		return s.fail(Cut, errors.New("the stream ended without a finish reason"))
	}
	return s.counted()
}

// tail sends what no empty line ends, if it is an event; clients ignore one without,
// so it gets one. What is none is a stream that broke off there.
func (s *streaming) tail() error {
	n := len(s.b.data)
	switch {
	case n == 0:
		return nil
	case s.d == unknown || wholeEvents(s.b.data) == n:
		return s.send(n)
	case soundTail(s.b.data):
		s.b.data = append(s.b.data, "\n\n"...)
		return s.send(len(s.b.data))
	case s.complete():
		return s.closeOff()
	}
	return s.fail(Cut, errors.New("the stream ended in the middle of an event"))
}

// charge adds what this attempt has cost, whole or not: by the engine's own count,
// if it came that far.
func (s *streaming) charge() {
	cost := s.facts.usage
	if cost == (tokens{}) && s.first > 0 {
		cost = tokens{s.call.PromptTokens, s.facts.events}
	}
	if s.relay.tokens.prompt == 0 { // later ones are given what was said as well
		s.relay.tokens.prompt = cost.prompt
	}
	s.relay.tokens.completion += cost.completion
}

func (s *streaming) counted() error {
	s.answered(s.first, max(s.facts.events, s.facts.usage.completion))
	return nil
}

// usageOf reads what an engine counted.
func usageOf(body []byte) (out tokens) {
	_ = object(body, func(key []byte, v span) error {
		if named(key, "usage") {
			out = readUsage(v.of(body))
		}
		return nil
	})
	return out
}

func readUsage(raw []byte) tokens {
	var u struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
	if json.Unmarshal(raw, &u) != nil || u.Prompt < 0 || u.Completion < 0 || u.Prompt > mostTokens || u.Completion > mostTokens {
		return tokens{} // counts that cannot be are none
	}
	return tokens{u.Prompt, u.Completion}
}

// mostTokens is more than any request has.
const mostTokens = 100_000_000
