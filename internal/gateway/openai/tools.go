package openai

import (
	"encoding/json"
	"regexp"
)

// Limits of tools.
const (
	MaxTools     = 128
	maxToolName  = 64
	maxToolCalls = 128 // of one message
)

// Tool is a function that the model may call.
type Tool struct {
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// Function is a tool's name and the schema of its arguments.
type Function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      bool            `json:"strict,omitempty"`
}

// ToolCall is a call that the assistant made.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function CallFunction `json:"function"`
}

// CallFunction is what is called, with which arguments: JSON, as text.
type CallFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Modes of ToolChoice.
const (
	ToolsAuto     = "auto"     // the model decides
	ToolsNone     = "none"     // no calls
	ToolsRequired = "required" // at least one call
	ToolsNamed    = "function" // one call of ToolChoice.Name
)

// ToolChoice says whether tools are to be called.
type ToolChoice struct {
	Mode string // "" where it was left out: auto
	Name string // with ToolsNamed
}

// UnmarshalJSON takes null, a mode, or {"type":"function","function":{"name"}}.
func (c *ToolChoice) UnmarshalJSON(b []byte) error {
	var mode *string
	if json.Unmarshal(b, &mode) == nil {
		if mode == nil {
			return nil
		}
		switch *mode {
		case ToolsAuto, ToolsNone, ToolsRequired:
			c.Mode = *mode
			return nil
		}
		return BadRequest("tool_choice", "invalid_value", "'tool_choice' is %q, want none, auto, required, or a function.", *mode)
	}
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(b, &named) != nil {
		return BadRequest("tool_choice", "invalid_type", "'tool_choice' must be none, auto, required, or an object that names a function.")
	}
	if named.Type != "function" || named.Function.Name == "" {
		return BadRequest("tool_choice", "unsupported_value", "'tool_choice' has the type %q; only a function with a name is understood.", named.Type)
	}
	c.Mode, c.Name = ToolsNamed, named.Function.Name
	return nil
}

// Parallel says whether several calls may come in one answer.
func (r *ChatRequest) Parallel() bool { return r.ParallelToolCalls == nil || *r.ParallelToolCalls }

// CallableTools are the tools that this answer may call.
func (r *ChatRequest) CallableTools() []Tool {
	switch r.ToolChoice.Mode {
	case ToolsNone:
		return nil
	case ToolsNamed:
		for _, t := range r.Tools {
			if t.Function.Name == r.ToolChoice.Name {
				return []Tool{t}
			}
		}
	}
	return r.Tools
}

// MustCall says that an answer without a call is none.
func (r *ChatRequest) MustCall() bool {
	return r.ToolChoice.Mode == ToolsRequired || r.ToolChoice.Mode == ToolsNamed
}

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

func (r *ChatRequest) checkTools() *Error {
	if len(r.Functions) > 0 {
		return BadRequest("functions", "unsupported_parameter", "'functions' is not supported by this server; use 'tools'.")
	}
	if len(r.Tools) > MaxTools {
		return BadRequest("tools", "invalid_value", "'tools' holds %d tools, at most %d are taken.", len(r.Tools), MaxTools)
	}
	names := map[string]bool{}
	for i, t := range r.Tools {
		switch name := t.Function.Name; {
		case t.Type != "function":
			return BadRequest("tools", "unsupported_value", "'tools[%d].type' is %q; only functions can be called.", i, t.Type)
		case !toolName.MatchString(name):
			return BadRequest("tools", "invalid_value", "'tools[%d].function.name' is %q, want 1 to %d letters, digits, dots, dashes or underscores.", i, name, maxToolName)
		case names[name]:
			return BadRequest("tools", "invalid_value", "'tools' names the function %q twice.", name)
		}
		names[t.Function.Name] = true
	}
	switch c := r.ToolChoice; {
	case r.MustCall() && len(r.Tools) == 0:
		return BadRequest("tool_choice", "invalid_value", "'tool_choice' asks for a call, but there are no 'tools'.")
	case c.Mode == ToolsNamed && !names[c.Name]:
		return BadRequest("tool_choice", "invalid_value", "'tool_choice' names the function %q, which is not among 'tools'.", c.Name)
	case r.MustCall() && r.ResponseFormat.shaped():
		return BadRequest("response_format", "unsupported_value", "'response_format' shapes text, but 'tool_choice' asks for a call and no text.")
	}
	return nil
}

// checkCalls checks what a message of the history says of calls.
func (m *Message) checkCalls(i int) *Error {
	if given(m.FunctionCall) {
		return BadRequest("messages", "unsupported_value", "'messages[%d].function_call' is not supported by this server; use 'tool_calls'.", i)
	}
	if len(m.ToolCalls) > 0 && m.Role != "assistant" {
		return BadRequest("messages", "invalid_value", "'messages[%d]' has 'tool_calls', but its role is %q.", i, m.Role)
	}
	if len(m.ToolCalls) > maxToolCalls {
		return BadRequest("messages", "invalid_value", "'messages[%d].tool_calls' holds %d calls, at most %d are taken.", i, len(m.ToolCalls), maxToolCalls)
	}
	for j, c := range m.ToolCalls {
		switch {
		case c.Type != "function" && c.Type != "":
			return BadRequest("messages", "unsupported_value", "'messages[%d].tool_calls[%d].type' is %q; only functions can be called.", i, j, c.Type)
		case c.Function.Name == "":
			return BadRequest("messages", "missing_required_parameter", "'messages[%d].tool_calls[%d].function.name' is missing.", i, j)
		case !isObject(c.Function.Arguments):
			return BadRequest("messages", "invalid_value", "'messages[%d].tool_calls[%d].function.arguments' is not a JSON object in a string.", i, j)
		}
	}
	if m.Role == "tool" && m.ToolCallID == "" {
		return BadRequest("messages", "missing_required_parameter", "'messages[%d].tool_call_id' is missing: a tool's message names the call that it answers.", i)
	}
	return nil
}

func isObject(text string) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &o) == nil && o != nil
}
