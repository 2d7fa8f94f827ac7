package tokens

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func wordsOf(s splitter, text string) []string {
	var out []string
	s.words(text, func(w string) { out = append(out, w) })
	return out
}

// bothSplitters are the scanner and the patterns of every kind that has both.
func bothSplitters(t testing.TB) map[string][2]splitter {
	t.Helper()
	out := map[string][2]splitter{}
	for _, name := range []string{"llama-bpe", "qwen2", "gpt-2", "smollm", "tekken"} {
		p := preTokenizers[name]
		if p.scan == nil {
			t.Fatalf("%s has no scanner", name)
		}
		m, err := newMatching(p.patterns)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = [2]splitter{scanning{p.scan, p.digits}, m}
	}
	return out
}

func checkSplit(t *testing.T, name string, both [2]splitter, text string) {
	t.Helper()
	got, want := wordsOf(both[0], text), wordsOf(both[1], text)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q\nscanner  %q\npatterns %q", name, text, got, want)
	}
	if strings.Join(got, "") != text {
		t.Errorf("%s: words %q of %q", name, got, text)
	}
}

func TestScannersEqualPatterns(t *testing.T) {
	splitters := bothSplitters(t)
	alphabet := []rune(" \t\n\r'sStTreReveVElLdDmM019aZ.,!/_-\u00a0\u0085\u3000\u00e9\u00c9\u01c5\u02b0\u0301\u05d0\u6771\u0663\u00bd\u2167\U0001f642\u200b")
	r := rand.New(rand.NewPCG(1, 2))
	for name, both := range splitters {
		for _, text := range oracleTexts(t) {
			checkSplit(t, name, both, text)
		}
		for range 1000 {
			text := make([]rune, r.IntN(14))
			for i := range text {
				text[i] = alphabet[r.IntN(len(alphabet))]
			}
			checkSplit(t, name, both, string(text))
		}
	}
}

// Characters are of the same kind for scanner and patterns, alone and between
// others: all of the first blocks, samples of the rest.
func TestScannersClassCharacters(t *testing.T) {
	splitters := bothSplitters(t)
	for r := rune(0); r <= 0x1ffff; r++ {
		if !utf8.ValidRune(r) || r > 0x600 && r%41 != 0 && !unicode.IsSpace(r) {
			continue
		}
		for _, name := range []string{"llama-bpe", "tekken", "gpt-2"} {
			checkSplit(t, name, splitters[name], "a"+string(r)+"B1 "+string(r)+string(r)+".\n")
		}
		if t.Failed() {
			t.Fatalf("at U+%04X", r)
		}
	}
}

func FuzzScanners(f *testing.F) {
	splitters := bothSplitters(f)
	for _, text := range oracleTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, both := range splitters {
			checkSplit(t, name, both, strings.ToValidUTF8(text, "?"))
		}
	})
}
