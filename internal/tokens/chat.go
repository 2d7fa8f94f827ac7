package tokens

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hecate/internal/tokens/jinja"
)

// Message is one message of a conversation. All its fields may come from anyone.
type Message struct {
	Role       string          `json:"role"` // one of Roles
	Content    string          `json:"content"`
	Name       string          `json:"name,omitempty"`              // who speaks
	Reasoning  string          `json:"reasoning_content,omitempty"` // the assistant's thoughts before its answer
	ToolCalls  json.RawMessage `json:"tool_calls,omitempty"`        // the assistant's calls, OpenAI's array
	ToolCallID string          `json:"tool_call_id,omitempty"`      // which call a tool message answers
}

// Roles are the roles that messages may have. "developer" is given to templates
// as "system" unless they know the word.
var Roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// Chat is a conversation to encode.
type Chat struct {
	Messages []Message
	// Generate adds the beginning of the assistant's next message.
	Generate bool
	// Tools is OpenAI's array of tools, for templates that have them; optional.
	Tools json.RawMessage
	// Vars are more variables for the template, such as enable_thinking; they
	// count as trusted, so texts among them must not come from a request.
	Vars map[string]any
	// Now is the time that templates may write; zero means now.
	Now time.Time
}

// ErrInvalidChat is what errors.Is finds when a conversation is not acceptable:
// its shape is wrong, or the template refused it (then errors.As finds a
// *jinja.RaisedError).
var ErrInvalidChat = errors.New("invalid conversation")

// TemplateInfo says which chat template is in use.
type TemplateInfo struct {
	// Name is "gguf" for the file's own, else that of a named template of ours:
	// chatml, llama3, gemma or mistral.
	Name string
	// Problem is why the file's own template is not in use; nil if it is.
	Problem error
}

// chatTemplate is the template in use.
type chatTemplate struct {
	TemplateInfo
	jinja     *jinja.Template
	developer bool // the template knows that role
}

var errNoTemplate = errors.New("the file has no chat template")

// newChatTemplate takes the file's own template if it works, else a named one.
func newChatTemplate(s *Source) chatTemplate {
	problem := errNoTemplate
	if s.ChatTemplate != "" {
		var own *jinja.Template
		own, problem = jinja.Parse(s.ChatTemplate)
		t := chatTemplate{TemplateInfo{Name: "gguf"}, own, strings.Contains(s.ChatTemplate, "developer")}
		if problem == nil {
			problem = t.try(s)
		}
		if problem == nil {
			return t
		}
	}
	n := namedFor(s)
	named, err := jinja.Parse(n.source)
	if err != nil {
		panic("BUG: named template " + n.name + ": " + err.Error())
	}
	return chatTemplate{TemplateInfo{n.name, problem}, named, false}
}

// try renders a small conversation: a template that fails on it, or swallows its
// words, is not understood rightly.
func (c *chatTemplate) try(s *Source) error {
	const probe = "hello there"
	chat := Chat{Messages: []Message{{Role: "user", Content: probe}}, Generate: true, Now: time.Unix(0, 0)}
	out, err := c.render(context.Background(), s, chat)
	var raised *jinja.RaisedError
	switch {
	case errors.As(err, &raised):
		return nil
	case err != nil:
		return err
	case !strings.Contains(out.S, probe):
		return errors.New("the template leaves out what the user says")
	}
	return nil
}

// Template says which chat template is in use, and why not the file's own.
func (t *Tokenizer) Template() TemplateInfo { return t.template.TemplateInfo }

// EncodeChat encodes a conversation through the model's chat template. Control
// tokens come from the template alone: whatever messages, names, calls and tools
// contain is ordinary text.
func (t *Tokenizer) EncodeChat(ctx context.Context, c Chat) ([]int32, error) {
	text, err := t.template.render(ctx, &t.source, c)
	if err != nil {
		return nil, err
	}
	if err := checkLength(text.S); err != nil {
		return nil, err
	}
	var out []int32
	if t.vocab.addBOS {
		out = append(out, t.vocab.bos)
	}
	n := len(out)
	out = t.encode(text, out)
	if n > 0 && len(out) > n && out[n] == t.vocab.bos {
		out = out[n:] // the template wrote it too
	}
	return out, nil
}

// RenderChat returns the text that EncodeChat encodes, to show it to people. It
// no longer tells control tokens from text that looks like them.
func (t *Tokenizer) RenderChat(ctx context.Context, c Chat) (string, error) {
	text, err := t.template.render(ctx, &t.source, c)
	return text.S, err
}

