package calls

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/gateway/openai"
	"hecate/internal/sampling/grammar"
)

// seen is an answer as a client puts it together.
type seen struct {
	Text  string
	Calls []openai.CallFunction
}

func (s *seen) add(events []Event) {
	for _, e := range events {
		switch {
		case e.Call < 0:
			s.Text += e.Text
			continue
		case e.Call == len(s.Calls):
			s.Calls = append(s.Calls, openai.CallFunction{Name: e.Name})
		}
		s.Calls[e.Call].Arguments += e.Arguments
	}
}

func parse(style Style, pieces ...string) seen {
	p := NewParser(style, []string{"look", "add"})
	var s seen
	for _, piece := range pieces {
		s.add(p.Add(piece))
	}
	s.add(p.End())
	return s
}

var (
	tags     = Style{Kind: Tags}
	bare     = Style{Kind: Bare}
	brackets = Style{Kind: Bracket}
)

func TestParser(t *testing.T) {
	look := openai.CallFunction{Name: "look", Arguments: `{"at": "a } b \" <tool_call> ]"}`}
	add := openai.CallFunction{Name: "add", Arguments: `{"x":[1,{"y":2}]}`}
	for name, c := range map[string]struct {
		style Style
		text  string
		want  seen
	}{
		"text":                    {tags, "Hello <tool> you.\n", seen{Text: "Hello <tool> you.\n"}},
		"one":                     {tags, "<tool_call>\n" + `{"name": "look", "arguments": ` + look.Arguments + "}\n</tool_call>", seen{Calls: []openai.CallFunction{look}}},
		"two, and text":           {tags, "I look.\n\n<tool_call>\n" + `{"name": "look", "arguments": ` + look.Arguments + " }\n</tool_call>\n<tool_call>\n" + `{"arguments":` + add.Arguments + `, "name": "add"}` + "\n</tool_call>\n", seen{Text: "I look.", Calls: []openai.CallFunction{look, add}}},
		"text behind":             {tags, "<tool_call>" + `{"name":"add","arguments":` + add.Arguments + "}</tool_call> done", seen{Text: " done", Calls: []openai.CallFunction{add}}},
		"no arguments":            {tags, `<tool_call>{"name":"look"}</tool_call>`, seen{Calls: []openai.CallFunction{{Name: "look", Arguments: "{}"}}}},
		"no JSON":                 {tags, `a <tool_call>look(3)</tool_call>`, seen{Text: `a<tool_call>look(3)</tool_call>`}},
		"no name":                 {tags, `<tool_call>{"x":1}</tool_call>`, seen{Text: `<tool_call>{"x":1}</tool_call>`}},
		"cut off in arguments":    {tags, `<tool_call>{"name":"add","arguments":{"x":[1,`, seen{Calls: []openai.CallFunction{{Name: "add", Arguments: `{"x":[1,`}}}},
		"cut off in the name":     {tags, `b<tool_call>{"name":"ad`, seen{Text: `b<tool_call>{"name":"ad`}},
		"cut off in the tag":      {tags, `b <tool_ca`, seen{Text: `b <tool_ca`}},
		"bare":                    {bare, ` {"name": "add", "parameters": ` + add.Arguments + `}`, seen{Calls: []openai.CallFunction{add}}},
		"bare, two":               {bare, `{"name": "add", "parameters": ` + add.Arguments + `}; {"name": "look", "parameters": ` + look.Arguments + `}`, seen{Calls: []openai.CallFunction{add, look}}},
		"bare, not a tool":        {bare, `{"name": "Zoe", "parameters": 3} and so on`, seen{Text: `{"name": "Zoe", "parameters": 3} and so on`}},
		"bare, JSON":              {bare, `{"a": {"name": "add"}}`, seen{Text: `{"a": {"name": "add"}}`}},
		"bare, text":              {bare, `The call {"name": "add"}`, seen{Text: `The call {"name": "add"}`}},
		"brackets":                {brackets, `[TOOL_CALLS][{"name": "add", "arguments": ` + add.Arguments + `}, {"name": "look", "arguments": ` + look.Arguments + `}]`, seen{Calls: []openai.CallFunction{add, look}}},
		"brackets, text in front": {brackets, `So: [TOOL_CALLS] [{"name": "add", "arguments": ` + add.Arguments + `}]`, seen{Text: "So:", Calls: []openai.CallFunction{add}}},
	} {
		if diff := cmp.Diff(c.want, parse(c.style, c.text)); name != "no JSON" && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for n := range c.text {
			if diff := cmp.Diff(parse(c.style, c.text), parse(c.style, c.text[:n], c.text[n:])); diff != "" {
				t.Errorf("%s, cut at byte %d: %s", name, n, diff)
			}
		}
		if diff := cmp.Diff(parse(c.style, c.text), parse(c.style, strings.Split(c.text, "")...)); diff != "" {
			t.Errorf("%s, character by character: %s", name, diff)
		}
	}
}

func TestNothingIsLostWithoutCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	bits := []string{"<", "tool", "_call", ">", "<tool_ca", "[TOOL_", "CALLS", "]", " ", "\n", "{", "}", `"`, "x", ":"}
	for range 3000 {
		var text string
		p := NewParser([]Style{tags, bare, brackets}[r.IntN(3)], []string{"look"})
		var s seen
		for range 1 + r.IntN(12) {
			bit := bits[r.IntN(len(bits))]
			text += bit
			s.add(p.Add(bit))
		}
		s.add(p.End())
		if strings.Contains(text, openTag) || strings.Contains(text, bracket) {
			continue
		}
		if s.Text != text || len(s.Calls) > 0 {
			t.Fatalf("%q became %q and %v", text, s.Text, s.Calls)
		}
	}
}

func tools(strict bool) []openai.Tool {
	return []openai.Tool{
		{Type: "function", Function: openai.Function{Name: "look", Strict: strict, Parameters: json.RawMessage(`{"type":"object","properties":{"at":{"enum":["up","down"]}},"required":["at"],"additionalProperties":false}`)}},
		{Type: "function", Function: openai.Function{Name: "now"}},
		{Type: "function", Function: openai.Function{Name: "odd", Parameters: json.RawMessage(`{"type":"object","oneOf":[{}]}`)}},
	}
}

