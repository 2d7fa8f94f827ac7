package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"hecate/internal/gateway/openai"
	"hecate/internal/report"
)

// question is what is asked: a chat when text is set, else a completion of tokens.
type question struct {
	text        string
	prompt      []int32
	tokens      int // to generate
	temperature float64
	seed        int64
}

// reply is a streamed answer as it arrived.
type reply struct {
	text    string
	at      []time.Time // of each event with text
	tokens  int         // generated, by the gateway's count
	rescues int
	route   string // at the start
	flaw    string // why it is no whole answer; "" when it is one
}

func (l *local) body(s *subject, q question) (path string, body map[string]any) {
	body = map[string]any{
		"model": l.model, "stream": true, "stream_options": map[string]bool{"include_usage": true},
		"max_tokens": q.tokens, "temperature": q.temperature, "seed": q.seed, "logit_bias": s.endless(),
	}
	if q.text != "" {
		body["messages"] = []map[string]string{{"role": "user", "content": q.text}}
		return "/v1/chat/completions", body
	}
	body["prompt"] = q.prompt
	return "/v1/completions", body
}

// ask streams one answer. An answer that breaks is no error but a reply with a
// flaw: that is what some benchmarks look for.
func (l *local) ask(ctx context.Context, s *subject, q question) (*reply, error) {
	path, body := l.body(s, q)
	resp, err := l.post(ctx, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	r := &reply{route: resp.Header.Get("X-Hecate-Route")}
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		r.flaw = fmt.Sprintf("status %d: %s", resp.StatusCode, bytes.TrimSpace(b))
		return r, nil
	}
	r.read(resp.Body, q.tokens)
	return r, ctx.Err()
}

// post sends a JSON body on a connection of its own: a broken answer breaks its
// connection.
func (l *local) post(ctx context.Context, path string, body any) (*http.Response, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true
	return http.DefaultClient.Do(req)
}

// event is a chunk of either kind of stream.
type event struct {
	Choices []struct {
		Text         string
		Delta        struct{ Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage  *openai.Usage
	Hecate *openai.Hecate
	Error  *openai.Error
}

// read takes the whole stream and looks for what is wrong with it.
func (r *reply) read(body io.Reader, want int) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	finished, done := false, false
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		now := time.Now()
		if data == "[DONE]" {
			done = true
			continue
		}
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			r.flaw = fmt.Sprintf("an event that is no JSON: %v", err)
			return
		}
		finished = r.take(e, now) || finished
	}
	switch err := lines.Err(); {
	case r.flaw != "":
	case err != nil:
		r.flaw = "the connection broke: " + err.Error()
	case !finished || !done:
		r.flaw = "the stream ended without a finish reason or without [DONE]"
	case r.tokens != want:
		r.flaw = fmt.Sprintf("it has %d tokens, %d were asked for", r.tokens, want)
	}
}

// take adds one event and tells whether it carried a finish reason.
func (r *reply) take(e event, now time.Time) (finished bool) {
	if e.Error != nil {
		r.flaw = "an error event: " + e.Error.Message
	}
	if e.Usage != nil {
		r.tokens = e.Usage.CompletionTokens
	}
	if e.Hecate != nil {
		r.rescues = e.Hecate.Rescues
	}
	for _, c := range e.Choices {
		if text := c.Text + c.Delta.Content; text != "" {
			r.text += text
			r.at = append(r.at, now)
		}
		finished = finished || c.FinishReason != ""
	}
	return finished
}

// status asks for the swarm's state.
func (l *local) status(ctx context.Context) (report.Status, error) {
	var st report.Status
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url+"/v1/swarm", nil)
	if err != nil {
		return st, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return st, fmt.Errorf("ask for the swarm's state: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&st); err != nil {
		return st, fmt.Errorf("read the swarm's state: %w", err)
	}
	return st, nil
}

// arm makes the node of a stage fail just before it computes a token of the next
// answer.
func (l *local) arm(ctx context.Context, stage, token int, action string) error {
	resp, err := l.post(ctx, "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": token, "action": action})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		return fmt.Errorf("arm a failure: status %d: %s", resp.StatusCode, bytes.TrimSpace(b))
	}
	return nil
}

// whole waits until every copy lives and, if a node is named, until it runs as
// another process than old.
func (l *local) whole(ctx context.Context, node string, old int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wholeTime, errNotWhole)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var st report.Status
	for {
		var err error
		if st, err = l.status(ctx); err == nil && wholeAgain(st, node, old) {
			return nil
		}
		select {
		case <-tick.C:
		case <-l.ended:
			return fmt.Errorf("the swarm ended: %w\n%s", orEnded(l.err), l.errs.String())
		case <-ctx.Done():
			return fmt.Errorf("%w: %s %v", context.Cause(ctx), st.State, st.Why)
		}
	}
}

var errNotWhole = errors.New("the swarm does not become whole")

func wholeAgain(st report.Status, node string, old int) bool {
	if st.State != "healthy" {
		return false
	}
	for _, n := range st.Nodes {
		if !n.Alive || n.PID == 0 || n.ID == node && n.PID == old {
			return false
		}
	}
	return true
}
