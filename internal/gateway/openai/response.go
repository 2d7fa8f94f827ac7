package openai

import "encoding/json"

// Usage counts tokens.
type Usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// Hecate is what we add beside usage.
type Hecate struct {
	Rescues int    `json:"rescues"`         // failures survived in this answer
	Route   string `json:"route,omitempty"` // as in X-Hecate-Route, as it was at the end
	// Degraded names the model that was asked for, when another one answered.
	Degraded string `json:"degraded,omitempty"`
}

// ChatCompletion is a whole answer.
type ChatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"` // chat.completion
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []ChatChoice `json:"choices"`
	Usage   Usage        `json:"usage"`
	Hecate  Hecate       `json:"hecate"`
}

// ChatChoice is one of n alternatives.
type ChatChoice struct {
	Index        int           `json:"index"`
	Message      AnswerMessage `json:"message"`
	Logprobs     *ChatLogprobs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
}

// AnswerMessage is the assistant's turn.
type AnswerMessage struct {
	Role      string     `json:"role"`
	Content   string     `json:"content"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
}

// MarshalJSON writes null for the text of a message that only calls.
func (m AnswerMessage) MarshalJSON() ([]byte, error) {
	type bare AnswerMessage
	if m.Content != "" || len(m.ToolCalls) == 0 {
		return json.Marshal(bare(m))
	}
	return json.Marshal(struct {
		bare
		Content *string `json:"content"`
	}{bare: bare(m)})
}

// ChatChunk is one event of a stream.
type ChatChunk struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"` // chat.completion.chunk
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Choices []ChunkChoice `json:"choices"`
	Usage   *Usage        `json:"usage,omitempty"`
	Hecate  *Hecate       `json:"hecate,omitempty"`
}

// ChunkChoice is a piece of one alternative.
type ChunkChoice struct {
	Index        int           `json:"index"`
	Delta        Delta         `json:"delta"`
	Logprobs     *ChatLogprobs `json:"logprobs,omitempty"`
	FinishReason *string       `json:"finish_reason"`
}

// Delta is what a chunk adds.
type Delta struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`

	ToolCalls []CallDelta `json:"tool_calls,omitempty"`
}

// CallDelta is what a chunk adds to a call: first id, type and name, then
// arguments, piece by piece.
type CallDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function FunctionDelta `json:"function"`
}

// FunctionDelta is a piece of a call.
type FunctionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// ChatLogprobs holds a choice's tokens with their probabilities.
type ChatLogprobs struct {
	Content []TokenLogprob `json:"content"`
}

// TokenLogprob is one token and what could have stood in its place.
type TokenLogprob struct {
	Scored
	Top []Scored `json:"top_logprobs"`
}

// Scored is a token's text, bytes and natural logarithm of its probability.
// Bytes are numbers, not text: a token may be a part of a character.
type Scored struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// Completion is a whole answer, or one event of a stream, of the older API.
type Completion struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // text_completion
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []CompletionChoice `json:"choices"`
	Usage   *Usage             `json:"usage,omitempty"`
	Hecate  *Hecate            `json:"hecate,omitempty"`
}

// CompletionChoice is one alternative or a piece of it.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
}

// CompletionLogprobs are parallel lists, one entry per token.
type CompletionLogprobs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"` // characters from the start of the text
}

// Model is one entry of /v1/models.
type Model struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"` // model
	Created int64        `json:"created"`
	OwnedBy string       `json:"owned_by"`
	Hecate  *ModelDetail `json:"hecate,omitempty"`
}

// ModelDetail is what we add to a model.
type ModelDetail struct {
	Ready         bool   `json:"ready"`
	Demo          bool   `json:"demo,omitempty"`           // a toy: for showing, not for use
	ContextLength int    `json:"context_length,omitempty"` // tokens, prompt and answer together; unknown of engines' models
	Missing       string `json:"missing,omitempty"`
	Tools         bool   `json:"tools,omitempty"`        // its template knows tools
	Embeddings    string `json:"embeddings,omitempty"`   // how it pools, where it was made for embeddings
	FallbackFor   string `json:"fallback_for,omitempty"` // stands in, labelled, for that model
	// Engines serve it, whole, instead of our own nodes or beside them.
	Engines []string `json:"engines,omitempty"`
}

// ModelList is the body of GET /v1/models.
type ModelList struct {
	Object string  `json:"object"` // list
	Data   []Model `json:"data"`
}

// Reasons why an answer ended.
const (
	FinishStop   = "stop"   // the model ended its turn, or a stop string came
	FinishLength = "length" // the limit of tokens was reached
	FinishCalls  = "tool_calls"
)
