package openai

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever a client sends, it gets a request within the limits or an error that
// can be sent back.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		chat(``), chat(`"stop":["a",""],"n":8,"logit_bias":{"1":2}`), chat(`"logprobs":true,"top_logprobs":20`),
		messages(`[{"role":"user","content":[{"type":"text","text":"\ud83d\ude00"}]},{"role":"assistant"}]`),
		chat(`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"$ref":"#"},"b":{"enum":[1]}},"required":["b"]}}}`),
		chat(`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":{"type":"function","function":{"name":"f"}}`),
		completion(`"logprobs":5,"echo":true`), `{"model":"m","prompt":[[1,2]]}`, `{"model":"m","prompt":["a","b"]}`,
		`{"model":"m","Common":{"n":99},"messages":[{"role":"user","content":"x"}]}`, `[]`, `null`, `{"stop":`, "{\"model\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if r, err := DecodeChat(body); err != nil {
			checkRefusal(t, err)
		} else {
			checkCommon(t, &r.Common)
			for _, m := range r.Messages {
				if m.Role == "" {
					t.Error("a message without a role was taken")
				}
			}
			if _, err := r.ResponseFormat.Shape(); err != nil {
				checkRefusal(t, err)
			}
			if tools := r.CallableTools(); len(tools) > MaxTools || r.MustCall() && len(tools) == 0 {
				t.Errorf("taken: %d tools, a call is wanted: %v", len(tools), r.MustCall())
			}
			checkParams(t, r.Choices(), func(i int) (float64, *Error) { p, err := r.Params(i); return p.Temperature, err })
		}
		if r, err := DecodeCompletion(body); err != nil {
			checkRefusal(t, err)
		} else {
			checkCommon(t, &r.Common)
			if r.Prompt.Text != "" && r.Prompt.Tokens != nil {
				t.Error("a prompt of text and tokens")
			}
			checkParams(t, r.Choices(), func(i int) (float64, *Error) { p, err := r.Params(i); return p.Temperature, err })
		}
	})
}

func checkCommon(t *testing.T, c *Common) {
	if c.Model == "" || len(c.Stop) > MaxStops || c.Choices() < 1 || c.Choices() > MaxChoices || c.MaxTokens != nil && *c.MaxTokens < 1 {
		t.Errorf("taken: %+v", c)
	}
	for _, s := range c.Stop {
		if s == "" || len(s) > MaxStopSize {
			t.Errorf("taken: a stop string of %d bytes", len(s))
		}
	}
}

func checkParams(t *testing.T, choices int, params func(int) (float64, *Error)) {
	for i := range choices {
		temperature, err := params(i)
		if err != nil {
			checkRefusal(t, err)
		} else if math.IsNaN(temperature) || temperature < 0 || temperature > 2 {
			t.Errorf("temperature %g", temperature)
		}
	}
}

func checkRefusal(t *testing.T, e *Error) {
	body := e.Body()
	var back struct {
		Error struct{ Message, Type, Code string }
	}
	if err := json.Unmarshal(body, &back); err != nil || back.Error.Message == "" || back.Error.Type != "invalid_request_error" || back.Error.Code == "" {
		t.Errorf("refused with %s (%v)", body, err)
	}
	if e.Status != 400 || !e.NoRetry || !utf8.Valid(body) || strings.ContainsRune(string(body), '\n') {
		t.Errorf("refused with %d %s", e.Status, body)
	}
}
