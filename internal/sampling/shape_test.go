package sampling

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"hecate/internal/sampling/grammar"
	"hecate/internal/sampling/jsonschema"
)

const person = `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{"enum":["a","b","cc"]},"maxItems":4},"note":{"type":["string","null"]}},"required":["name","age","tags"],"additionalProperties":false}`

func shapeOf(t testing.TB, schema string) *grammar.Grammar {
	t.Helper()
	b := jsonschema.NewBuilder()
	e, err := b.Schema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	g, err := b.Grammar(e)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// lexicon has an end, all bytes, and made-up words as tokenizers have them: with
// and without a space, with punctuation behind.
func lexicon(t testing.TB, size int) *grammar.Vocabulary {
	t.Helper()
	r := rand.New(rand.NewPCG(4, 4))
	tokens := [][]byte{nil}
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	const syllables = "kastelimonurapedigo"
	marks := []string{`"`, `",`, `":`, `"}`, `,`, `.`, `("`, `"]`, "\n", `{"`, `":"`, `1`, `23`}
	for len(tokens) < size {
		w := ""
		for range 1 + r.IntN(5) {
			at := r.IntN(len(syllables) - 2)
			w += syllables[at : at+1+r.IntN(2)]
		}
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			w = " " + w
		case 4:
			w += marks[r.IntN(len(marks))]
		case 5:
			w = marks[r.IntN(len(marks))] + w
		case 6:
			w = string(rune(0x400+r.IntN(0x4000))) + w[:1]
		}
		tokens = append(tokens, []byte(w))
	}
	v, err := grammar.NewVocabulary(tokens, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newShaped(t testing.TB, p Params, v *grammar.Vocabulary) *Sampler {
	t.Helper()
	s, err := NewShaped(p, v, v.Size())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write lets a sampler answer with random logits that depend on the position
// only, as the same model's would. From 60 tokens on the end and quotes are
// likely.
func write(t testing.TB, s *Sampler, v *grammar.Vocabulary, tokens []int32, prompt, limit int) []int32 {
	t.Helper()
	for len(tokens)-prompt < limit {
		r := rand.New(rand.NewPCG(uint64(len(tokens)), 5))
		logits := randomLogits(r, v.Size(), 3)
		if len(tokens)-prompt > 60 {
			for _, b := range "\"}]" {
				logits[1+b] += 30
			}
			logits[0] += 60
		}
		c := sample(t, s, logits, History{Tokens: tokens, Prompt: prompt}, len(tokens))
		tokens = append(tokens, c.Token)
		if c.Token == 0 {
			break
		}
	}
	return tokens
}

func spell(v *grammar.Vocabulary, tokens []int32) string {
	var b []byte
	for _, t := range tokens {
		b = append(b, v.Bytes(t)...)
	}
	return string(b)
}

// An answer that goes on elsewhere at any token is the undisturbed one.
func TestShapedAnswersGoOnFromTheirTokens(t *testing.T) {
	v := lexicon(t, 500)
	g := shapeOf(t, person)
	for name, p := range map[string]Params{
		"greedy": {}, "sampled": {Temperature: 1, Seed: 3}, "filters": {Temperature: 1.3, TopK: 40, TopP: 0.9, MinP: 0.01, Seed: 9},
		"penalties": {Temperature: 1, PresencePenalty: 1, RepetitionPenalty: 1.2, LogitBias: map[int32]float32{40: 5}},
	} {
		p.Grammar = g
		prompt := []int32{5, 6, 7}
		whole := write(t, newShaped(t, p, v), v, slices.Clone(prompt), 3, 400)
		var value struct {
			Name string
			Age  int
			Tags []string
		}
		if err := json.Unmarshal([]byte(spell(v, whole[3:])), &value); err != nil || value.Age < 0 || value.Age > 150 || len(value.Tags) > 4 {
			t.Errorf("%s: %q: %v %+v", name, spell(v, whole[3:]), err, value)
		}
		for cut := 3; cut < len(whole); cut++ {
			got := write(t, newShaped(t, p, v), v, slices.Clone(whole[:cut]), 3, 400)
			if !slices.Equal(got, whole) {
				t.Fatalf("%s, resumed at %d: %q, want %q", name, cut, spell(v, got[3:]), spell(v, whole[3:]))
			}
		}
	}
}

// One sampler may be asked about any history, in any order.
func TestShapedSamplerHasNoMemory(t *testing.T) {
	v := lexicon(t, 400)
	p := Params{Temperature: 1, Seed: 2, Grammar: shapeOf(t, person)}
	one := newShaped(t, p, v)
	whole := write(t, newShaped(t, p, v), v, []int32{1}, 1, 300)
	r := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		cut := 1 + r.IntN(len(whole)-1)
		logits := randomLogits(r, v.Size(), 3)
		h := History{Tokens: whole[:cut], Prompt: 1}
		if a, b := sample(t, one, logits, h, cut), sample(t, newShaped(t, p, v), logits, h, cut); a.Token != b.Token {
			t.Fatalf("at %d a used sampler chose %d, a new one %d", cut, a.Token, b.Token)
		}
	}
}

func TestShapeErrors(t *testing.T) {
	v := lexicon(t, 300)
	p := Params{Grammar: shapeOf(t, person)}
	logits := make([]float32, v.Size())
	if _, err := New(p, v.Size()); err == nil {
		t.Error("New takes a grammar without its vocabulary")
	}
	if _, err := newShaped(t, p, v).Sample(logits, History{Tokens: []int32{1, 1 + 'x'}, Prompt: 1}, 2); err == nil {
		t.Error("a history outside the grammar is no error")
	}
	if _, err := newShaped(t, p, v).Sample(logits, History{Tokens: []int32{0}, Prompt: 0}, 1); err == nil {
		t.Error("an answer that ended and went on is no error")
	}
	mute, err := grammar.NewVocabulary([][]byte{nil, []byte("x")}, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newShaped(t, p, mute).Sample(logits[:2], History{}, 0); !errors.Is(err, ErrNoToken) {
		t.Errorf("a vocabulary without braces: %v", err)
	}
	wider, err := NewShaped(p, v, v.Size()+64)
	if err != nil {
		t.Fatal(err)
	}
	padded := make([]float32, v.Size()+64)
	padded[v.Size()+3] = 50
	if c, err := wider.Sample(padded, History{}, 0); err != nil || int(c.Token) >= v.Size() {
		t.Errorf("a padding token was chosen: %d %v", c.Token, err)
	}
	if _, err := newShaped(t, p, v).Sample(append(slices.Clone(logits[1:]), float32(nan())), History{}, 0); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN among what is not allowed: %v", err)
	}
}

func nan() float64 { var z float64; return z / z }

// The price of a shape at each token, beside drawing without one: a vocabulary
// as large as Qwen's, an answer of names and numbers.
func BenchmarkShaped(b *testing.B) {
	v := lexicon(b, 151_936)
	for _, bench := range []struct {
		name string
		p    Params
	}{
		{"without", Params{Temperature: 0.8}},
		{"schema", Params{Temperature: 0.8, Grammar: shapeOf(b, person)}},
		{"any JSON", Params{Temperature: 0.8, Grammar: shapeOf(b, `{"type":"object"}`)}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			s := newShaped(b, bench.p, v)
			script := []int32{7}
			if bench.p.Grammar != nil {
				script = write(b, s, v, script, 1, 120)
			} else {
				script = make([]int32, 120)
			}
			logits := randomLogits(rand.New(rand.NewPCG(1, 1)), v.Size(), 3)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; b.Loop(); i++ {
				n := 1 + i%(len(script)-1)
				sample(b, s, logits, History{Tokens: script[:n], Prompt: 1}, n)
			}
		})
	}
}

// The price of the first answers of a schema: compiling it, and finding out what
// each of its places accepts.
func BenchmarkNewShape(b *testing.B) {
	v := lexicon(b, 151_936)
	for i := 0; b.Loop(); i++ {
		g := shapeOf(b, fmt.Sprintf(`{"type":"object","properties":{"name%d":{"type":"string"},"age":{"type":"integer"}},"required":["name%d","age"],"additionalProperties":false}`, i, i))
		s := newShaped(b, Params{Temperature: 0.8, Grammar: g}, v)
		write(b, s, v, []int32{7}, 1, 40)
	}
}
