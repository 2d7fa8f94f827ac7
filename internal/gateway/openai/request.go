package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"hecate/internal/sampling"
)

// Limits of a request; each bounds what one client can make us do.
const (
	MaxBody     = 4 << 20 // bytes: far more text than any context holds
	MaxStops    = 4       // stop strings, as OpenAI allows
	MaxStopSize = 256     // bytes of one stop string: they are held back while they may match
	MaxChoices  = 8       // n: each choice is an answer of its own
	MaxMessages = 4096
)

// Common holds what chat completions and completions share.
type Common struct {
	Model             string             `json:"model"`
	Stream            bool               `json:"stream"`
	StreamOptions     *StreamOptions     `json:"stream_options"`
	MaxTokens         *int               `json:"max_tokens"`
	Temperature       *float64           `json:"temperature"`
	TopP              *float64           `json:"top_p"`
	TopK              int                `json:"top_k"`
	MinP              float64            `json:"min_p"`
	N                 *int               `json:"n"`
	Stop              Stops              `json:"stop"`
	Seed              *int64             `json:"seed"`
	PresencePenalty   float64            `json:"presence_penalty"`
	FrequencyPenalty  float64            `json:"frequency_penalty"`
	RepetitionPenalty float64            `json:"repetition_penalty"`
	LogitBias         map[string]float32 `json:"logit_bias"`
	User              string             `json:"user"`
	Hecate            *Options           `json:"hecate"`
}

// Options are what can be asked of this gateway in particular.
type Options struct {
	// Fallback false refuses an answer by another model.
	Fallback *bool `json:"fallback"`
}

// FallsBack says whether the client takes an answer of the declared fallback
// model when the model it asked for cannot be served: unless it said no.
func (c *Common) FallsBack() bool {
	return c.Hecate == nil || c.Hecate.Fallback == nil || *c.Hecate.Fallback
}

// StreamOptions adjusts a stream.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// ChatRequest is the body of POST /v1/chat/completions.
type ChatRequest struct {
	Common
	Messages            []Message         `json:"messages"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	Logprobs            bool              `json:"logprobs"`
	TopLogprobs         int               `json:"top_logprobs"`
	ResponseFormat      *ResponseFormat   `json:"response_format"`
	Tools               []Tool            `json:"tools"`
	ToolChoice          ToolChoice        `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	Functions           []json.RawMessage `json:"functions"`
	Modalities          []string          `json:"modalities"`
	Audio               json.RawMessage   `json:"audio"`
	WebSearch           json.RawMessage   `json:"web_search_options"`
}

// Message is one turn of a chat.
type Message struct {
	Role         string          `json:"role"`
	Content      Content         `json:"content"`
	Name         string          `json:"name"`
	ToolCalls    []ToolCall      `json:"tool_calls"`
	ToolCallID   string          `json:"tool_call_id"`
	FunctionCall json.RawMessage `json:"function_call"`
}

// CompletionRequest is the body of POST /v1/completions.
type CompletionRequest struct {
	Common
	Prompt   Prompt `json:"prompt"`
	Echo     bool   `json:"echo"`
	Suffix   string `json:"suffix"`
	BestOf   *int   `json:"best_of"`
	Logprobs *int   `json:"logprobs"`
}

// Stops is one stop string or a list of them.
type Stops []string

// UnmarshalJSON takes null, a string or an array of strings.
func (s *Stops) UnmarshalJSON(b []byte) error {
	return oneOrMany(b, (*[]string)(s), "stop")
}

// Prompt is text, token ids, or a list of one of them.
type Prompt struct {
	Text   string
	Tokens []int32 // when given as ids; Text is empty then
}

// UnmarshalJSON takes a string, [string], [id...] or [[id...]].
func (p *Prompt) UnmarshalJSON(b []byte) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	var text []string
	if oneOrMany(b, &text, "prompt") == nil {
		return p.takeOnly(len(text), func() { p.Text = text[0] })
	}
	var ids []int32
	if json.Unmarshal(b, &ids) == nil {
		p.Tokens = ids
		return nil
	}
	var nested [][]int32
	if json.Unmarshal(b, &nested) == nil {
		return p.takeOnly(len(nested), func() { p.Tokens = append([]int32{}, nested[0]...) })
	}
	return BadRequest("prompt", "invalid_type", "'prompt' must be a string or an array of token ids.")
}