// byteVocabulary: token 0 ends, 1+b is the byte b, then control tokens.
func byteVocabulary(t *testing.T) *grammar.Vocabulary {
	t.Helper()
	tokens := make([][]byte, 300)
	for b := range 256 {
		tokens[1+b] = []byte{byte(b)}
	}
	v, err := grammar.NewVocabulary(tokens, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// drawn is a random text of a grammar, as the parser of calls reads it.
func drawn(t *testing.T, s Style, g *grammar.Grammar, seed uint64) seen {
	t.Helper()
	v := byteVocabulary(t)
	a, err := v.Automaton(g)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	m, p := a.Start(), NewParser(s, []string{"look", "now", "odd"})
	var out seen
	for n := 0; ; n++ {
		mask := m.Allowed(nil)
		var may []int32
		for id := range int32(v.Size()) {
			if mask.Has(id) {
				may = append(may, id)
			}
		}
		id := may[r.IntN(len(may))]
		if n > 300 || mask.Has(0) && r.IntN(2) == 0 {
			for _, want := range []int32{0, 1 + '"', 1 + '}', id} {
				if mask.Has(want) {
					id = want
					break
				}
			}
		}
		if id == 0 || n > 3000 {
			out.add(p.End())
			return out
		}
		if err := m.Take(id); err != nil {
			t.Fatal(err)
		}
		if s.Marker != nil && id == *s.Marker {
			out.add(p.Marker())
			continue
		}
		out.add(p.Add(string(v.Bytes(id))))
	}
}

func TestShapedAnswersAreCalls(t *testing.T) {
	mark, end := int32(290), int32(291)
	for name, s := range map[string]Style{"tags": tags, "tags as tokens": {Kind: Tags, Marker: &mark, Closer: &end}, "bare": bare, "brackets": {Kind: Bracket, Marker: &mark}} {
		g, fault := s.Shape(Wish{Tools: tools(false), Must: true, Parallel: true})
		if fault != nil {
			t.Fatal(fault)
		}
		several := false
		for seed := range uint64(40) {
			got := drawn(t, s, g, seed)
			if got.Text != "" || len(got.Calls) == 0 {
				t.Fatalf("%s: %+v", name, got)
			}
			several = several || len(got.Calls) > 1
			for _, c := range got.Calls {
				var args map[string]any
				if err := json.Unmarshal([]byte(c.Arguments), &args); err != nil {
					t.Errorf("%s: %s %s: %v", name, c.Name, c.Arguments, err)
				}
				switch c.Name {
				case "look":
					if args["at"] != "up" && args["at"] != "down" || len(args) != 1 {
						t.Errorf("%s: look %s", name, c.Arguments)
					}
				case "now":
					if len(args) != 0 {
						t.Errorf("%s: now %s", name, c.Arguments)
					}
				case "odd":
				default:
					t.Errorf("%s: a call of %q", name, c.Name)
				}
			}
		}
		if several == (s.Kind == Bare) {
			t.Errorf("%s: several calls in one answer: %v", name, several)
		}
	}
}

func TestWhenAnswersAreShaped(t *testing.T) {
	for name, c := range map[string]struct {
		style  Style
		wish   Wish
		shaped bool
		fault  bool
	}{
		"free":                      {tags, Wish{Tools: tools(false)[:2]}, false, false},
		"strict":                    {tags, Wish{Tools: tools(true)[:2]}, true, false},
		"strict, bare":              {bare, Wish{Tools: tools(true)[:2]}, false, false},
		"must":                      {tags, Wish{Tools: tools(false), Must: true}, true, false},
		"strict, and no way to be":  {tags, Wish{Tools: []openai.Tool{{Function: openai.Function{Name: "odd", Strict: true, Parameters: tools(true)[2].Function.Parameters}}}}, false, true},
		"no tools that may be used": {tags, Wish{}, false, false},
	} {
		g, fault := c.style.Shape(c.wish)
		if (g != nil) != c.shaped || (fault != nil) != c.fault {
			t.Errorf("%s: shaped %v, fault %v", name, g != nil, fault)
		}
	}
}

func TestStrictCallsInFreeText(t *testing.T) {
	g, fault := tags.Shape(Wish{Tools: tools(true)[:2], Parallel: true})
	if fault != nil {
		t.Fatal(fault)
	}
	v := byteVocabulary(t)
	a, err := v.Automaton(g)
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"":              true,
		"Hello <tool_c": true,
		"I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\":\"up\"}}\n</tool_call>":  true,
		"I look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\":\"out\"}}\n</tool_call>": false,
		"<tool_call>": false,
		"<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>\n<tool_call>\n{\"name\": \"look\", \"arguments\": {\"at\": \"down\"}}\n</tool_call>": true,
	} {
		m, taken := a.Start(), true
		for _, b := range []byte(text) {
			taken = taken && m.Take(1+int32(b)) == nil
		}
		if (taken && m.Done()) != good {
			t.Errorf("%q: admitted %v, want %v", text, taken && m.Done(), good)
		}
	}
}

func TestStyleOf(t *testing.T) {
	tokenOf := func(text string) (int32, bool) { return 7, text == "[TOOL_CALLS]" }
	for template, want := range map[string]Kind{
		"{{ messages }}": None,
		"{% if tools %}{{ tools | tojson }} <tool_call>{% endif %}":                            Tags,
		"{% if tools %}<tool_call><function=name>{% endif %}":                                  None,
		"{% if tools %}[AVAILABLE_TOOLS]{% endif %}[TOOL_CALLS]":                               Bracket,
		"{% if tools %}[TOOL_CALLS]name[ARGS]{% endif %}":                                      None,
		`<|start_header_id|>{% if tools %}{"name": name, "parameters": dictionary}{% endif %}`: Bare,
		"{% if tools %}something else{% endif %}":                                              None,
	} {
		s := StyleOf(template, tokenOf)
		if s.Kind != want || (s.Marker != nil) != (want == Bracket) {
			t.Errorf("%s: %+v, want %d", template, s, want)
		}
	}
}
