package jsonschema

import (
	"encoding/json"
	"fmt"
	"testing"

	"hecate/internal/sampling/grammar"
)

// A pattern that can be read in very many ways leaves nothing to choose, soon, instead
// of keeping a machine busy for hours.
func TestAnAmbiguousPatternIsGivenUp(t *testing.T) {
	var words [][]byte
	for i := range 256 {
		words = append(words, []byte{byte(i)})
	}
	for i := range 2000 {
		words = append(words, fmt.Appendf(nil, "%c%c%c", 'a'+i%26, 'a'+(i/26)%26, 'a'+(i/676)%26))
	}
	v, err := grammar.NewVocabulary(words, []int32{5})
	if err != nil {
		t.Fatal(err)
	}
	for pattern, fine := range map[string]bool{
		`^([a-z]{0,9}[a-z]{0,9}[a-z]{0,9}[a-z]{0,9}){1,20}$`: false,
		`^(\\p{L}|\\p{N}){20}$`:                              true,
		`^[a-z]{1,40}( [a-z]{1,40}){0,5}$`:                   true,
	} {
		b := NewBuilder()
		start, err := b.Schema(json.RawMessage(`{"type":"string","pattern":"` + pattern + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		g, err := b.Grammar(start)
		if err != nil {
			t.Fatal(err)
		}
		a, err := v.Automaton(g)
		if err != nil {
			t.Fatal(err)
		}
		m := a.Start()
		mask := m.Allowed(nil)
		for _, id := range []int32{'"', 256, 257, 258} {
			if mask.Count() == 0 {
				break
			}
			if err := m.Take(id); err != nil {
				t.Fatal(err)
			}
			mask = m.Allowed(mask)
		}
		if (mask.Count() > 0) != fine {
			t.Errorf("%s: %d tokens may follow", pattern, mask.Count())
		}
	}
}
