package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"hecate/internal/control"
	"hecate/internal/gateway/calls"
	"hecate/internal/gateway/openai"
	"hecate/internal/stage"
	"hecate/internal/tokens"
)

// speaking is a language of bytes with a chat template of a real family.
func speaking(t *testing.T, family string) language {
	t.Helper()
	template, err := os.ReadFile("../tokens/testdata/chat/" + family + ".jinja")
	if err != nil {
		t.Fatal(err)
	}
	s := tokens.Source{Model: "llama", Tokens: []string{"<unk>", "<s>", "</s>"}, Types: []tokens.Type{tokens.TypeUnknown, tokens.TypeControl, tokens.TypeControl}, ChatTemplate: string(template)}
	for b := range 256 {
		s.Tokens, s.Types = append(s.Tokens, fmt.Sprintf("<0x%02X>", b)), append(s.Types, tokens.TypeByte)
	}
	s.Scores = make([]float32, len(s.Tokens))
	bos, eos := int32(1), int32(2)
	s.BOS, s.EOS = &bos, &eos
	tok, err := tokens.New(s)
	if err != nil {
		t.Fatal(err)
	}
	if p := tok.Template().Problem; p != nil {
		t.Fatalf("%s: %v", family, p)
	}
	return language{tok, styleOf(tok)}
}

func chatWith(t *testing.T, body string) *openai.ChatRequest {
	t.Helper()
	r, fault := openai.DecodeChat([]byte(body))
	if fault != nil {
		t.Fatal(fault)
	}
	return r
}

const withTools = `{"model":"m","tools":[{"type":"function","function":{"name":"get_weather","description":"Looks outside.","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],
	"messages":[{"role":"user","content":"Oslo?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call12345","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}}]},
	{"role":"tool","tool_call_id":"call12345","content":"12 degrees"}]`

// The templates of real families get tools, calls and results, and their way to
// write calls is known.
func TestToolsOfRealFamilies(t *testing.T) {
	for family, kind := range map[string]calls.Kind{"qwen3": calls.Tags, "llama3": calls.Bare, "mistral": calls.Bracket, "chatml": calls.None, "gemma3": calls.None} {
		m := &Model{Record: control.ModelRecord{ID: "m", ContextLength: 4096}, Text: speaking(t, family)}
		m.Record.Spec.ContextTokens = 4096
		if got := m.Text.Calls().Kind; got != kind {
			t.Errorf("%s writes calls in the way %d, want %d", family, got, kind)
		}
		w, fault := (&Gateway{}).chatWish(context.Background(), "id", chatWith(t, withTools+"}"), m)
		if kind == calls.None {
			if fault == nil || *fault.Code != "unsupported_parameter" {
				t.Errorf("%s without tools: %v", family, fault)
			}
			continue
		}
		if fault != nil {
			t.Errorf("%s: %v", family, fault)
			continue
		}
		prompt := strings.ReplaceAll(m.Text.Decode(w.prompt), "\u2581", " ") // this vocabulary has no spaces
		for _, want := range []string{"get_weather", "Oslo", "12 degrees"} {
			if !strings.Contains(prompt, want) {
				t.Errorf("%s: the prompt leaves out %q: %s", family, want, prompt)
			}
		}
		if w.params[0].Grammar != nil || len(w.callable) != 1 {
			t.Errorf("%s, auto: shaped %v, callable %v", family, w.params[0].Grammar != nil, w.callable)
		}
		none, fault := (&Gateway{}).chatWish(context.Background(), "id", chatWith(t, strings.Replace(withTools, `"Looks outside."`, `"Looks outside."`, 1)+`,"tool_choice":"none"}`), m)
		if fault != nil || strings.Contains(m.Text.Decode(none.prompt), "outside") || none.ear() != nil {
			t.Errorf("%s, none: %v, the tools are shown", family, fault)
		}
		must, fault := (&Gateway{}).chatWish(context.Background(), "id", chatWith(t, withTools+`,"tool_choice":"required"}`), m)
		if fault != nil || must.params[0].Grammar == nil {
			t.Errorf("%s, required: %v, shaped %v", family, fault, must.params[0].Grammar != nil)
		}
	}
}

// What a choice hears is put together as clients do it, streamed and whole.
func TestHearingCalls(t *testing.T) {
	w := wish{style: calls.Style{Kind: calls.Bracket}, callable: []string{"f"}}
	e := w.ear()
	var text string
	var list []openai.ToolCall
	hear := func(more string, deltas []openai.CallDelta) {
		text += more
		list = gather(list, deltas)
	}
	for _, piece := range strings.SplitAfter(`Well. [TOOL_CALLS][{"name": "f", "arguments": {"x": [1, 2]}}, {"name": "f", "arguments": {}}]`, " ") {
		hear(e.hear(stage.Token{ID: 5}, piece))
	}
	hear(e.rest(""))
	if text != "Well." || len(list) != 2 || list[0].Function.Arguments != `{"x": [1, 2]}` || list[1].Function.Name != "f" || !e.called() {
		t.Errorf("%q, %+v", text, list)
	}
	for _, c := range list {
		if len(c.ID) != 9 || c.Type != "function" {
			t.Errorf("%+v: Mistral's ids have nine characters", c)
		}
	}
	if list[0].ID == list[1].ID {
		t.Error("two calls of one id")
	}
	var deaf *ear
	if text, deltas := deaf.hear(stage.Token{}, "x"); text != "x" || deltas != nil || deaf.called() {
		t.Error("an answer without tools is heard as it is")
	}
}

func TestAnswerThatOnlyCalls(t *testing.T) {
	for _, c := range []struct {
		m    openai.AnswerMessage
		want string
	}{
		{openai.AnswerMessage{Role: "assistant"}, `"content":""`},
		{openai.AnswerMessage{Role: "assistant", ToolCalls: []openai.ToolCall{{ID: "1"}}}, `"content":null`},
		{openai.AnswerMessage{Role: "assistant", Content: "x", ToolCalls: []openai.ToolCall{{ID: "1"}}}, `"content":"x"`},
	} {
		b, err := json.Marshal(c.m)
		if err != nil || strings.Count(string(b), `"content"`) != 1 || !strings.Contains(string(b), c.want) {
			t.Errorf("%s (%v), want %s", b, err, c.want)
		}
	}
}

// However rows come, and come again, the vector is the same.
func TestBlend(t *testing.T) {
	rows := []float32{1, 2, 3, 4, 5, 7}
	whole := &blend{}
	whole.Collect(0, rows, 2)
	pieces := &blend{}
	pieces.Collect(0, rows[:2], 2)
	pieces.Collect(0, rows[:4], 2)
	pieces.Collect(1, rows[2:], 2)
	a, b := whole.vector(nil), pieces.vector(nil)
	if fmt.Sprint(a) != fmt.Sprint(b) || pieces.Collected() != 3 {
		t.Errorf("%v and %v of %d rows", a, b, pieces.Collected())
	}
	last := &blend{last: true}
	last.Collect(0, rows, 2)
	one := 1
	if v := last.vector(nil); v[0] >= v[1] || last.vector(&one)[0] != 1 {
		t.Errorf("the last row: %v", v)
	}
}