// takeOnly takes the one prompt of a list. Of none, an empty prompt is left for
// the model's vocabulary to refuse.
func (p *Prompt) takeOnly(n int, take func()) error {
	switch n {
	case 0:
		p.Tokens = []int32{}
	case 1:
		take()
	default:
		return BadRequest("prompt", "unsupported_value", "'prompt' must be one prompt here; send several as several requests.")
	}
	return nil
}

func oneOrMany(b []byte, out *[]string, param string) error {
	if bytes.Equal(b, []byte("null")) {
		return nil
	}
	var one string
	if json.Unmarshal(b, &one) == nil {
		*out = []string{one}
		return nil
	}
	var many []string
	if json.Unmarshal(b, &many) != nil {
		return BadRequest(param, "invalid_type", "'%s' must be a string or an array of strings.", param)
	}
	*out = many
	return nil
}

// Content is the text of a message, given as a string or as text parts.
type Content struct {
	Text  string
	Given bool // false: null or absent
}

// UnmarshalJSON takes null, a string, or an array of {"type":"text"} parts.
func (c *Content) UnmarshalJSON(b []byte) error {
	var text *string
	if json.Unmarshal(b, &text) == nil {
		if text != nil {
			*c = Content{*text, true}
		}
		return nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(b, &parts) != nil {
		return BadRequest("messages", "invalid_type", "A message's 'content' must be a string or an array of parts.")
	}
	var all strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return BadRequest("messages", "unsupported_value", "A message's content part has the type %q; only text is understood.", p.Type)
		}
		all.WriteString(p.Text)
	}
	*c = Content{all.String(), true}
	return nil
}

// DecodeChat reads and checks a chat request.
func DecodeChat(body []byte) (*ChatRequest, *Error) {
	r := &ChatRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, decodeFault(err)
	}
	return r, firstOf(r.check(), r.Common.check())
}

// DecodeCompletion reads and checks a completion request.
func DecodeCompletion(body []byte) (*CompletionRequest, *Error) {
	r := &CompletionRequest{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, decodeFault(err)
	}
	return r, firstOf(r.check(), r.Common.check())
}

func firstOf(faults ...*Error) *Error {
	for _, f := range faults {
		if f != nil {
			return f
		}
	}
	return nil
}

func (r *ChatRequest) check() *Error {
	switch {
	case len(r.Messages) == 0:
		return BadRequest("messages", "missing_required_parameter", "'messages' must hold at least one message.")
	case len(r.Messages) > MaxMessages:
		return BadRequest("messages", "invalid_value", "'messages' holds %d messages, at most %d are taken.", len(r.Messages), MaxMessages)
	case given(r.Audio) || slices.ContainsFunc(r.Modalities, func(m string) bool { return m != "text" }):
		return BadRequest("modalities", "unsupported_value", "Only text is generated by this server.")
	case given(r.WebSearch):
		return BadRequest("web_search_options", "unsupported_parameter", "This server does not search the web.")
	case r.TopLogprobs > 0 && !r.Logprobs:
		return BadRequest("top_logprobs", "invalid_value", "'top_logprobs' needs 'logprobs' to be true.")
	}
	if err := firstOf(r.ResponseFormat.check(), r.checkTools()); err != nil {
		return err
	}
	for i := range r.Messages {
		if err := firstOf(r.Messages[i].check(i), r.Messages[i].checkCalls(i)); err != nil {
			return err
		}
	}
	if r.MaxCompletionTokens != nil {
		r.MaxTokens = r.MaxCompletionTokens
		return atLeastOne("max_completion_tokens", r.MaxTokens)
	}
	return nil
}

func (m *Message) check(i int) *Error {
	switch m.Role {
	case "system", "developer", "user", "assistant", "tool":
	default:
		return BadRequest("messages", "invalid_value", "'messages[%d].role' is %q, want system, developer, user, assistant or tool.", i, m.Role)
	}
	if !m.Content.Given && m.Role != "assistant" {
		return BadRequest("messages", "missing_required_parameter", "'messages[%d].content' is missing.", i)
	}
	return nil
}

// given says that an optional value of any shape is there.
func given(v json.RawMessage) bool { return len(v) > 0 && !bytes.Equal(v, []byte("null")) }

func atLeastOne(param string, n *int) *Error {
	if n != nil && *n < 1 {
		return BadRequest(param, "invalid_value", "'%s' is %d, want at least 1.", param, *n)
	}
	return nil
}

