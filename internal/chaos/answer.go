package chaos

import (
	"encoding/json"
	"strings"
)

// question is what an upstream reads of a request; all else is taken and ignored.
type question struct {
	Model               string          `json:"model"`
	Messages            json.RawMessage `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	Stream              bool            `json:"stream"`
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	chat bool
}

// lines are the answer: a text in which a client sees at once what is missing.
const lines = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"

// created is the moment that all answers bear, in seconds since 1970: they are
// equal byte for byte from run to run.
const created = 1767225600

// answer is the right answer to a question, in tokens of one word each.
type answer struct {
	q      question
	tokens []string
	finish string
	usage  usage
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// rightAnswer says the words, again and again when more are wanted, and fewer
// when fewer are allowed.
func rightAnswer(q question) answer {
	words := strings.SplitAfter(lines, " ")
	a := answer{q: q, finish: "stop", tokens: words}
	limit := q.MaxCompletionTokens
	if limit == nil {
		limit = q.MaxTokens
	}
	if limit != nil {
		n := min(max(*limit, 1), maxTokens)
		a.tokens = nil
		for i := range n {
			a.tokens = append(a.tokens, strings.TrimSpace(words[i%len(words)])+" ")
		}
		a.tokens[n-1] = strings.TrimSpace(a.tokens[n-1])
		a.finish = "length"
	}
	// Words of the prompt as it was written: a count that is right enough to be believed.
	prompt := len(strings.Fields(string(q.Messages) + string(q.Prompt)))
	a.usage = usage{prompt, len(a.tokens), prompt + len(a.tokens)}
	return a
}

func (a answer) frame(object string, choice map[string]any) map[string]any {
	id := "cmpl-chaos"
	if a.q.chat {
		id = "chatcmpl-chaos"
	}
	choices := []any{}
	if choice != nil {
		choice["index"] = 0
		choices = append(choices, choice)
	}
	return map[string]any{"id": id, "object": object, "created": created, "model": a.q.Model, "choices": choices}
}

// whole is the body of an answer that is not streamed.
func (a answer) whole() map[string]any {
	text := strings.Join(a.tokens, "")
	var body map[string]any
	if a.q.chat {
		body = a.frame("chat.completion", map[string]any{
			"message": map[string]any{"role": "assistant", "content": text}, "finish_reason": a.finish, "logprobs": nil,
		})
	} else {
		body = a.frame("text_completion", map[string]any{"text": text, "finish_reason": a.finish, "logprobs": nil})
	}
	body["usage"] = a.usage
	return body
}

// head is the first event, without text; completions have none.
func (a answer) head() map[string]any {
	return a.frame("chat.completion.chunk", map[string]any{"delta": map[string]any{"role": "assistant", "content": ""}, "finish_reason": nil})
}

// piece is the event of one token.
func (a answer) piece(token string) map[string]any {
	if a.q.chat {
		return a.frame("chat.completion.chunk", map[string]any{"delta": map[string]any{"content": token}, "finish_reason": nil})
	}
	return a.frame("text_completion", map[string]any{"text": token, "finish_reason": nil})
}

// tail is the event with the finish reason.
func (a answer) tail() map[string]any {
	if a.q.chat {
		return a.frame("chat.completion.chunk", map[string]any{"delta": map[string]any{}, "finish_reason": a.finish})
	}
	return a.frame("text_completion", map[string]any{"text": "", "finish_reason": a.finish})
}

// bill is the event with the usage; its choices are empty.
func (a answer) bill() map[string]any {
	object := "text_completion"
	if a.q.chat {
		object = "chat.completion.chunk"
	}
	e := a.frame(object, nil)
	e["usage"] = a.usage
	return e
}
