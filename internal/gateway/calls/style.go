// Package calls knows how models write that they call a tool: it finds the calls
// in an answer while it is written, and says which texts are calls, for answers
// that must be one.
//
// A model's chat template tells which way it was taught. A template that knows
// nothing of tools has no style, and is not given any.
package calls

import (
	"strings"

	"hecate/internal/gateway/openai"
	"hecate/internal/sampling/grammar"
	"hecate/internal/sampling/jsonschema"
)

// Kind is a family of ways to write calls.
type Kind int

// Ways to write calls.
const (
	None    Kind = iota
	Tags         // <tool_call>{"name":..., "arguments":{...}}</tool_call>, as Hermes and Qwen do
	Bare         // the whole answer is {"name":..., "parameters":{...}}, as Llama 3 does
	Bracket      // [TOOL_CALLS][{"name":..., "arguments":{...}}], as Mistral does
)

// Style is how one model writes calls.
type Style struct {
	Kind   Kind
	Marker *int32 // the control token in front of calls, where there is one
	Closer *int32 // and the one behind each
}

const (
	openTag  = "<tool_call>"
	closeTag = "</tool_call>"
	bracket  = "[TOOL_CALLS]"
	pyTag    = "<|python_tag|>"
)

// StyleOf reads a chat template. tokenOf finds a control token by its text.
func StyleOf(template string, tokenOf func(string) (int32, bool)) Style {
	marker := func(text string) *int32 {
		if id, ok := tokenOf(text); ok {
			return &id
		}
		return nil
	}
	switch {
	case !strings.Contains(template, "tools"):
		return Style{}
	case strings.Contains(template, openTag) && !strings.Contains(template, "<function="):
		return Style{Kind: Tags, Marker: marker(openTag), Closer: marker(closeTag)}
	case strings.Contains(template, bracket) && !strings.Contains(template, "[ARGS]"):
		return Style{Kind: Bracket, Marker: marker(bracket)}
	case strings.Contains(template, "<|start_header_id|>") && strings.Contains(template, `"parameters"`):
		return Style{Kind: Bare, Marker: marker(pyTag)}
	}
	return Style{}
}

// mark is the text that a control token in front of calls stands for here.
func (s Style) mark() string {
	switch s.Kind {
	case Tags:
		return openTag
	case Bracket:
		return bracket
	}
	return ""
}

// maxCalls bounds the calls of one answer that must call.
const maxCalls = 16

// Wish is what an answer may or must call.
type Wish struct {
	Tools    []openai.Tool
	Must     bool // at least one call and no text
	Parallel bool // several are fine
}

// Shape is the grammar of the answers that fulfil a wish; nil: any text, in which
// calls may or may not be found.
func (s Style) Shape(w Wish) (*grammar.Grammar, *openai.Error) {
	b := jsonschema.NewBuilder()
	var calls []grammar.Expr
	strict := false
	for _, t := range w.Tools {
		args, fault := arguments(b, t.Function)
		if fault != nil {
			return nil, fault
		}
		strict = strict || t.Function.Strict
		calls = append(calls, s.object(t.Function.Name, args))
	}
	if len(calls) == 0 || !w.Must && (!strict || s.Kind == Bare) {
		return nil, nil
	}
	most := 1
	if w.Parallel && s.Kind != Bare {
		most = maxCalls
	}
	shape := s.several(b.Rule("call", grammar.Alt(calls...)), most)
	if !w.Must {
		shape = s.perhaps(shape)
	}
	g, err := b.Grammar(shape)
	if err != nil {
		return nil, openai.SchemaFault("tools", err)
	}
	return g, nil
}

// arguments are the values of a function's schema. Without strict, a schema that
// cannot be held to asks for any object.
func arguments(b *jsonschema.Builder, f openai.Function) (grammar.Expr, *openai.Error) {
	if len(f.Parameters) == 0 || string(f.Parameters) == "null" {
		return grammar.Text("{}"), nil
	}
	e, err := b.Schema(f.Parameters)
	if err == nil {
		return e, nil
	}
	if f.Strict {
		return e, openai.SchemaFault("tools", err)
	}
	return b.Object(), nil
}

// object is one call as the model was taught to write it.
func (s Style) object(name string, args grammar.Expr) grammar.Expr {
	key := "arguments"
	if s.Kind == Bare {
		key = "parameters"
	}
	return grammar.Seq(grammar.Text(`{"name": "`+name+`", "`+key+`": `), args, grammar.Text("}"))
}

// several is 1 to most calls with what stands around them.
func (s Style) several(call grammar.Expr, most int) grammar.Expr {
	more := func(e grammar.Expr) grammar.Expr {
		if most == 1 {
			return grammar.Expr{}
		}
		return grammar.Times(e, 0, most-1)
	}
	switch s.Kind {
	case Tags:
		end := grammar.Text(closeTag)
		if s.Closer != nil {
			end = grammar.Token(*s.Closer)
		}
		one := grammar.Seq(s.open(), grammar.Text("\n"), call, grammar.Text("\n"), end)
		return grammar.Seq(one, more(grammar.Seq(grammar.Text("\n"), one)))
	case Bracket:
		return grammar.Seq(s.open(), grammar.Text("["), call, more(grammar.Seq(grammar.Text(", "), call)), grammar.Text("]"))
	}
	return call
}

// open is what stands in front of calls: a control token or text.
func (s Style) open() grammar.Expr {
	if s.Marker != nil {
		return grammar.Token(*s.Marker)
	}
	return grammar.Text(s.mark())
}

// perhaps is text, calls, or text before calls.
func (s Style) perhaps(calls grammar.Expr) grammar.Expr {
	return grammar.Seq(grammar.Apart(s.mark()), grammar.Maybe(calls))
}