func (r *CompletionRequest) check() *Error {
	switch {
	case r.Suffix != "":
		return BadRequest("suffix", "unsupported_parameter", "'suffix' is not supported by this server.")
	case r.BestOf != nil && *r.BestOf != r.Choices():
		return BadRequest("best_of", "unsupported_value", "'best_of' is %d; this server returns all that it generates, so it must equal 'n', %d.", *r.BestOf, r.Choices())
	case r.Logprobs != nil && (*r.Logprobs < 0 || *r.Logprobs > sampling.MaxTopLogprobs):
		return BadRequest("logprobs", "invalid_value", "'logprobs' is %d, want 0 to %d.", *r.Logprobs, sampling.MaxTopLogprobs)
	}
	return nil
}

func (c *Common) check() *Error {
	if c.Model == "" {
		return BadRequest("model", "missing_required_parameter", "'model' is missing.")
	}
	if err := atLeastOne("max_tokens", c.MaxTokens); err != nil {
		return err
	}
	if n := c.Choices(); n < 1 || n > MaxChoices {
		return BadRequest("n", "invalid_value", "'n' is %d, want 1 to %d.", n, MaxChoices)
	}
	if c.StreamOptions != nil && !c.Stream {
		return BadRequest("stream_options", "invalid_value", "'stream_options' needs 'stream' to be true.")
	}
	if len(c.Stop) > MaxStops {
		return BadRequest("stop", "invalid_value", "'stop' holds %d strings, at most %d are taken.", len(c.Stop), MaxStops)
	}
	for _, s := range c.Stop {
		if s == "" || len(s) > MaxStopSize {
			return BadRequest("stop", "invalid_value", "A stop string of %d bytes, want 1 to %d.", len(s), MaxStopSize)
		}
	}
	if _, err := c.Params(0); err != nil {
		return err
	}
	return nil
}

// Choices is n, 1 when absent.
func (c *Common) Choices() int {
	if c.N == nil {
		return 1
	}
	return *c.N
}

// IncludeUsage says whether a stream ends with a usage chunk.
func (c *Common) IncludeUsage() bool { return c.StreamOptions != nil && c.StreamOptions.IncludeUsage }

// FixSeed draws a seed for a request that has none, so that every later use of
// Params agrees.
func (c *Common) FixSeed() {
	if c.Seed == nil {
		s := rand.Int64()
		c.Seed = &s
	}
}

// Params gives the sampling parameters of one choice. Temperature is 1 when
// absent, as with OpenAI; choices beyond the first draw other random numbers.
func (c *Common) Params(choice int) (sampling.Params, *Error) {
	p := sampling.Params{
		Temperature: 1, TopK: c.TopK, MinP: c.MinP,
		PresencePenalty: c.PresencePenalty, FrequencyPenalty: c.FrequencyPenalty, RepetitionPenalty: c.RepetitionPenalty,
	}
	if c.Temperature != nil {
		p.Temperature = *c.Temperature
	}
	if c.TopP != nil {
		p.TopP = *c.TopP
	}
	if c.Seed != nil {
		p.Seed = uint64(*c.Seed)
	}
	p.Seed += uint64(choice) * 0x9E3779B97F4A7C15
	for id, bias := range c.LogitBias {
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil || n < 0 || n > math.MaxInt32 {
			return p, BadRequest("logit_bias", "invalid_value", "'logit_bias' has the key %q, want a token id.", id)
		}
		if p.LogitBias == nil {
			p.LogitBias = map[int32]float32{}
		}
		p.LogitBias[int32(n)] = bias
	}
	if err := p.Validate(); err != nil {
		return p, samplingFault(err)
	}
	return p, nil
}

// Params adds what only chat requests can ask for.
func (r *ChatRequest) Params(choice int) (sampling.Params, *Error) {
	p, err := r.Common.Params(choice)
	if err != nil {
		return p, err
	}
	p.Logprobs, p.TopLogprobs = r.Logprobs, r.TopLogprobs
	if err := p.Validate(); err != nil {
		return p, samplingFault(err)
	}
	return p, nil
}

// Params adds what only completion requests can ask for.
func (r *CompletionRequest) Params(choice int) (sampling.Params, *Error) {
	p, err := r.Common.Params(choice)
	if err == nil && r.Logprobs != nil {
		p.Logprobs, p.TopLogprobs = true, *r.Logprobs
	}
	return p, err
}
