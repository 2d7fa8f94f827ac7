package tokens

import (
	"slices"
	"testing"

	"hecate/internal/demomodel"
)

func demoSource(t testing.TB) Source {
	t.Helper()
	s, err := readSource(demomodel.GGUF())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spmVariant is the demo model's vocabulary, changed as testdata/oracle/spm.py does.
func spmVariant(t testing.TB, name string) Source {
	s := demoSource(t)
	s.AddBOS = new(false)
	switch name {
	case "prefix":
		s.AddSpacePrefix = nil
	case "defined":
		s.Types = slices.Clone(s.Types)
		for _, text := range []string{"\u2581the", "ing", "."} {
			s.Types[slices.Index(s.Tokens, text)] = TypeUserDefined
		}
	}
	return s
}

func TestSentencePieceEqualsLlamaCpp(t *testing.T) {
	var goldens map[string][][]int32
	readJSON(t, "spm-goldens.json", &goldens)
	texts := oracleTexts(t)
	for name, ids := range goldens {
		tok := newTokenizer(t, spmVariant(t, name))
		for i, text := range texts {
			got, err := tok.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ids[i], got) {
				t.Errorf("%s: %q\n got %q\nwant %q", name, text, pieces(tok, got), pieces(tok, ids[i]))
			}
		}
	}
}

// Of merges with equal scores, the leftmost is made first.
func TestSentencePieceMergesFromTheLeft(t *testing.T) {
	tok := newTokenizer(t, Source{
		Model: "llama", Tokens: []string{"<unk>", "a", "aa", "b", "ab"}, Types: []Type{2, 1, 1, 1, 1},
		Scores: []float32{0, -1, -2, -1, -2}, Unknown: new(int32(0)), AddBOS: new(false), AddSpacePrefix: new(false),
	})
	for text, want := range map[string][]int32{
		"aaa": {2, 1}, "aaaaa": {2, 2, 1}, "aab": {2, 3}, "abab": {4, 4}, "c": {0}, "a\u6771b": {1, 0, 3}, "": nil,
	} {
		got, err := tok.EncodePlain(text)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
}

// Merging word by word, where no piece goes over a space, changes nothing; where
// one does, words are not taken apart.
func TestSentencePieceWordByWord(t *testing.T) {
	s := spmVariant(t, "prefix")
	apart := newTokenizer(t, s)
	whole := newTokenizer(t, s)
	m := whole.model.(*sentencePiece)
	if !m.apart {
		t.Fatal("the demo model's pieces go over spaces")
	}
	m.apart = false
	for _, text := range append(oracleTexts(t), benchText) {
		a, err1 := apart.EncodePlain(text)
		b, err2 := whole.EncodePlain(text)
		if err1 != nil || err2 != nil || !slices.Equal(a, b) {
			t.Errorf("%q:\n by word %q\nat once  %q", text, pieces(apart, a), pieces(whole, b))
		}
	}
	s.Tokens, s.Types, s.Scores = append(slices.Clone(s.Tokens), "of\u2581the"), append(slices.Clone(s.Types), TypeNormal), append(slices.Clone(s.Scores), 0)
	if newTokenizer(t, s).model.(*sentencePiece).apart {
		t.Error("a piece over a space went unnoticed")
	}
}
