package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// chat is a body with a valid model and message, and more fields.
func chat(more string) string {
	return `{"model":"m","messages":[{"role":"user","content":"hi"}]` + comma(more) + `}`
}

// completion is a body with a valid model and prompt, and more fields.
func completion(more string) string { return `{"model":"m","prompt":"hi"` + comma(more) + `}` }

func comma(more string) string {
	if more == "" {
		return ""
	}
	return "," + more
}

func messages(list string) string { return `{"model":"m","messages":` + list + `}` }

// refusal is what a client is told: the parameter and the code.
func refusal(e *Error) string {
	if e == nil {
		return "taken"
	}
	text := "-"
	if e.Param != nil {
		text = *e.Param
	}
	return text + " " + *e.Code
}

func TestDecodeChatRefuses(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"the least", chat(``), "taken"},
		{"unknown fields", chat(`"store":true,"metadata":{"a":"b"},"service_tier":"auto","reasoning_effort":"low","x":[1,{"y":null}]`), "taken"},
		{"nulls", chat(`"stream":null,"stream_options":null,"max_tokens":null,"max_completion_tokens":null,"temperature":null,"top_p":null,"top_k":null,"n":null,"stop":null,"seed":null,"presence_penalty":null,"logit_bias":null,"logprobs":null,"top_logprobs":null,"response_format":null,"tools":null,"audio":null,"modalities":null,"user":null`), "taken"},
		{"empty lists", chat(`"stop":[],"tools":[],"functions":[],"logit_bias":{}`), "taken"},

		{"nothing", ``, "- invalid_json"},
		{"half an object", `{"model":"m"`, "- invalid_json"},
		{"two objects", chat(``) + chat(``), "- invalid_json"},
		{"an array", `[]`, "- invalid_type"},
		{"a string", `"hi"`, "- invalid_type"},
		{"null", `null`, "messages missing_required_parameter"},
		{"deeper than the parser goes", chat(`"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000)), "- invalid_json"},

		{"model: absent", `{"messages":[{"role":"user","content":"hi"}]}`, "model missing_required_parameter"},
		{"model: a number", `{"model":1,"messages":[]}`, "model invalid_type"},
		{"messages: absent", `{"model":"m"}`, "messages missing_required_parameter"},
		{"messages: a string", messages(`"hi"`), "messages invalid_type"},
		{"messages: of strings", messages(`["hi"]`), "messages invalid_type"},
		{"messages: of null", messages(`[null]`), "messages invalid_value"},
		{"messages: too many", messages(`[` + strings.Repeat(`{},`, MaxMessages) + `{}]`), "messages invalid_value"},
		{"role: unknown", messages(`[{"role":"king","content":"hi"}]`), "messages invalid_value"},
		{"role: a number", messages(`[{"role":1,"content":"hi"}]`), "messages.role invalid_type"},
		{"content: absent", messages(`[{"role":"user"}]`), "messages missing_required_parameter"},
		{"content: null", messages(`[{"role":"user","content":null}]`), "messages missing_required_parameter"},
		{"content: null of the assistant", messages(`[{"role":"assistant","content":null}]`), "taken"},
		{"content: empty", messages(`[{"role":"user","content":""}]`), "taken"},
		{"content: a number", messages(`[{"role":"user","content":7}]`), "messages invalid_type"},
		{"content: an object", messages(`[{"role":"user","content":{"type":"text","text":"hi"}}]`), "messages invalid_type"},
		{"content: of strings", messages(`[{"role":"user","content":["hi"]}]`), "messages invalid_type"},
		{"content: an image", messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`), "messages unsupported_value"},
		{"content: a part without type", messages(`[{"role":"user","content":[{"text":"hi"}]}]`), "messages unsupported_value"},
		{"calls: in the history", messages(`[{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"1","content":"2"}]`), "taken"},
		{"calls: without a name", messages(`[{"role":"assistant","tool_calls":[{"id":"1"}]}]`), "messages missing_required_parameter"},
		{"calls: of the user", messages(`[{"role":"user","content":"x","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]`), "messages invalid_value"},
		{"calls: custom", messages(`[{"role":"assistant","tool_calls":[{"id":"1","type":"custom","function":{"name":"f","arguments":"{}"}}]}]`), "messages unsupported_value"},
		{"calls: arguments that are no object", messages(`[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":"[1]"}}]}]`), "messages invalid_value"},
		{"calls: arguments as an object", messages(`[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f","arguments":{}}}]}]`), "messages.tool_calls.function.arguments invalid_type"},
		{"calls: the old way", messages(`[{"role":"assistant","function_call":{"name":"f"}}]`), "messages unsupported_value"},
		{"calls: an answer to none", messages(`[{"role":"tool","content":"2"}]`), "messages missing_required_parameter"},

		{"stream: a string", chat(`"stream":"yes"`), "stream invalid_type"},
		{"stream_options without stream", chat(`"stream_options":{"include_usage":true}`), "stream_options invalid_value"},
		{"stream_options: true", chat(`"stream":true,"stream_options":true`), "stream_options invalid_type"},
		{"include_usage: a number", chat(`"stream":true,"stream_options":{"include_usage":1}`), "stream_options.include_usage invalid_type"},
		{"stream_options with stream", chat(`"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`), "taken"},

		{"max_tokens: none", chat(`"max_tokens":0`), "max_tokens invalid_value"},
		{"max_tokens: a fraction", chat(`"max_tokens":1.5`), "max_tokens invalid_type"},
		{"max_tokens: a string", chat(`"max_tokens":"9"`), "max_tokens invalid_type"},
		{"max_completion_tokens: negative", chat(`"max_completion_tokens":-1`), "max_completion_tokens invalid_value"},
		{"max_completion_tokens wins", chat(`"max_tokens":0,"max_completion_tokens":5`), "taken"},

		{"temperature: a string", chat(`"temperature":"hot"`), "temperature invalid_type"},
		{"temperature: too hot", chat(`"temperature":2.1`), "temperature invalid_value"},
		{"temperature: beyond numbers", chat(`"temperature":1e999`), "temperature invalid_type"},
		{"top_p", chat(`"top_p":1.1`), "top_p invalid_value"},
		{"top_k", chat(`"top_k":-1`), "top_k invalid_value"},
		{"min_p", chat(`"min_p":2`), "min_p invalid_value"},
		{"presence_penalty", chat(`"presence_penalty":-2.5`), "presence_penalty invalid_value"},
		{"frequency_penalty", chat(`"frequency_penalty":3`), "frequency_penalty invalid_value"},
		{"repetition_penalty", chat(`"repetition_penalty":-1`), "repetition_penalty invalid_value"},
		{"seed: negative", chat(`"seed":-5`), "taken"},
		{"seed: beyond 64 bits", chat(`"seed":99999999999999999999`), "seed invalid_type"},

		{"n: none", chat(`"n":0`), "n invalid_value"},
		{"n: many", chat(fmt.Sprintf(`"n":%d`, MaxChoices)), "taken"},
		{"n: too many", chat(fmt.Sprintf(`"n":%d`, MaxChoices+1)), "n invalid_value"},

		{"stop: a string", chat(`"stop":"x"`), "taken"},
		{"stop: a number", chat(`"stop":3`), "stop invalid_type"},
		{"stop: of numbers", chat(`"stop":[3]`), "stop invalid_type"},
		{"stop: an object", chat(`"stop":{}`), "stop invalid_type"},
		{"stop: empty", chat(`"stop":""`), "stop invalid_value"},
		{"stop: null in a list", chat(`"stop":[null]`), "stop invalid_value"},
		{"stop: too many", chat(`"stop":["a","b","c","d","e"]`), "stop invalid_value"},
		{"stop: longest", chat(`"stop":"` + strings.Repeat("x", MaxStopSize) + `"`), "taken"},
		{"stop: too long", chat(`"stop":"` + strings.Repeat("x", MaxStopSize+1) + `"`), "stop invalid_value"},

		{"logit_bias: a list", chat(`"logit_bias":[]`), "logit_bias invalid_type"},
		{"logit_bias: a word for a key", chat(`"logit_bias":{"the":1}`), "logit_bias invalid_value"},
		{"logit_bias: a negative key", chat(`"logit_bias":{"-1":1}`), "logit_bias invalid_value"},
		{"logit_bias: a key beyond 32 bits", chat(`"logit_bias":{"4294967296":1}`), "logit_bias invalid_value"},
		{"logit_bias: too strong", chat(`"logit_bias":{"5":101}`), "logit_bias[5] invalid_value"},

		{"logprobs: a number", chat(`"logprobs":3`), "logprobs invalid_type"},
		{"top_logprobs alone", chat(`"top_logprobs":3`), "top_logprobs invalid_value"},
		{"top_logprobs: too many", chat(`"logprobs":true,"top_logprobs":21`), "top_logprobs invalid_value"},
		{"top_logprobs: negative", chat(`"logprobs":true,"top_logprobs":-1`), "top_logprobs invalid_value"},

		{"response_format: text", chat(`"response_format":{"type":"text"}`), "taken"},
		{"response_format: JSON", chat(`"response_format":{"type":"json_object"}`), "taken"},
		{"response_format: a string", chat(`"response_format":"json"`), "response_format invalid_type"},
		{"response_format: unknown", chat(`"response_format":{"type":"xml"}`), "response_format unsupported_value"},
		{"response_format: no schema", chat(`"response_format":{"type":"json_schema"}`), "response_format.json_schema.schema missing_required_parameter"},
		{"response_format: no name", chat(`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), "response_format.json_schema.name missing_required_parameter"},
		{"response_format: a schema", chat(`"response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":{"type":"string"}}}`), "taken"},
		{"response_format: a keyword", chat(`"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"if":{}}}}}}`), "response_format.json_schema.schema invalid_json_schema"},
		{"response_format: endless", chat(`"response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}}}`), "response_format.json_schema.schema invalid_json_schema"},
		{"tools", chat(`"tools":[{"type":"function","function":{"name":"f"}}]`), "taken"},
		{"tools: no name", chat(`"tools":[{"type":"function"}]`), "tools invalid_value"},
		{"tools: a bad name", chat(`"tools":[{"type":"function","function":{"name":"a b"}}]`), "tools invalid_value"},
		{"tools: twice", chat(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), "tools invalid_value"},
		{"tools: custom", chat(`"tools":[{"type":"custom","custom":{"name":"f"}}]`), "tools unsupported_value"},
		{"tools: too many", chat(`"tools":[` + strings.Repeat(`{},`, MaxTools) + `{}]`), "tools invalid_value"},
		{"functions", chat(`"functions":[{"name":"f"}]`), "functions unsupported_parameter"},
		{"tool_choice without tools", chat(`"tool_choice":"required"`), "tool_choice invalid_value"},
		{"tool_choice: none and auto without tools", chat(`"tool_choice":"none"`), "taken"},
		{"tool_choice: unknown", chat(`"tool_choice":"maybe"`), "tool_choice invalid_value"},
		{"tool_choice: a number", chat(`"tool_choice":1`), "tool_choice invalid_type"},
		{"tool_choice: named", chat(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}`), "taken"},
		{"tool_choice: a stranger", chat(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice invalid_value"},
		{"tool_choice: allowed tools", chat(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools"}`), "tool_choice unsupported_value"},
		{"a call and a schema", chat(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","response_format":{"type":"json_object"}`), "response_format unsupported_value"},
		{"parallel_tool_calls: a number", chat(`"parallel_tool_calls":1`), "parallel_tool_calls invalid_type"},
		{"modalities: text", chat(`"modalities":["text"]`), "taken"},
		{"modalities: audio", chat(`"modalities":["text","audio"]`), "modalities unsupported_value"},
		{"audio", chat(`"audio":{"voice":"x"}`), "modalities unsupported_value"},
		{"web search", chat(`"web_search_options":{}`), "web_search_options unsupported_parameter"},
	} {
		err := decodeAndUse(c.body)
		if got := refusal(err); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, err)
		}
		if err != nil && (err.Status != 400 || !err.NoRetry || err.Message == "") {
			t.Errorf("%s: %+v, want a 400 with a message that is not to be tried again", c.name, err)
		}
	}
}

