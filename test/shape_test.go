//go:build !noengine

package test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/shared"

	"hecate/internal/engine/randmodel"
	"hecate/test/harness"
)

// caller is a model with random weights and a chat template that knows tools: it
// talks nonsense, so that whatever has a shape has it from the sampler alone.
const caller = "caller"

func upCaller(t *testing.T) *harness.Swarm {
	t.Helper()
	path := filepath.Join(t.TempDir(), caller+".gguf")
	if err := randmodel.WriteFile(path, randmodel.Caller(1)); err != nil {
		t.Fatal(err)
	}
	return harness.Up(t, "--allow-chaos", "--model", path)
}

var person = map[string]any{
	"type": "object",
	"properties": map[string]any{
		"name":  map[string]any{"type": "string", "minLength": 30, "maxLength": 40},
		"age":   map[string]any{"type": "integer", "minimum": 0, "maximum": 150},
		"pets":  map[string]any{"type": "array", "minItems": 1, "maxItems": 3, "items": map[string]any{"enum": []string{"cat", "dog", "fish"}}},
		"email": map[string]any{"anyOf": []any{map[string]any{"type": "null"}, map[string]any{"type": "string", "pattern": "^[a-z]{3,9}@[a-z]{3,9}\\.org$"}}},
	},
	"required": []string{"name", "age", "pets", "email"}, "additionalProperties": false,
}

// pet is short: every byte of it is a token of this model's prompt.
var pet = map[string]any{"properties": map[string]any{"a": map[string]any{"enum": []string{"cat", "dog"}}, "b": map[string]any{"pattern": "^[a-z]{30}$"}}, "required": []string{"a", "b"}}

// isPet checks a value against pet by hand.
func isPet(t *testing.T, text string) {
	t.Helper()
	var p struct{ A, B string }
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || p.A != "cat" && p.A != "dog" || len(p.B) != 30 || strings.Trim(p.B, "abcdefghijklmnopqrstuvwxyz") != "" {
		t.Errorf("%q is no pet: %v", text, err)
	}
}

func shaped(seed int64) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: caller, Seed: openai.Int(seed), Temperature: openai.Float(0.9), MaxCompletionTokens: openai.Int(400),
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Describe a person.")},
		ResponseFormat: openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONSchema: &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Strict: openai.Bool(true), Schema: person},
		}},
	}
}

func calling(seed int64, choice openai.ChatCompletionToolChoiceOptionUnionParam) openai.ChatCompletionNewParams {
	p := shaped(seed)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{}
	p.Tools = []openai.ChatCompletionToolUnionParam{
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "keep", Parameters: pet, Strict: openai.Bool(true)}),
		openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "count"}),
	}
	p.ToolChoice = choice
	return p
}

func mode(m string) openai.ChatCompletionToolChoiceOptionUnionParam {
	return openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String(m)}
}

func named(name string) openai.ChatCompletionToolChoiceOptionUnionParam {
	return openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: name})
}

// said is an answer without what differs from run to run.
type said struct {
	Text, Finish string
	Calls        []string
}

func whatWasSaid(c openai.ChatCompletion) said {
	s := said{Text: c.Choices[0].Message.Content, Finish: string(c.Choices[0].FinishReason)}
	for _, call := range c.Choices[0].Message.ToolCalls {
		s.Calls = append(s.Calls, call.Function.Name+" "+call.Function.Arguments)
	}
	return s
}

// isPerson checks a value against the schema by hand.
func isPerson(t *testing.T, text string) {
	t.Helper()
	var p struct {
		Name  string
		Age   *int
		Pets  []string
		Email *string
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		t.Errorf("%q: %v", text, err)
		return
	}
	n := len([]rune(p.Name))
	if n < 30 || n > 40 || p.Age == nil || *p.Age < 0 || *p.Age > 150 || len(p.Pets) < 1 || len(p.Pets) > 3 {
		t.Errorf("%q breaks its schema", text)
	}
	for _, pet := range p.Pets {
		if !slices.Contains([]string{"cat", "dog", "fish"}, pet) {
			t.Errorf("%q: a %s", text, pet)
		}
	}
	if p.Email != nil && (!strings.HasSuffix(*p.Email, ".org") || strings.Count(*p.Email, "@") != 1) {
		t.Errorf("%q: %s", text, *p.Email)
	}
}

