package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"hecate/internal/sampling/grammar"
)

// words is a vocabulary of all single bytes and of pieces that cut JSON at
// awkward places: several structural characters in one, halves of characters,
// quotes with what follows them.
func words(t testing.TB) *grammar.Vocabulary {
	t.Helper()
	tokens := [][]byte{nil} // the end
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, s := range []string{`{"`, `":`, `":"`, `": "`, `","`, `", "`, `"}`, `"}}`, `"]`, `]}`, `},{"`, `[[`, `[{"`, `{}`, `[]`, "\n  ", "\n    \"", "  ", `\"`, `\u`,
		`\u00`, "true", "null", "fals", "name", `"name`, `"name":`, "-1", "12", "0.", "e1", "é", "\xc3", "\xa9x", "日本", "日\xe6", "\xe6\x97", "😀", "\xf0\x9f", `"a"`, `a"`, `1,`, `,"`, ` "`, "-0", "00", ".5"} {
		tokens = append(tokens, []byte(s))
	}
	v, err := grammar.NewVocabulary(tokens, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// compiled makes the grammar of a schema, as it arrives at a node.
func compiled(schema string) (*grammar.Grammar, error) {
	b := NewBuilder()
	e, err := b.Schema(json.RawMessage(schema))
	if err != nil {
		return nil, err
	}
	g, err := b.Grammar(e)
	if err != nil {
		return nil, err
	}
	wire, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	out := &grammar.Grammar{}
	return out, json.Unmarshal(wire, out)
}

// automaton is what a schema becomes over a vocabulary.
func automaton(t testing.TB, v *grammar.Vocabulary, schema string) *grammar.Automaton {
	t.Helper()
	g, err := compiled(schema)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	a, err := v.Automaton(g)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return a
}

// babble draws tokens at random among those allowed. hurry makes it prefer what
// ends soon once so many tokens were drawn, so that texts come to an end.
func babble(t testing.TB, v *grammar.Vocabulary, a *grammar.Automaton, bytesOf func(int32) []byte, r *rand.Rand, hurry int) (string, []int32) {
	t.Helper()
	m := a.Start()
	var text []byte
	var ids []int32
	var mask grammar.Mask
	for n := 0; ; n++ {
		if n > hurry+2000 {
			t.Fatalf("no end after %d tokens: %.300q", n, text)
		}
		mask = m.Allowed(mask)
		var may []int32
		for id := range int32(v.Size()) {
			if mask.Has(id) {
				may = append(may, id)
			}
		}
		if len(may) == 0 {
			t.Fatalf("nothing may follow %q", text)
		}
		if mask.Has(0) != m.Done() {
			t.Fatalf("after %q the end is allowed: %v, done: %v", text, mask.Has(0), m.Done())
		}
		id := may[r.IntN(len(may))]
		if n > hurry && r.IntN(5) > 0 {
			id = closing(may, bytesOf)
		}
		if id == 0 {
			return string(text), ids
		}
		if err := m.Take(id); err != nil {
			t.Fatalf("after %q, %q: %v", text, bytesOf(id), err)
		}
		text, ids = append(text, bytesOf(id)...), append(ids, id)
	}
}

// closing prefers what brings JSON to its end.
func closing(may []int32, bytesOf func(int32) []byte) int32 {
	for _, want := range []string{"", `"`, "b", "}", "]", "null", "[]", "[", "n", "u", "l", "true", "t", "r", "e", "0", "5", "}}"} {
		for _, id := range may {
			if string(bytesOf(id)) == want {
				return id
			}
		}
	}
	return may[len(may)/2]
}

func TestBabbleSatisfiesItsSchema(t *testing.T) {
	v := words(t)
	r := rand.New(rand.NewPCG(1, 2))
	for _, schema := range append(examples, manySchemas(60)...) {
		a := automaton(t, v, schema)
		for range 25 {
			text, _ := babble(t, v, a, v.Bytes, r, r.IntN(60))
			if err := satisfies(schema, text); err != nil {
				t.Fatalf("%s\nallows %s\n%v", schema, text, err)
			}
		}
	}
}

var examples = []string{
	`{}`, `true`, `{"type":"object"}`, `{"type":"string"}`, `{"type":"integer"}`, `{"type":"number"}`, `{"type":"boolean"}`, `{"type":"null"}`, `{"type":"array"}`,
	`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"},"c":{"type":"boolean"}},"required":["b"],"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"null"}},"additionalProperties":false}`,
	`{"type":"object","properties":{"a":{"type":"integer"},"ab":{"type":"integer"},"\u00e9":{"type":"integer"}},"additionalProperties":{"type":"boolean"}}`,
	`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":true}`,
	`{"type":"object","required":["x"]}`,
	`{"type":"object","required":["x","y"],"properties":{"y":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`,
	`{"type":"object","additionalProperties":{"type":"number"}}`,
	`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":4}`, `{"type":"array","items":{"type":"integer"},"maxItems":1}`, `{"type":"array","maxItems":0}`,
	`{"type":"array","minItems":3,"items":{"enum":[1,"two",null,[3],{"four":4}]}}`,
	`{"enum":["red","green","re","\"quoted\"","line\nend","é日😀"]}`, `{"const":{"a":[1,2.50,"x"]}}`, `{"type":"integer","enum":[1,2.5,"x",3]}`,
	`{"type":["string","null"]}`, `{"type":["integer","boolean"],"minimum":3}`,
	`{"type":"string","minLength":2,"maxLength":3}`, `{"type":"string","maxLength":0}`, `{"type":"string","minLength":1}`,
	`{"type":"string","pattern":"^[A-Z]{2}-\\d{3}$"}`, `{"type":"string","pattern":"b+"}`, `{"type":"string","pattern":"^(a|bc)*\"?\\\\$"}`, `{"type":"string","pattern":"^.{1,3}$"}`, `{"type":"string","pattern":"(?i)^straße$"}`, `{"type":"string","pattern":"^\\s\\S$"}`,
	`{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}`, `{"type":"integer","minimum":7,"maximum":7}`, `{"type":"integer","minimum":-105,"maximum":-9}`,
	`{"type":"integer","exclusiveMinimum":-1.5,"exclusiveMaximum":2}`, `{"type":"integer","minimum":95,"maximum":1003}`, `{"type":"integer","minimum":0}`, `{"type":"integer","maximum":-1}`,
	`{"type":"number","minimum":0,"maximum":1}`, `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":0.001}`, `{"type":"number","minimum":-0.25,"maximum":12.125}`, `{"type":"number","exclusiveMinimum":0}`, `{"type":"number","maximum":1e300}`, `{"type":"number","minimum":-3.5,"exclusiveMaximum":-3}`,
	`{"$defs":{"tree":{"type":"object","properties":{"value":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["value","kids"],"additionalProperties":false}},"$ref":"#/$defs/tree"}`,
	`{"type":"object","properties":{"next":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["next"],"additionalProperties":false}`,
	`{"type":"object","properties":{"item":{"anyOf":[{"type":"object","properties":{"kind":{"const":"user"},"name":{"type":"string"}},"required":["kind","name"],"additionalProperties":false},{"type":"object","properties":{"kind":{"const":"place"},"at":{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2}},"required":["kind","at"],"additionalProperties":false}]}},"required":["item"],"additionalProperties":false}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}]}`, `{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"minItems":1}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":{"type":"null"}}`, `{"type":"array","prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2,"maxItems":4}`,
	`{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"}],"items":false,"minItems":0}`, `{"type":"array","prefixItems":[{"type":"integer"},{"type":"boolean"},{}],"maxItems":2}`, `{"prefixItems":[{"type":"null"}],"minItems":3}`,
	`{"type":"array","items":[{"type":"null"},{"enum":[1,2]}],"minItems":2,"maxItems":2}`, `{"type":"array","items":[{"type":"null"}],"additionalItems":{"enum":[1,2]}}`, `{"type":"array","items":false}`,
	`{"oneOf":[{"type":"string"},{"type":["null","integer"]},{"enum":[true,1.5]}]}`,
	`{"oneOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}},"required":["b"]}]}`,
	`{"type":"string","format":"date-time"}`, `{"type":"string","format":"date"}`, `{"type":"string","format":"time"}`, `{"type":"string","format":"uuid"}`, `{"type":"string","format":"email"}`,
	`{"type":"string","pattern":"^$|^(?:ab)*$"}`, `{"type":"string","pattern":"^b|b$"}`,
}

// Whatever the branches of oneOf are: they are refused, or no text fits two.
func TestOneOfNeverFitsTwo(t *testing.T) {
	v := words(t)
	r := rand.New(rand.NewPCG(11, 11))
	taken := 0
	for range 150 {
		b, err := json.Marshal(map[string]any{"oneOf": []any{someSchema(r, 2), someSchema(r, 2), someSchema(r, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		schema := string(b)
		if _, err := compiled(schema); err != nil {
			continue
		}
		taken++
		a := automaton(t, v, schema)
		for range 10 {
			text, _ := babble(t, v, a, v.Bytes, r, r.IntN(40))
			if err := satisfies(schema, text); err != nil {
				t.Fatalf("%s\nallows %s\n%v", schema, text, err)
			}
		}
	}
	if taken < 20 {
		t.Errorf("only %d of 150 were taken", taken)
	}
}

// manySchemas draws schemas.
func manySchemas(n int) (out []string) {
	r := rand.New(rand.NewPCG(7, 7))
	for range n {
		b, err := json.Marshal(someSchema(r, 3))
		if err != nil {
			panic(err)
		}
		out = append(out, string(b))
	}
	return out
}

func someSchema(r *rand.Rand, depth int) map[string]any {
	k := r.IntN(12)
	if depth == 0 {
		k = r.IntN(6)
	}
	switch k {
	case 0:
		return map[string]any{"type": "string"}
	case 1:
		lo := r.IntN(2000) - 1000
		return map[string]any{"type": "integer", "minimum": lo, "maximum": lo + r.IntN(300)}
	case 2:
		lo := float64(r.IntN(400)-200) / 8
		return map[string]any{"type": "number", "minimum": lo, "exclusiveMaximum": lo + float64(1+r.IntN(80))/16}
	case 3:
		return map[string]any{"enum": []any{"a", "ab", r.IntN(9), nil, true}}
	case 4:
		return map[string]any{"type": []string{"boolean", "null"}}
	case 5:
		return map[string]any{"type": "string", "minLength": r.IntN(3), "maxLength": 3 + r.IntN(3)}
	case 6:
		return map[string]any{"anyOf": []any{someSchema(r, depth-1), someSchema(r, depth-1)}}
	case 7:
		lo := r.IntN(3)
		return map[string]any{"type": "array", "items": someSchema(r, depth-1), "minItems": lo, "maxItems": lo + r.IntN(3)}
	case 8:
		s := map[string]any{"type": "array", "prefixItems": []any{someSchema(r, depth-1), someSchema(r, depth-1)}}
		if lo := r.IntN(4); lo < 3 {
			s["minItems"] = lo
			s["maxItems"] = lo + r.IntN(3)
		}
		if r.IntN(2) == 0 {
			s["items"] = someSchema(r, depth-1)
		}
		return s
	case 9:
		var branches []any
		for i := range 3 {
			branches = append(branches, map[string]any{"type": "object", "required": []string{"kind"}, "additionalProperties": r.IntN(2) == 0,
				"properties": map[string]any{"kind": map[string]any{"const": fmt.Sprint("k", i)}, "more": someSchema(r, depth-1)}})
		}
		return map[string]any{"oneOf": branches}
	}
	props, required := map[string]any{}, []string{}
	for i := range r.IntN(4) {
		name := fmt.Sprintf("%c%s", 'a'+i, strings.Repeat("é", r.IntN(2)))
		props[name] = someSchema(r, depth-1)
		if r.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s := map[string]any{"type": "object", "properties": props, "required": required}
	switch r.IntN(3) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = someSchema(r, depth-1)
	}
	return s
}

func TestWhatIsRefusedIsNamed(t *testing.T) {
	for _, c := range []struct{ schema, path, word string }{
		{`[]`, "#", "object"},
		{`{`, "#", "JSON"},
		{`false`, "#", "false"},
		{`{"oneOf":[]}`, "#/oneOf", "one schema"},
		{`{"oneOf":[{"type":"null"},{"type":"number"},{"type":"integer"}]}`, "#/oneOf/2", "#/oneOf/1"},
		{`{"oneOf":[{"type":"string"},{"enum":[1,"a"]}]}`, "#/oneOf/1", "anyOf"},
		{`{"oneOf":[{"const":1},{"const":1.0}]}`, "#/oneOf/1", "anyOf"},
		{`{"oneOf":[{"type":"null"},{"properties":{"a":{"type":"null"}}}]}`, "#/oneOf/1", "anyOf"},                                              // null satisfies both
		{`{"oneOf":[{"type":"object","properties":{"a":{"const":1}}},{"type":"object","properties":{"a":{"const":2}}}]}`, "#/oneOf/1", "anyOf"}, // {} does
		{`{"oneOf":[{"type":"object","properties":{"a":{"type":"null"}},"required":["a"]},{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"required":["a"]}]}`, "#/oneOf/1", "anyOf"},
		{`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"const":1}}}`, "#/oneOf/1", "anyOf"},
		{`{"oneOf":[{"type":"string"},{"type":"null"}],"type":"string"}`, "#/type", "oneOf"},
		{`{"allOf":[{"type":"string"},{"minLength":2}]}`, "#/allOf", "one schema"},
		{`{"type":"array","prefixItems":[]}`, "#/prefixItems", "one schema"},
		{`{"type":"array","prefixItems":[{"type":"string","if":{}}]}`, "#/prefixItems/0/if", `"if"`},
		{`{"type":"array","prefixItems":[{}],"items":[{}]}`, "#/items", "prefixItems"},
		{`{"type":"array","prefixItems":[{}],"items":false,"minItems":2}`, "#/minItems", "only 1"},
		{`{"type":"array","items":{},"additionalItems":false}`, "#/additionalItems", "list"},
		{`{"type":"array","items":false,"minItems":1}`, "#/minItems", "forbids"},
		{`{"const":1,"enum":[2]}`, "#/enum", "constant"},
		{`{"type":"object","properties":{"a/b":{"type":"string","if":{}}}}`, "#/properties/a~1b/if", `"if"`},
		{`{"type":"array","items":{"type":"integer","multipleOf":3}}`, "#/items/multipleOf", "multipleOf"},
		{`{"type":"array","uniqueItems":true}`, "#/uniqueItems", "uniqueItems"},
		{`{"type":"array","minItems":5000}`, "#/minItems", "1000"},
		{`{"type":"array","minItems":3,"maxItems":2}`, "#/maxItems", "minItems"},
		{`{"type":"strange"}`, "#/type", "strange"},
		{`{"type":"string","pattern":"(?=a)b"}`, "#/pattern", "(?="},
		{`{"type":"string","pattern":"a\\bc"}`, "#/pattern", `\b`},
		{`{"type":"string","pattern":"^a$","maxLength":3}`, "#/pattern", "length"},
		{`{"anyOf":[{"type":"string"},{"not":{}}]}`, "#/anyOf/1/not", "not"},
		{`{"anyOf":[{"type":"string"}],"type":"string"}`, "#/type", "anyOf"},
		{`{"$ref":"other.json"}`, "#/$ref", "other.json"},
		{`{"$ref":"#/$defs/nobody","$defs":{}}`, "#/$ref", "nothing"},
		{`{"enum":[]}`, "#/enum", "one value"},
		{`{"type":"object","required":["a"],"additionalProperties":false}`, "#/required", "forbids"},
		{`{"type":"integer","enum":["a"]}`, "#/enum", "type"},
		{`{"type":"integer","minimum":4,"maximum":3}`, "#", "no number"},
		{`{"type":"integer","minimum":"4"}`, "#/minimum", "number"},
		{`{"type":"number","minimum":1e400}`, "#/minimum", "number"},
		{strings.Repeat(`{"type":"array","items":`, 70) + `{}` + strings.Repeat(`}`, 70), "#" + strings.Repeat("/items", 65), "64"},
	} {
		_, err := compiled(c.schema)
		var e *Error
		if !errors.As(err, &e) || e.Path != c.path || !strings.Contains(e.Message, c.word) {
			t.Errorf("%s: %v, want path %s and %q", c.schema, err, c.path, c.word)
		}
	}
}

func TestSchemasThatNeverEndAreRefused(t *testing.T) {
	for schema, want := range map[string]error{
		`{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`:               grammar.ErrEndless,
		`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`: grammar.ErrInvalid,
		`{"anyOf":[{"$ref":"#"},{"type":"string"}]}`:                                       grammar.ErrInvalid,
		`{"type":"string","pattern":"^([a-z]{1000}){100}$"}`:                               nil, // refused by the parser of patterns
	} {
		_, err := compiled(schema)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", schema, err, want)
		}
	}
}

// Texts that a schema must admit, and texts that it must not.
func TestTextsOfASchema(t *testing.T) {
	v := words(t)
	for _, c := range []struct {
		schema    string
		good, bad []string
	}{
		{examples[9], []string{`{"name":"Zoë","age":3}`, `{"name": "x", "age": -12}`, "{\n  \"name\": \"x\",\n  \"age\": 0\n}", `{"name":"\u00e9\"","age":1}`},
			[]string{`{"name":"x"}`, `{"age":3,"name":"x"}`, `{"name":"x","age":1.5}`, `{"name":"x","age":03}`, `{"name":"x","age":1,}`, `{"name":"x","age":1}}`, "{\"name\":\"a\nb\",\"age\":1}", `{"name":"\ud800","age":1}`, "{\"name\":\"\xff\",\"age\":1}"}},
		{`{"type":"number","minimum":0,"maximum":1}`, []string{"0", "1", "0.5", "1.0", "0.000000001", "1.000"}, []string{"-0", "1.1", "2", "1.0000000001", "00", ".5", "0."}},
		{`{"type":"integer","minimum":95,"maximum":1003}`, []string{"95", "99", "100", "999", "1000", "1003"}, []string{"94", "1004", "9", "0100", "95.0", "10000"}},
		{`{"type":"number","exclusiveMinimum":0}`, []string{"0.1", "1", "123456789", "0.000001"}, []string{"0", "0.0", "-1"}},
		{examples[12], []string{`{}`, `{"a":1}`, `{"a":1,"ab":2}`, `{"abc":true}`, `{"b":true,"é1":false}`}, []string{`{"ab":true}`, `{"a":true}`, `{"é":true}`, `{"abc":1}`, `{"\u0061":true}`}},
		{`{"type":"string","pattern":"b+"}`, []string{`"b"`, `"abc"`, `"bb\n"`}, []string{`"ac"`, `""`}},
	} {
		a := automaton(t, v, c.schema)
		for _, text := range c.good {
			if !admits(a, text) {
				t.Errorf("%s refuses %s", c.schema, text)
			}
		}
		for _, text := range c.bad {
			if admits(a, text) {
				t.Errorf("%s admits %s", c.schema, text)
			}
		}
	}
}

// admits feeds single bytes: token 1+b is the byte b.
func admits(a *grammar.Automaton, text string) bool {
	m := a.Start()
	for _, b := range []byte(text) {
		if !m.Allowed(nil).Has(1+int32(b)) || m.Take(1+int32(b)) != nil {
			return false
		}
	}
	return m.Done()
}

// However a text is cut into tokens, the state is the same: what may follow
// depends on the bytes alone.
func TestStateDependsOnBytesOnly(t *testing.T) {
	v := words(t)
	r := rand.New(rand.NewPCG(3, 3))
	for _, schema := range append(examples, manySchemas(20)...) {
		a := automaton(t, v, schema)
		text, ids := babble(t, v, a, v.Bytes, r, 30)
		whole, bytewise := a.Start(), a.Start()
		for _, id := range ids {
			if err := whole.Take(id); err != nil {
				t.Fatal(err)
			}
			for _, b := range v.Bytes(id) {
				if err := bytewise.Take(1 + int32(b)); err != nil {
					t.Fatal(err)
				}
			}
			if x, y := whole.Allowed(nil), bytewise.Allowed(nil); !equal(x, y) {
				t.Fatalf("%s: within %q what may follow depends on how it was cut", schema, text)
			}
		}
	}
}

func equal(a, b grammar.Mask) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// The mask is exactly the tokens that can be taken.
func TestMaskIsWhatCanBeTaken(t *testing.T) {
	v := words(t)
	r := rand.New(rand.NewPCG(5, 5))
	for _, schema := range append(examples, manySchemas(10)...) {
		a := automaton(t, v, schema)
		_, ids := babble(t, v, a, v.Bytes, r, 20)
		for n := range min(len(ids), 25) {
			m := a.Start()
			for _, id := range ids[:n] {
				if err := m.Take(id); err != nil {
					t.Fatal(err)
				}
			}
			mask := m.Allowed(nil)
			for id := int32(1); int(id) < v.Size(); id++ {
				again := a.Start()
				for _, id := range ids[:n] {
					_ = again.Take(id)
				}
				if can := again.Take(id) == nil; can != mask.Has(id) {
					t.Fatalf("%s: token %q after %d tokens: can be taken %v, in the mask %v", schema, v.Bytes(id), n, can, mask.Has(id))
				}
			}
		}
	}
}

// Nesting has a bound, and at the bound an answer still comes to its end.
func TestDeepNestingEnds(t *testing.T) {
	v := words(t)
	a := automaton(t, v, `{}`)
	m := a.Start()
	open := 0
	for m.Allowed(nil).Has(1 + '[') {
		if err := m.Take(1 + '['); err != nil {
			t.Fatal(err)
		}
		open++
	}
	if open < 50 || open > grammar.MaxDepth {
		t.Errorf("%d levels", open)
	}
	for range open {
		if err := m.Take(1 + ']'); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Done() {
		t.Error("all brackets are closed, and the text may not end")
	}
}

func TestUTF8(t *testing.T) {
	v := words(t)
	a := automaton(t, v, `{"type":"string"}`)
	r := rand.New(rand.NewPCG(9, 9))
	for range 3000 {
		n := 1 + r.IntN(4)
		raw := make([]byte, n)
		for i := range raw {
			raw[i] = byte(0x80 + r.IntN(0x80))
		}
		if got := admits(a, `"`+string(raw)+`"`); got != utf8.Valid(raw) {
			t.Fatalf("%x: admitted %v, valid %v", raw, got, utf8.Valid(raw))
		}
	}
	for c := rune(0x20); c < 0x11000; c += 1 + rune(r.IntN(5)) {
		if c == '"' || c == '\\' || c >= 0xd800 && c < 0xe000 {
			continue
		}
		if !admits(a, `"`+string(c)+`"`) {
			t.Fatalf("%x is refused", c)
		}
	}
}

func FuzzSchema(f *testing.F) {
	for _, s := range examples {
		f.Add([]byte(s))
	}
	v := words(f)
	f.Fuzz(func(t *testing.T, schema []byte) {
		g, err := compiled(string(schema))
		if err != nil {
			return
		}
		a, err := v.Automaton(g)
		if err != nil {
			t.Fatalf("Builder.Grammar let through what does not compile: %v", err)
		}
		if bytes.Contains(schema, []byte("pattern")) {
			return // a babbler may look for the right letters for long
		}
		text, _ := babble(t, v, a, v.Bytes, rand.New(rand.NewPCG(1, 1)), 20)
		if !json.Valid([]byte(text)) {
			t.Fatalf("%s allows %s", schema, text)
		}
		if err := satisfies(string(schema), text); err != nil {
			t.Fatalf("%s allows %s: %v", schema, text, err)
		}
	})
}
