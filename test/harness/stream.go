package harness

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

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
		return Stream{}, fmt.Errorf("status %d", resp.StatusCode)
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

func (s *Stream) take(data string, each func(string)) error {
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
			if each != nil && *c.Delta.Content != "" {
				each(*c.Delta.Content)
			}
		}
		if c.FinishReason != nil {
			s.Finish = *c.FinishReason
		}
	}
	return nil
}