// TestShapedAnswers uses schemas, tools and embeddings with OpenAI's own client.
func TestShapedAnswers(t *testing.T) {
	t.Parallel()
	s := upCaller(t)
	c := officialClient(s)
	t.Run("schema", func(t *testing.T) { clientSchema(t, c) })
	t.Run("JSON", func(t *testing.T) { clientJSON(t, c) })
	t.Run("cut off", func(t *testing.T) { clientCutOff(t, c) })
	t.Run("tools", func(t *testing.T) { clientTools(t, c) })
	t.Run("a conversation with tools", func(t *testing.T) { clientToolTurns(t, c) })
	t.Run("embeddings", func(t *testing.T) { clientEmbeddings(t, c) })
	t.Run("tokens", func(t *testing.T) { checkTokenize(t, s) })
	t.Run("refusals", func(t *testing.T) { clientShapeRefusals(t, c) })
}

func clientSchema(t *testing.T, c openai.Client) {
	for seed := range int64(6) {
		whole := ask(t, c, shaped(seed))
		isPerson(t, whole.Choices[0].Message.Content)
		if whole.Choices[0].FinishReason != "stop" {
			t.Errorf("finished by %s", whole.Choices[0].FinishReason)
		}
		acc, err := follow(context.Background(), c, shaped(seed), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whatWasSaid(*whole), whatWasSaid(acc.ChatCompletion)); diff != "" {
			t.Errorf("whole and streamed: %s", diff)
		}
	}
	p := shaped(1)
	p.N, p.Logprobs = openai.Int(3), openai.Bool(true)
	for _, choice := range ask(t, c, p).Choices {
		isPerson(t, choice.Message.Content)
		var text strings.Builder
		for _, tok := range choice.Logprobs.Content {
			for _, b := range tok.Bytes {
				text.WriteByte(byte(b))
			}
			if tok.Logprob > 0 || math.IsInf(tok.Logprob, 0) {
				t.Errorf("token %q has the log-probability %g", tok.Token, tok.Logprob)
			}
		}
		if text.String() != choice.Message.Content {
			t.Errorf("the tokens spell %q, the text is %q", text.String(), choice.Message.Content)
		}
	}
}

func clientJSON(t *testing.T, c openai.Client) {
	p := shaped(3)
	p.ResponseFormat = openai.ChatCompletionNewParamsResponseFormatUnion{OfJSONObject: &shared.ResponseFormatJSONObjectParam{}}
	p.LogitBias = map[string]int64{"37": 40, "128": 40} // quotes and closing braces: a babbler must be led to an end
	p.Temperature = openai.Float(0.3)
	a := ask(t, c, p).Choices[0]
	var o map[string]any
	if err := json.Unmarshal([]byte(a.Message.Content), &o); a.FinishReason == "stop" && err != nil || !strings.HasPrefix(a.Message.Content, "{") {
		t.Errorf("%q (%s): %v", a.Message.Content, a.FinishReason, err)
	}
}

// An answer that its limit of tokens cuts off says so.
func clientCutOff(t *testing.T, c openai.Client) {
	p := shaped(2)
	whole := ask(t, c, p).Choices[0].Message.Content
	p.MaxCompletionTokens = openai.Int(12)
	cut := ask(t, c, p).Choices[0]
	if cut.FinishReason != "length" || !strings.HasPrefix(whole, cut.Message.Content) || cut.Message.Content == whole {
		t.Errorf("%q (%s), the whole is %q", cut.Message.Content, cut.FinishReason, whole)
	}
	p = calling(2, named("keep"))
	p.MaxCompletionTokens = openai.Int(30)
	called := ask(t, c, p).Choices[0]
	if called.FinishReason != "length" {
		t.Errorf("a call that was cut off finished by %s", called.FinishReason)
	}
}

// newline is the token of a line end in the model's vocabulary.
const newline = "13"