func (c *chatTemplate) render(ctx context.Context, s *Source, chat Chat) (jinja.Text, error) {
	vars, err := c.vars(s, chat)
	if err != nil {
		return jinja.Text{}, err
	}
	now := chat.Now
	if now.IsZero() {
		now = time.Now()
	}
	limited, cancel := context.WithTimeout(ctx, templateTime)
	defer cancel()
	text, err := c.jinja.Render(limited, jinja.Input{Vars: vars, Now: now})
	var raised *jinja.RaisedError
	switch {
	case errors.As(err, &raised):
		return text, fmt.Errorf("%w: %w", ErrInvalidChat, err)
	case err != nil:
		return text, fmt.Errorf("render chat template: %w", err)
	}
	return text, nil
}

// vars builds what a template sees, as Hugging Face names it.
func (c *chatTemplate) vars(s *Source, chat Chat) (map[string]jinja.Value, error) {
	vars := map[string]jinja.Value{
		"add_generation_prompt": chat.Generate,
		"bos_token":             s.tokenText(s.BOS),
		"eos_token":             s.tokenText(s.EOS),
		"unk_token":             s.tokenText(s.Unknown),
		"tools":                 nil,
		"documents":             nil,
	}
	for k, v := range chat.Vars {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("template variable %q: %w", k, err)
		}
		if vars[k], err = jinja.FromJSON(raw, 0); err != nil {
			return nil, fmt.Errorf("template variable %q: %w", k, err)
		}
	}
	messages, err := c.messages(chat.Messages)
	if err != nil {
		return nil, err
	}
	vars["messages"] = messages
	if len(chat.Tools) > 0 {
		if vars["tools"], err = jinja.FromJSON(chat.Tools, byOutsider); err != nil {
			return nil, fmt.Errorf("%w: tools: %w", ErrInvalidChat, err)
		}
	}
	return vars, nil
}

func (s *Source) tokenText(id *int32) jinja.Value {
	if id == nil {
		return jinja.Trusted("")
	}
	return jinja.Trusted(s.Tokens[*id])
}

func (c *chatTemplate) messages(in []Message) (jinja.Value, error) {
	if len(in) == 0 || len(in) > MaxMessages {
		return nil, fmt.Errorf("%w: %d messages, must be 1 to %d", ErrInvalidChat, len(in), MaxMessages)
	}
	total := 0
	list := jinja.NewList()
	for i := range in {
		m := &in[i]
		if total += len(m.Content) + len(m.Reasoning) + len(m.ToolCalls) + len(m.Name) + len(m.ToolCallID); total > MaxTextBytes {
			return nil, fmt.Errorf("%w: messages of more than %d bytes", ErrTooLong, MaxTextBytes)
		}
		v, err := c.message(m)
		if err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", ErrInvalidChat, i, err)
		}
		list.Items = append(list.Items, v)
	}
	return list, nil
}

func (c *chatTemplate) message(m *Message) (jinja.Value, error) {
	// Templates compare roles and write them between control tokens, so only
	// known words may be roles.
	if !slices.Contains(Roles, m.Role) {
		return nil, fmt.Errorf("role %q, must be one of %s", m.Role, strings.Join(Roles, ", "))
	}
	role, mark := m.Role, byOutsider
	switch {
	case role == "developer" && !c.developer:
		role = "system"
	case role == "assistant":
		mark = byAssistant
	}
	d := jinja.NewDict()
	set := func(key, text string, mark jinja.Mark) {
		d.Set(jinja.Trusted(key), jinja.Marked(strings.ToValidUTF8(text, "\ufffd"), mark))
	}
	set("role", role, 0)
	set("content", m.Content, mark)
	for _, f := range [...]struct{ key, text string }{{"name", m.Name}, {"reasoning_content", m.Reasoning}, {"tool_call_id", m.ToolCallID}} {
		if f.text != "" {
			set(f.key, f.text, mark)
		}
	}
	if len(m.ToolCalls) > 0 {
		calls, err := toolCalls(m.ToolCalls, mark)
		if err != nil {
			return nil, fmt.Errorf("tool_calls: %w", err)
		}
		d.Set(jinja.Trusted("tool_calls"), calls)
	}
	return d, nil
}

// toolCalls reads OpenAI's calls. Their arguments are JSON in a string; templates
// want the object.
func toolCalls(raw json.RawMessage, mark jinja.Mark) (jinja.Value, error) {
	v, err := jinja.FromJSON(raw, mark)
	if err != nil {
		return nil, err
	}
	list, ok := v.(*jinja.List)
	if !ok {
		return nil, errors.New("must be an array")
	}
	for _, call := range list.Items {
		d, ok := call.(*jinja.Dict)
		if !ok {
			return nil, errors.New("must be an array of objects")
		}
		f, _ := d.Get("function")
		function, ok := f.(*jinja.Dict)
		if !ok {
			continue
		}
		a, _ := function.Get("arguments")
		if text, ok := a.(jinja.Text); ok {
			if args, err := jinja.FromJSON([]byte(text.S), mark); err == nil {
				function.Set(jinja.Trusted("arguments"), args)
			}
		}
	}
	return list, nil
}
