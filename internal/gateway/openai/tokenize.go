package openai

import "encoding/json"

// TokenizeRequest is the body of POST /v1/tokenize: a text or a chat.
type TokenizeRequest struct {
	Model string  `json:"model"`
	Text  *string `json:"prompt"`  // vLLM's name for it
	Plain *string `json:"content"` // llama.cpp's

	Messages   []Message  `json:"messages"`
	Tools      []Tool     `json:"tools"`
	ToolChoice ToolChoice `json:"tool_choice"`

	AddSpecial   *bool `json:"add_special_tokens"` // absent: true
	ParseSpecial *bool `json:"parse_special"`      // absent: true
	Strings      bool  `json:"return_token_strs"`
}

// Tokenized is the answer.
type Tokenized struct {
	Count   int      `json:"count"`
	Max     int      `json:"max_model_len"`
	Tokens  []int32  `json:"tokens"`
	Strings []string `json:"token_strs,omitempty"`
}

// DetokenizeRequest is the body of POST /v1/detokenize.
type DetokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}

// Detokenized is the answer: the same text under the names that vLLM and
// llama.cpp give it.
type Detokenized struct {
	Prompt  string `json:"prompt"`
	Content string `json:"content"`
}

// DecodeTokenize reads and checks a request for tokens.
func DecodeTokenize(body []byte) (*TokenizeRequest, *Error) {
	r := &TokenizeRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, decodeFault(err)
	}
	if r.Text == nil {
		r.Text = r.Plain
	}
	switch {
	case r.Model == "":
		return nil, BadRequest("model", "missing_required_parameter", "'model' is missing.")
	case (r.Text != nil) == (len(r.Messages) > 0):
		return nil, BadRequest("prompt", "missing_required_parameter", "Either 'prompt' (a text) or 'messages' (a chat) must be given.")
	case r.Text != nil:
		return r, nil
	}
	c := ChatRequest{Common: Common{Model: r.Model}, Messages: r.Messages, Tools: r.Tools, ToolChoice: r.ToolChoice}
	return r, c.check()
}

// Chat is the chat whose tokens are wanted.
func (r *TokenizeRequest) Chat() *ChatRequest {
	return &ChatRequest{Common: Common{Model: r.Model}, Messages: r.Messages, Tools: r.Tools, ToolChoice: r.ToolChoice}
}

// DecodeDetokenize reads and checks a request for text.
func DecodeDetokenize(body []byte) (*DetokenizeRequest, *Error) {
	r := &DetokenizeRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, decodeFault(err)
	}
	if r.Model == "" {
		return nil, BadRequest("model", "missing_required_parameter", "'model' is missing.")
	}
	return r, nil
}
