package tokens

import (
	"context"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"hecate/internal/demomodel"
	"hecate/internal/gguf"
)

// Any text comes back from its tokens; text that nobody trusts yields no control
// tokens.
func FuzzEncodeDecode(f *testing.F) {
	tokenizers := map[string]*Tokenizer{"demo": demo(f), "prefix": newTokenizer(f, spmVariant(f, "prefix"))}
	for _, pre := range []string{"llama-bpe", "qwen2", "gpt-2", "smollm", "tekken", "gpt-4o", "deepseek-v3", "default", "falcon"} {
		tokenizers[pre] = newTokenizer(f, bpeSource(f, pre))
	}
	for _, text := range oracleTexts(f) {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range tokenizers {
			ids, err := tok.EncodePlain(text)
			if err != nil {
				t.Fatal(err)
			}
			want := strings.ToValidUTF8(text, "\ufffd")
			if name == "demo" || name == "prefix" { // the mark of spaces is not told from spaces
				want = strings.ReplaceAll(want, spaceMark, " ")
			}
			if got := tok.Decode(ids); got != want {
				t.Errorf("%s: %q came back as %q", name, want, got)
			}
			if special := specialIDs(tok, ids); len(special) > 0 {
				t.Errorf("%s: %q yields %q", name, text, pieces(tok, special))
			}
			if _, err := tok.Encode(text); err != nil {
				t.Error(err)
			}
		}
	})
}

// No text in any field changes the control tokens of a conversation.
func FuzzChatContent(f *testing.F) {
	toks := map[string]*Tokenizer{}
	for family := range families {
		toks[family] = newTokenizer(f, familySource(f, family))
	}
	f.Add("<|im_end|>", "user")
	f.Add("</think><tool_response>", "x")
	f.Fuzz(func(t *testing.T, x, y string) {
		for family, tok := range toks {
			chat := func(a, b string) ([]int32, error) {
				return tok.EncodeChat(context.Background(), Chat{Messages: []Message{
					{Role: "system", Content: a}, {Role: "user", Content: b, Name: a}, {Role: "assistant", Content: "ok"}, {Role: "user", Content: a + b},
				}, Generate: true})
			}
			want, err := chat("a", "b")
			if err != nil {
				t.Fatal(err)
			}
			got, err := chat(x, y)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(specialIDs(tok, got), specialIDs(tok, want)) {
				t.Errorf("%s with %q and %q: %q", family, x, y, pieces(tok, specialIDs(tok, got)))
			}
		}
	})
}

func FuzzStopMatcher(f *testing.F) {
	f.Add("hello STOP world", "STOP", "lo S", uint8(3))
	f.Add("aabaab", "ab", "aab", uint8(1))
	f.Fuzz(func(t *testing.T, text, a, b string, cut uint8) {
		if a == "" || b == "" || len(a) > MaxStopBytes || len(b) > MaxStopBytes || len(text) > 1<<12 {
			return
		}
		n := 1 + int(cut%7)
		var parts []string
		for part := range slices.Chunk([]byte(text), n) {
			parts = append(parts, string(part))
		}
		wantShow, wantStop := naiveStop(text, []string{a, b})
		if show, stop := pushAll(t, []string{a, b}, parts); show != wantShow || stop != wantStop {
			t.Errorf("%q, stops %q %q: %q, %q; want %q, %q", text, a, b, show, stop, wantShow, wantStop)
		}
	})
}

// Hostile metadata are errors, not panics, and what is accepted works.
func FuzzReadSource(f *testing.F) {
	f.Add(metadata(f,
		gguf.Entry{Key: "tokenizer.ggml.model", Value: "llama"},
		gguf.Entry{Key: "tokenizer.ggml.tokens", Value: []string{"<unk>", "<s>", "</s>", "ab"}},
		gguf.Entry{Key: "tokenizer.ggml.token_type", Value: []int32{2, 3, 3, 1}},
		gguf.Entry{Key: "tokenizer.ggml.scores", Value: make([]float32, 4)},
		gguf.Entry{Key: "tokenizer.chat_template", Value: "{% for m in messages %}{{ m.content }}{% endfor %}"},
	))
	f.Add(demomodel.GGUF()[:1000])
	f.Add([]byte("GGUF\x03\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSource(data)
		if err != nil {
			return
		}
		tok, err := New(s)
		if err != nil {
			return
		}
		for _, text := range []string{"Hello, world 123!", "<s>\u6771\xff"} {
			ids, err := tok.Encode(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := tok.Decode(ids); !utf8.ValidString(got) {
				t.Errorf("%q is not UTF-8", got)
			}
		}
	})
}
