package openai

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"
)

func TestErrorsOnTheWire(t *testing.T) {
	for _, c := range []struct {
		name    string
		e       *Error
		status  int
		body    string
		headers map[string]string
	}{
		{"bad request", BadRequest("n", "invalid_value", "no %d", 3), 400,
			`{"error":{"message":"no 3","type":"invalid_request_error","param":"n","code":"invalid_value"}}`,
			map[string]string{"X-Should-Retry": "false", "Retry-After": "", "X-Hecate-Reason": ""}},
		{"about the whole", BadRequest("", "", "no"), 400,
			`{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`, nil},
		{"unknown model", NotFound("x"), 404,
			`{"error":{"message":"The model \"x\" does not exist here. GET /v1/models lists those that do.","type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
			map[string]string{"X-Should-Retry": "false"}},
		{"too large", TooLarge(5), 413,
			`{"error":{"message":"The request body is over the limit of 5 bytes.","type":"invalid_request_error","param":null,"code":"request_too_large"}}`,
			map[string]string{"X-Should-Retry": "false"}},
		{"full", Overloaded("no_room", "busy", 1500*time.Millisecond), 429,
			`{"error":{"message":"busy","type":"rate_limit_error","param":null,"code":"no_room"}}`,
			map[string]string{"X-Should-Retry": "", "Retry-After": "2", "X-Hecate-Reason": "no_room"}},
		{"not ready", Unavailable("not_ready", "wait", time.Second), 503,
			`{"error":{"message":"wait","type":"server_error","param":null,"code":"not_ready"}}`,
			map[string]string{"X-Should-Retry": "", "Retry-After": "1", "X-Hecate-Reason": "not_ready"}},
		{"ours", Internal("internal_error", "oh"), 500,
			`{"error":{"message":"oh","type":"server_error","param":null,"code":"internal_error"}}`,
			map[string]string{"X-Should-Retry": "", "Retry-After": ""}},
	} {
		w := httptest.NewRecorder()
		c.e.Write(w)
		if w.Code != c.status || w.Body.String() != c.body+"\n" {
			t.Errorf("%s: %d %s, want %d %s", c.name, w.Code, w.Body, c.status, c.body)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: Content-Type %q", c.name, got)
		}
		for name, want := range c.headers {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", c.name, name, got, want)
			}
		}
	}
}

// What OpenAI's clients need of answers is what they say null or leave out.
func TestAnswersOnTheWire(t *testing.T) {
	stop, text, empty := FinishStop, "hi", ""
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{"first delta", ChunkChoice{Delta: Delta{Role: "assistant", Content: &empty}},
			`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`},
		{"middle delta", ChunkChoice{Index: 1, Delta: Delta{Content: &text}}, `{"index":1,"delta":{"content":"hi"},"finish_reason":null}`},
		{"last delta", ChunkChoice{FinishReason: &stop}, `{"index":0,"delta":{},"finish_reason":"stop"}`},
		{"usage chunk", ChatChunk{ID: "i", Object: "chat.completion.chunk", Created: 1, Model: "m", Choices: []ChunkChoice{}, Usage: &Usage{1, 2, 3}},
			`{"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`},
		{"message", ChatChoice{Message: AnswerMessage{Role: "assistant"}, FinishReason: "stop"},
			`{"index":0,"message":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":"stop"}`},
		{"token", TokenLogprob{Scored: Scored{Token: "h", Logprob: -1, Bytes: []int{104}}, Top: []Scored{}},
			`{"token":"h","logprob":-1,"bytes":[104],"top_logprobs":[]}`},
	} {
		b, err := json.Marshal(c.v)
		if err != nil {
			t.Fatal(err)
		}
		if string(b) != c.want {
			t.Errorf("%s: %s, want %s", c.name, b, c.want)
		}
	}
}