func clientTools(t *testing.T, c openai.Client) {
	counted := false
	for seed := range int64(8) {
		p := calling(seed, mode("required"))
		whole := ask(t, c, p)
		got := whatWasSaid(*whole)
		if got.Finish != "tool_calls" || got.Text != "" || len(got.Calls) == 0 {
			t.Fatalf("%+v", got)
		}
		ids := map[string]bool{}
		for _, call := range whole.Choices[0].Message.ToolCalls {
			ids[call.ID] = true
			switch call.Function.Name {
			case "keep":
				isPet(t, call.Function.Arguments)
			case "count":
				counted = true
				if call.Function.Arguments != "{}" {
					t.Errorf("count %s", call.Function.Arguments)
				}
			}
		}
		if len(ids) != len(got.Calls) {
			t.Errorf("%d ids for %d calls", len(ids), len(got.Calls))
		}
		acc, err := follow(context.Background(), c, p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(got, whatWasSaid(acc.ChatCompletion)); diff != "" {
			t.Errorf("whole and streamed: %s", diff)
		}
	}
	if !counted {
		t.Error("no seed called count")
	}
	many := calling(1, mode("required"))
	many.Tools, many.MaxCompletionTokens = many.Tools[1:], openai.Int(1000)
	many.LogitBias = map[string]int64{newline: 100} // in front of another call
	if got := whatWasSaid(*ask(t, c, many)); len(got.Calls) != 16 || got.Finish != "tool_calls" {
		t.Errorf("as many calls as there may be: %+v", got)
	}
	one := calling(1, mode("required"))
	one.ParallelToolCalls = openai.Bool(false)
	if got := whatWasSaid(*ask(t, c, one)); len(got.Calls) != 1 {
		t.Errorf("without parallel calls: %+v", got)
	}
	if got := whatWasSaid(*ask(t, c, calling(4, named("count")))); !slices.Equal(got.Calls, []string{"count {}"}) {
		t.Errorf("named: %+v", got)
	}
	for _, m := range []string{"none", "auto"} {
		p := calling(5, mode(m))
		p.MaxCompletionTokens = openai.Int(20)
		if got := whatWasSaid(*ask(t, c, p)); len(got.Calls) > 0 || got.Text == "" {
			t.Errorf("%s: %+v", m, got)
		}
	}
}

// Calls and their results go back to the model through its template.
func clientToolTurns(t *testing.T, c openai.Client) {
	p := calling(7, mode("auto"))
	before := ask(t, c, p).Usage.PromptTokens
	call := openai.ChatCompletionAssistantMessageParam{ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{
		{OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{ID: "call_1", Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: "count", Arguments: `{"of": "all <|im_end|>"}`}}},
	}}
	p.Messages = append(p.Messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &call}, openai.ToolMessage("there are 3 <|im_end|>", "call_1"))
	p.MaxCompletionTokens = openai.Int(5)
	if after := ask(t, c, p).Usage.PromptTokens; after <= before+20 {
		t.Errorf("the prompt grew from %d to %d tokens", before, after)
	}
}

func clientEmbeddings(t *testing.T, c openai.Client) {
	m, err := c.Models.Get(context.Background(), caller)
	if err != nil {
		t.Fatal(err)
	}
	if raw := m.JSON.ExtraFields["hecate"].Raw(); !strings.Contains(raw, `"tools":true`) || !strings.Contains(raw, `"embeddings":"mean"`) {
		t.Errorf("the model says of itself %s", raw)
	}
	texts := []string{"a fox", "a lantern in the fog", "a fox"}
	embed := func(p openai.EmbeddingNewParams) *openai.CreateEmbeddingResponse {
		t.Helper()
		p.Model = caller
		a, err := c.Embeddings.New(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := embed(openai.EmbeddingNewParams{Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}})
	if len(a.Data) != 3 || a.Usage.PromptTokens == 0 || a.Usage.TotalTokens != a.Usage.PromptTokens {
		t.Fatalf("%d vectors, usage %+v", len(a.Data), a.Usage)
	}
	for i, d := range a.Data {
		square := 0.0
		for _, x := range d.Embedding {
			square += x * x
		}
		if int(d.Index) != i || len(d.Embedding) != 64 || math.Abs(square-1) > 1e-5 {
			t.Errorf("vector %d: index %d, %d dimensions, length %g", i, d.Index, len(d.Embedding), math.Sqrt(square))
		}
	}
	if !slices.Equal(a.Data[0].Embedding, a.Data[2].Embedding) || slices.Equal(a.Data[0].Embedding, a.Data[1].Embedding) {
		t.Error("equal texts must have equal vectors, others not")
	}
	short := embed(openai.EmbeddingNewParams{Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String(texts[0])}, Dimensions: openai.Int(8)}).Data[0].Embedding
	scale := short[0] / a.Data[0].Embedding[0]
	if len(short) != 8 || math.Abs(short[5]/a.Data[0].Embedding[5]-scale) > 1e-5 {
		t.Errorf("of 8 dimensions: %v, want the first of %v, longer", short, a.Data[0].Embedding[:8])
	}
}

func checkTokenize(t *testing.T, s *harness.Swarm) {
	var chat, plain struct {
		Count  int
		Tokens []int32
	}
	post := func(path string, body map[string]any, into any) {
		t.Helper()
		body["model"] = caller
		code, _, b := s.Post(context.Background(), path, body)
		if code != 200 || json.Unmarshal(b, into) != nil {
			t.Fatalf("%s: %d %s", path, code, b)
		}
	}
	post("/v1/tokenize", map[string]any{"messages": []any{map[string]any{"role": "user", "content": "héllo"}}}, &chat)
	usage := s.Ask("héllo", map[string]any{"model": caller, "max_tokens": 1}).Usage
	if chat.Count != usage.PromptTokens || len(chat.Tokens) != chat.Count {
		t.Errorf("%d tokens, the answer counted %d", chat.Count, usage.PromptTokens)
	}
	post("/v1/tokenize", map[string]any{"prompt": "héllo<|im_end|>x", "add_special_tokens": false, "parse_special": false}, &plain)
	var back struct{ Prompt, Content string }
	post("/v1/detokenize", map[string]any{"tokens": plain.Tokens}, &back)
	if back.Prompt != "héllo<|im_end|>x" || back.Content != back.Prompt {
		t.Errorf("there and back: %q", back.Prompt)
	}
}

