package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"hecate/internal/gateway/openai"
)

// Stream is a streamed answer as it arrived.
type Stream struct {
	Text    string
	Finish  string
	Usage   *openai.Usage
	Rescues int
	Route   string        // at the end
	Done    bool          // [DONE] came
	Fault   *openai.Error // an error event came
	Events  int
	Broken  error // the body ended badly
	Header  http.Header
}

// AskStream streams an answer; each is called with every piece of text.
func (s *Swarm) AskStream(ctx context.Context, text string, more map[string]any, each func(string)) (Stream, error) {
	return s.AskStreamFrom(ctx, text, more, func(_ *Stream, piece string) {
		if each != nil {
			each(piece)
		}
	})
}

// AskStreamFrom is AskStream for a reader that wants to see what came so far.
func (s *Swarm) AskStreamFrom(ctx context.Context, text string, more map[string]any, each func(*Stream, string)) (Stream, error) {
	q := Question(text, more)
	q["stream"] = true
	b, err := json.Marshal(q)
	if err != nil {
		return Stream{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/chat/completions", bytes.NewReader(b))
	if err != nil {
		return Stream{}, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Stream{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return Stream{}, refusal(resp)
	}
	out := Stream{Header: resp.Header}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if err := out.take(data, each); err != nil {
			return out, err
		}
	}
	out.Broken = lines.Err()
	return out, nil
}

// Refusal is an answer that never began.
type Refusal struct {
	Status int
	Retry  time.Duration // after which the gateway wants to be asked again; 0: never
	Body   string
}

func (r *Refusal) Error() string { return fmt.Sprintf("status %d: %s", r.Status, r.Body) }

func refusal(resp *http.Response) *Refusal {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return &Refusal{resp.StatusCode, time.Duration(seconds) * time.Second, string(b)}
}

// AskPatiently streams an answer, and asks again when it is told to, as a client
// does whom a busy gateway refuses.
func (s *Swarm) AskPatiently(ctx context.Context, text string, more map[string]any) (Stream, error) {
	for {
		st, err := s.AskStream(ctx, text, more, nil)
		var r *Refusal
		if !errors.As(err, &r) || r.Retry == 0 {
			return st, err
		}
		select {
		case <-time.After(r.Retry):
		case <-ctx.Done():
			return st, err
		}
	}
}

func (s *Stream) take(data string, each func(*Stream, string)) error {
	if data == "[DONE]" {
		s.Done = true
		return nil
	}
	s.Events++
	var event struct {
		openai.ChatChunk
		Error *openai.Error `json:"error"`
	}
	if err := json.Unmarshal([]byte(data), &event); err != nil {
		return fmt.Errorf("event %q: %w", data, err)
	}
	s.Fault = event.Error
	if event.Usage != nil {
		s.Usage = event.Usage
	}
	if event.Hecate != nil {
		s.Rescues, s.Route = event.Hecate.Rescues, event.Hecate.Route
	}
	for _, c := range event.Choices {
		if c.Delta.Content != nil {
			s.Text += *c.Delta.Content
			if *c.Delta.Content != "" {
				each(s, *c.Delta.Content)
			}
		}
		if c.FinishReason != nil {
			s.Finish = *c.FinishReason
		}
	}
	return nil
}