// decodeAndUse does what a handler does: decode, then the parameters of every choice.
func decodeAndUse(body string) *Error {
	r, err := DecodeChat([]byte(body))
	if err != nil {
		return err
	}
	for i := range r.Choices() {
		if _, err := r.Params(i); err != nil {
			return err
		}
	}
	_, err = r.ResponseFormat.Shape()
	return err
}

func TestDecodeCompletionRefuses(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"the least", completion(``), "taken"},
		{"no prompt", `{"model":"m"}`, "taken"}, // an empty one: the vocabulary decides
		{"prompt: a number", `{"model":"m","prompt":3}`, "prompt invalid_type"},
		{"prompt: an object", `{"model":"m","prompt":{}}`, "prompt invalid_type"},
		{"prompt: mixed", `{"model":"m","prompt":["a",1]}`, "prompt invalid_type"},
		{"prompt: fractions", `{"model":"m","prompt":[1.5]}`, "prompt invalid_type"},
		{"prompt: ids beyond 32 bits", `{"model":"m","prompt":[4294967296]}`, "prompt invalid_type"},
		{"prompt: two texts", `{"model":"m","prompt":["a","b"]}`, "prompt unsupported_value"},
		{"prompt: two lists of ids", `{"model":"m","prompt":[[1],[2]]}`, "prompt unsupported_value"},
		{"suffix", completion(`"suffix":"x"`), "suffix unsupported_parameter"},
		{"suffix: empty", completion(`"suffix":""`), "taken"},
		{"best_of: one", completion(`"best_of":1`), "taken"},
		{"best_of: all", completion(`"best_of":3,"n":3`), "taken"},
		{"best_of: the best", completion(`"best_of":3,"n":1`), "best_of unsupported_value"},
		{"logprobs: a flag", completion(`"logprobs":true`), "logprobs invalid_type"},
		{"logprobs: none", completion(`"logprobs":0`), "taken"},
		{"logprobs: many", completion(`"logprobs":20`), "taken"},
		{"logprobs: too many", completion(`"logprobs":21`), "logprobs invalid_value"},
		{"logprobs: negative", completion(`"logprobs":-1`), "logprobs invalid_value"},
		{"echo: a string", completion(`"echo":"yes"`), "echo invalid_type"},
		{"model: absent", `{"prompt":"hi"}`, "model missing_required_parameter"},
	} {
		_, err := DecodeCompletion([]byte(c.body))
		if got := refusal(err); got != c.want {
			t.Errorf("%s: %s, want %s (%v)", c.name, got, c.want, err)
		}
	}
}

