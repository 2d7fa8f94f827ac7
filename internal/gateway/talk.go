package gateway

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"

	"hecate/internal/gateway/calls"
	"hecate/internal/gateway/openai"
	"hecate/internal/sampling"
	"hecate/internal/sampling/grammar"
	"hecate/internal/stage"
)

// chatWish puts a request to a model.
func (g *Gateway) chatWish(ctx context.Context, id string, req *openai.ChatRequest, model *Model) (wish, *openai.Error) {
	tools := req.CallableTools()
	style, fault := styleFor(req, model)
	if fault != nil {
		return wish{}, fault
	}
	shape, fault := shapeOf(req, style, tools)
	if fault != nil {
		return wish{}, fault
	}
	prompt, err := model.Text.EncodeChat(ctx, turns(req.Messages), toolsJSON(tools))
	if err != nil {
		return wish{}, openai.BadRequest("messages", "invalid_value", "The messages do not fit this model's chat template: %s.", err)
	}
	out := wish{id: id, model: model, prompt: prompt, maxTokens: req.MaxTokens, stops: req.Stop, style: style, callable: namesOf(tools)}
	for i := range req.Choices() {
		p, fault := req.Params(i)
		if fault != nil {
			return out, fault
		}
		p.Grammar = shape
		out.params = append(out.params, p)
	}
	out.params, fault = checkBias(out.params, model)
	return out, fault
}

// styleFor is how the model writes calls, where the request has to do with them.
func styleFor(req *openai.ChatRequest, m *Model) (calls.Style, *openai.Error) {
	history := slices.ContainsFunc(req.Messages, func(t openai.Message) bool { return t.Role == "tool" || len(t.ToolCalls) > 0 })
	if len(req.Tools) == 0 && !history {
		return calls.Style{}, nil
	}
	style := m.Text.Calls()
	if style.Kind == calls.None && len(req.CallableTools()) > 0 {
		return style, openai.BadRequest("tools", "unsupported_parameter", "The model %q cannot call tools: its chat template does not know them, or writes calls in a way that this server does not.", m.Record.ID)
	}
	if style.Kind == calls.None && history {
		return style, openai.BadRequest("messages", "unsupported_value", "The messages hold calls of tools, but the chat template of the model %q does not know them.", m.Record.ID)
	}
	return style, nil
}

// shapeOf is the grammar of the answers that a request admits; nil: any text.
func shapeOf(req *openai.ChatRequest, style calls.Style, tools []openai.Tool) (*grammar.Grammar, *openai.Error) {
	if shape, fault := req.ResponseFormat.Shape(); shape != nil || fault != nil {
		return shape, fault
	}
	if len(tools) == 0 {
		return nil, nil
	}
	named := req.ToolChoice.Mode == openai.ToolsNamed
	return style.Shape(calls.Wish{Tools: tools, Must: req.MustCall(), Parallel: req.Parallel() && !named})
}

func toolsJSON(tools []openai.Tool) json.RawMessage {
	if len(tools) == 0 {
		return nil
	}
	b, err := json.Marshal(tools)
	if err != nil {
		panic("BUG: tools that cannot be written: " + err.Error())
	}
	return b
}

func namesOf(tools []openai.Tool) (names []string) {
	for _, t := range tools {
		names = append(names, t.Function.Name)
	}
	return names
}

func turns(messages []openai.Message) []Turn {
	out := make([]Turn, len(messages))
	for i, m := range messages {
		role := m.Role
		if role == "developer" { // OpenAI's newer name for it
			role = "system"
		}
		out[i] = Turn{Role: role, Content: m.Content.Text, Name: m.Name, CallID: m.ToolCallID}
		if len(m.ToolCalls) > 0 {
			b, err := json.Marshal(m.ToolCalls)
			if err != nil {
				panic("BUG: calls that cannot be written: " + err.Error())
			}
			out[i].Calls = b
		}
	}
	return out
}

// checkBias refuses token ids that the model does not have.
func checkBias(params []sampling.Params, m *Model) ([]sampling.Params, *openai.Error) {
	for id := range params[0].LogitBias {
		if int(id) >= m.Text.Vocabulary() {
			return nil, openai.BadRequest("logit_bias", "invalid_value", "'logit_bias' names token %d, but this model has %d.", id, m.Text.Vocabulary())
		}
	}
	return params, nil
}

// ear hears calls in the text of one choice. A nil ear hears text alone.
type ear struct {
	style  calls.Style
	parser *calls.Parser
}

// ear is what each choice of a wish listens with.
func (w wish) ear() *ear {
	if len(w.callable) == 0 || w.style.Kind == calls.None {
		return nil
	}
	return &ear{style: w.style, parser: calls.NewParser(w.style, w.callable)}
}

// hear takes what a token added.
func (e *ear) hear(token stage.Token, text string) (string, []openai.CallDelta) {
	if e == nil {
		return text, nil
	}
	var events []calls.Event
	if m := e.style.Marker; m != nil && *m == token.ID {
		events = e.parser.Marker()
	}
	return e.word(append(events, e.parser.Add(text)...))
}

// rest gives what was held back, at the end of an answer.
func (e *ear) rest(text string) (string, []openai.CallDelta) {
	if e == nil {
		return text, nil
	}
	return e.word(append(e.parser.Add(text), e.parser.End()...))
}

// called says that the answer has a call.
func (e *ear) called() bool { return e != nil && e.parser.Calls() > 0 }

func (e *ear) word(events []calls.Event) (string, []openai.CallDelta) {
	var text strings.Builder
	var deltas []openai.CallDelta
	for _, ev := range events {
		if ev.Call < 0 {
			text.WriteString(ev.Text)
			continue
		}
		d := openai.CallDelta{Index: ev.Call, Function: openai.FunctionDelta{Name: ev.Name, Arguments: ev.Arguments}}
		if ev.Name != "" {
			d.ID, d.Type = e.newID(), "function"
		}
		deltas = append(deltas, d)
	}
	return text.String(), deltas
}

// newID names a call. Mistral's templates take nine letters and digits, and
// nothing else.
func (e *ear) newID() string {
	if e.style.Kind == calls.Bracket {
		return strings.ToLower(rand.Text())[:9]
	}
	return newID("call_")
}

// gather puts the deltas of a choice's calls together.
func gather(list []openai.ToolCall, deltas []openai.CallDelta) []openai.ToolCall {
	for _, d := range deltas {
		if d.Index == len(list) {
			list = append(list, openai.ToolCall{ID: d.ID, Type: d.Type, Function: openai.CallFunction{Name: d.Function.Name}})
		}
		list[d.Index].Function.Arguments += d.Function.Arguments
	}
	return list
}