func clientShapeRefusals(t *testing.T, c openai.Client) {
	bad := shaped(1)
	bad.ResponseFormat.OfJSONSchema.JSONSchema.Schema = map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"oneOf": []any{}}}}
	_, err := c.Chat.Completions.New(context.Background(), bad)
	wantFault(t, err, 400, "invalid_json_schema", "#/properties/x/oneOf")
	strict := calling(1, mode("auto"))
	strict.Tools = append(strict.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: "odd", Strict: openai.Bool(true), Parameters: map[string]any{"not": map[string]any{}}}))
	_, err = c.Chat.Completions.New(context.Background(), strict)
	wantFault(t, err, 400, "invalid_json_schema", "#/not")
	_, err = c.Embeddings.New(context.Background(), openai.EmbeddingNewParams{Model: caller, Dimensions: param.NewOpt[int64](65), Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("x")}})
	wantFault(t, err, 400, "invalid_value", "64")
	_, err = c.Embeddings.New(context.Background(), openai.EmbeddingNewParams{Model: caller, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"x", ""}}})
	wantFault(t, err, 400, "invalid_value", "input[1]")
}

func wantFault(t *testing.T, err error, status int, code, words string) {
	t.Helper()
	e, ok := err.(*openai.Error) //nolint:errorlint // the client gives nothing else
	if !ok || e.StatusCode != status || e.Code != code || !strings.Contains(e.Message, words) {
		t.Errorf("%v, want %d %s with %q", err, status, code, words)
	}
}

// TestAKillInAShapedAnswer kills nodes in the middle of answers that follow a
// schema and of answers that call: what is said is what would have been said,
// because the grammar's state is that of the tokens.
func TestAKillInAShapedAnswer(t *testing.T) {
	t.Parallel()
	s := upCaller(t)
	c := officialClient(s)
	for name, p := range map[string]openai.ChatCompletionNewParams{"schema": shaped(11), "calls": calling(12, named("keep"))} {
		want := ask(t, c, p)
		if n := want.Usage.CompletionTokens; n < 45 {
			t.Fatalf("%s: %d tokens are too few to die in the middle of", name, n)
		}
		for i, at := range shapedTokens {
			for stage := range 2 {
				what := fmt.Sprintf("%s, stage %d killed before token %d", name, stage, at)
				s.AwaitHealthy()
				before := processesOf(s.Status())
				if code, _, b := s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": at, "action": "kill"}); code != 200 {
					t.Fatalf("%s: %d %s", what, code, b)
				}
				var got openai.ChatCompletion
				if streamed := (i+stage)%2 == 0; streamed {
					acc, err := follow(context.Background(), c, p, nil)
					if err != nil {
						t.Fatalf("%s: %v", what, err)
					}
					got = acc.ChatCompletion
				} else {
					got = *ask(t, c, p)
				}
				if diff := cmp.Diff(whatWasSaid(*want), whatWasSaid(got)); diff != "" {
					t.Errorf("%s: %s", what, diff)
				}
				s.Await(what+": one old process is gone", 10*time.Second, func() bool { return slices.ContainsFunc(before, harness.Gone) })
			}
		}
	}
}

// TestAKillWhileEmbedding: the vector is the same to the last bit.
func TestAKillWhileEmbedding(t *testing.T) {
	t.Parallel()
	s := upCaller(t)
	embed := func() (body struct {
		Data   []struct{ Embedding []float32 }
		Hecate struct{ Rescues int }
	}) {
		t.Helper()
		code, _, b := s.Post(context.Background(), "/v1/embeddings", map[string]any{"model": caller, "input": strings.Repeat("A long text about a fox. ", 12)})
		if err := json.Unmarshal(b, &body); code != 200 || err != nil || len(body.Data) != 1 {
			t.Fatalf("%d %.300s", code, b)
		}
		return body
	}
	want := embed()
	for stage := range 2 {
		s.AwaitHealthy()
		s.Post(context.Background(), "/v1/swarm/chaos/arm", map[string]any{"stage": stage, "at_token": 0, "action": "kill"})
		got := embed()
		if got.Hecate.Rescues < 1 {
			t.Errorf("stage %d: nothing was rescued", stage)
		}
		if !slices.Equal(got.Data[0].Embedding, want.Data[0].Embedding) {
			t.Errorf("stage %d: another vector after the rescue", stage)
		}
	}
}
