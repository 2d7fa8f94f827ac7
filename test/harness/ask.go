package harness

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"hecate/internal/gateway/openai"
)

// Model is the embedded model's name.
const Model = "hecate-demo"

// Story is a prompt with a long answer.
const Story = "Tell me a long story about a fox and a lantern."

// Question is a chat request with one user message; more overrides fields.
func Question(text string, more map[string]any) map[string]any {
	body := map[string]any{
		"model":       Model,
		"messages":    []map[string]string{{"role": "user", "content": text}},
		"temperature": 0,
	}
	for k, v := range more {
		body[k] = v
	}
	return body
}

// Answer is a chat answer with what HTTP said.
type Answer struct {
	openai.ChatCompletion
	Header http.Header
}

// Text is the first choice's text.
func (a Answer) Text() string { return a.Choices[0].Message.Content }

// Ask sends a question and wants a whole answer.
func (s *Swarm) Ask(text string, more map[string]any) Answer {
	s.T.Helper()
	return s.AskWith(s.T, text, more)
}

// AskWith is Ask for a part of a test.
func (s *Swarm) AskWith(t testing.TB, text string, more map[string]any) Answer {
	t.Helper()
	code, header, body, err := s.TryPost(context.Background(), "/v1/chat/completions", Question(text, more))
	if err != nil {
		t.Fatal(err)
	}
	if code != http.StatusOK {
		t.Fatalf("status %d: %s", code, body)
	}
	a := Answer{Header: header}
	if err := json.Unmarshal(body, &a.ChatCompletion); err != nil {
		t.Fatal(err)
	}
	return a
}