func TestUnionsAreTakenInEveryShape(t *testing.T) {
	for body, want := range map[string]Stops{
		`"stop":"a"`: {"a"}, `"stop":["a"]`: {"a"}, `"stop":["a","b"]`: {"a", "b"}, `"stop":null`: nil,
		`"stop":["a\u00e9\ud83d\ude00"]`: {"aé😀"},
	} {
		r, err := DecodeChat([]byte(chat(body)))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if d := cmp.Diff(want, r.Stop); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
	for body, want := range map[string]Content{
		`"hi"`: {"hi", true},
		`[{"type":"text","text":"h"},{"type":"text","text":"i"}]`: {"hi", true},
		`[]`: {"", true},
		`""`: {"", true},
	} {
		r, err := DecodeChat([]byte(messages(`[{"role":"user","content":` + body + `}]`)))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if d := cmp.Diff(want, r.Messages[0].Content); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
	for body, want := range map[string]Prompt{
		`"hi"`: {Text: "hi"}, `["hi"]`: {Text: "hi"}, `[1,2]`: {Tokens: []int32{1, 2}}, `[[1,2]]`: {Tokens: []int32{1, 2}},
		`""`: {}, `null`: {}, `[]`: {Tokens: []int32{}}, `[[]]`: {Tokens: []int32{}},
	} {
		r, err := DecodeCompletion([]byte(`{"model":"m","prompt":` + body + `}`))
		if err != nil {
			t.Errorf("%s: %v", body, err)
		} else if d := cmp.Diff(want, r.Prompt); d != "" {
			t.Errorf("%s: %s", body, d)
		}
	}
}

func TestParams(t *testing.T) {
	r, err := DecodeChat([]byte(chat(`"n":2,"seed":7,"top_p":0.5,"top_k":3,"min_p":0.1,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.1,"logit_bias":{"5":-100},"logprobs":true,"top_logprobs":2,"max_tokens":3,"max_completion_tokens":4`)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Params(0)
	if err != nil {
		t.Fatal(err)
	}
	if p.Temperature != 1 || p.Seed != 7 || p.TopP != 0.5 || p.TopK != 3 || p.MinP != 0.1 || p.PresencePenalty != 1 ||
		p.FrequencyPenalty != -1 || p.RepetitionPenalty != 1.1 || p.LogitBias[5] != -100 || !p.Logprobs || p.TopLogprobs != 2 {
		t.Errorf("%+v", p)
	}
	if *r.MaxTokens != 4 {
		t.Errorf("at most %d tokens, want those of max_completion_tokens", *r.MaxTokens)
	}
	if other, err := r.Params(1); err != nil || other.Seed == p.Seed {
		t.Errorf("the second choice has the seed %d of the first (%v)", other.Seed, err)
	}
}

// A request without a seed draws one, once.
func TestFixSeed(t *testing.T) {
	seeds := map[uint64]bool{}
	for range 8 {
		r, err := DecodeChat([]byte(chat(``)))
		if err != nil {
			t.Fatal(err)
		}
		r.FixSeed()
		a, _ := r.Params(0)
		r.FixSeed()
		if b, _ := r.Params(0); a.Seed != b.Seed {
			t.Error("two uses of one request have two seeds")
		}
		seeds[a.Seed] = true
	}
	if len(seeds) == 1 {
		t.Error("all requests have the same seed")
	}
	r, _ := DecodeChat([]byte(chat(`"seed":0`)))
	r.FixSeed()
	if p, _ := r.Params(0); p.Seed != 0 {
		t.Errorf("seed 0 became %d: it is a seed like any other", p.Seed)
	}
}
