package gateway

import (
	"context"
	"encoding/json"

	"hecate/internal/gateway/calls"
)

// Text is a model's language, as the gateway needs it.
type Text interface {
	// EncodeChat runs the chat template over the turns, ready for the
	// assistant's next one. tools is OpenAI's array, nil without any.
	EncodeChat(ctx context.Context, turns []Turn, tools json.RawMessage) ([]int32, error)
	// Calls is how the model writes calls of tools.
	Calls() calls.Style
	// Encode turns plain text into tokens.
	Encode(text string) ([]int32, error)
	// EncodeText turns text into tokens: with those that the model wants around
	// a text, if special says so, and reading control tokens in it, if parse does.
	EncodeText(text string, special, parse bool) ([]int32, error)
	// Decode gives the text of tokens.
	Decode(ids []int32) string
	// Name shows a token to people.
	Name(token int32) string
	// Pooling is how the model embeds a text.
	Pooling() Pooling
	// IsEnd says that a token ends the answer.
	IsEnd(token int32) bool
	// Vocabulary is the number of tokens.
	Vocabulary() int
	// Bytes is what a token stands for.
	Bytes(token int32) []byte
	// Speak starts the text of one answer.
	Speak(stops []string) (Speaker, error)
}

// Speaker turns the tokens of one answer into text: whole characters only, and
// never a part of a stop string.
type Speaker interface {
	// Add gives the text that is certain now, and whether a stop string came.
	Add(token int32) (text string, stopped bool)
	// Rest gives what was held back, at the end of an answer.
	Rest() string
}

// Kinds of Pooling.
const (
	PoolMean = "mean" // of all tokens
	PoolLast = "last" // the last token's
)

// Pooling is how the states of a text's tokens become one vector.
type Pooling struct {
	Kind     string // "": in no way that is known here
	Declared bool   // the file says so; else the mean is taken
	Width    int
}

// Turn is one message of a chat.
type Turn struct {
	Role, Content, Name string
	Calls               json.RawMessage // the assistant's calls, OpenAI's array
	CallID              string          // which call a tool answers
}
