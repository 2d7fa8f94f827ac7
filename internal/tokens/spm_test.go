package tokens

import (
	"bytes"
	"slices"
	"testing"

	"hecate/internal/demomodel"
)

func demoSource(t testing.TB) Source {
	t.Helper()
	s, err := ReadSource(bytes.NewReader(demomodel.GGUF()))
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
