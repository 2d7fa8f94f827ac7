package openai

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// endpoints are those of the table in docs/api.md, in the order of its columns.
var endpoints = []struct {
	name   string
	body   string // the least that is taken
	decode func([]byte) *Error
	fields any
}{
	{"chat", chat(``), func(b []byte) *Error { return decodeAndUse(string(b)) }, ChatRequest{}},
	{"completions", completion(``), func(b []byte) *Error { _, err := DecodeCompletion(b); return err }, CompletionRequest{}},
	{"embeddings", `{"model":"m","input":"hi"}`, func(b []byte) *Error { _, err := DecodeEmbedding(b); return err }, EmbeddingRequest{}},
}

// refusedValues are good values of what is refused all the same.
var refusedValues = map[string]string{
	"functions": `[{"name":"f"}]`, "modalities": `["audio"]`, "audio": `{"voice":"x"}`, "web_search_options": `{}`, "best_of": `3`, "suffix": `"x"`,
}

// The documentation's table says of each parameter what the code does with it,
// and knows every parameter that the code knows.
func TestTheTableOfParameters(t *testing.T) {
	table := parameters(t)
	for i, e := range endpoints {
		known := jsonNames(reflect.TypeOf(e.fields))
		for name, says := range table {
			if reads := slices.Contains(known, name); reads != (says[i] != "-") {
				t.Errorf("%s: the table says %q of %s, the code reads it: %v", e.name, says[i], name, reads)
			}
			wrong := e.decode(with(t, e.body, name, `[[["x"]]]`)) != nil
			switch says[i] {
			case "honoured":
				if !wrong {
					t.Errorf("%s: %s is honoured, but a value of a wrong type is taken", e.name, name)
				}
			case "ignored":
				if err := e.decode(with(t, e.body, name, `"x"`)); err != nil {
					t.Errorf("%s: %s is ignored, but refused with %v", e.name, name, err)
				}
			case "refused":
				err := e.decode(with(t, e.body, name, refusedValues[name]))
				if err == nil || err.Status != 400 || !strings.HasPrefix(*err.Code, "unsupported_") {
					t.Errorf("%s: %s is refused, but %s gave %v", e.name, name, refusedValues[name], err)
				}
			case "-":
				if wrong {
					t.Errorf("%s: %s is no parameter, but refused", e.name, name)
				}
			default:
				t.Errorf("%s: the table says %q of %s", e.name, says[i], name)
			}
		}
		for _, name := range known {
			if _, ok := table[name]; !ok {
				t.Errorf("%s: the code reads %s, the table does not know it", e.name, name)
			}
		}
	}
}

// with is a body with one more field, or another value of one.
func with(t *testing.T, body, name, value string) []byte {
	t.Helper()
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	fields[name] = json.RawMessage(value)
	b, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(name, err)
	}
	return b
}

// parameters reads the table: what it says of each name, by endpoint.
func parameters(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "| parameter | chat | completions | embeddings |")
	if !ok {
		t.Fatal("docs/api.md has no table of parameters")
	}
	row := regexp.MustCompile("^\\| `([a-z_]+)` \\| ([a-z-]+) \\| ([a-z-]+) \\| ([a-z-]+) \\|")
	out := map[string][]string{}
	for _, line := range strings.Split(section, "\n")[2:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		m := row.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("a row that cannot be read: %s", line)
		}
		out[m[1]] = m[2:]
	}
	if len(out) < 30 {
		t.Fatalf("only %d parameters in the table", len(out))
	}
	return out
}

// jsonNames lists the fields that a body may have.
func jsonNames(typ reflect.Type) (names []string) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		if f.Anonymous {
			names = append(names, jsonNames(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			panic(fmt.Sprintf("the field %s has no name in JSON", f.Name))
		}
		names = append(names, name)
	}
	return names
}

func TestDecodeEmbedding(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","input":"x"}`:                                           "taken",
		`{"model":"m","input":["x","y"]}`:                                     "taken",
		`{"model":"m","input":[1,2]}`:                                         "taken",
		`{"model":"m","input":[[1],[2]],"dimensions":3}`:                      "taken",
		`{"model":"m","input":[1.5]}`:                                         "input invalid_type",
		`{"model":"m","input":["x",1]}`:                                       "input invalid_type",
		`{"model":"m","input":[]}`:                                            "input missing_required_parameter",
		`{"model":"m"}`:                                                       "input missing_required_parameter",
		`{"input":"x"}`:                                                       "model missing_required_parameter",
		`{"model":"m","input":"x","encoding_format":"int8"}`:                  "encoding_format invalid_value",
		`{"model":"m","input":"x","dimensions":0}`:                            "dimensions invalid_value",
		`{"model":"m","input":["` + strings.Repeat(`x","`, MaxInputs) + `"]}`: "input invalid_value",
	} {
		_, err := DecodeEmbedding([]byte(body))
		if got := refusal(err); got != want {
			t.Errorf("%.80s: %s, want %s", body, got, want)
		}
	}
}

func TestDecodeTokenize(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","prompt":"x"}`:                                            "taken",
		`{"model":"m","content":""}`:                                            "taken",
		`{"model":"m","messages":[{"role":"user","content":"x"}]}`:              "taken",
		`{"model":"m","messages":[{"role":"king","content":"x"}]}`:              "messages invalid_value",
		`{"model":"m","prompt":"x","messages":[{"role":"user","content":"x"}]}`: "prompt missing_required_parameter",
		`{"model":"m"}`:            "prompt missing_required_parameter",
		`{"prompt":"x"}`:           "model missing_required_parameter",
		`{"model":"m","prompt":1}`: "prompt invalid_type",
	} {
		_, err := DecodeTokenize([]byte(body))
		if got := refusal(err); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
