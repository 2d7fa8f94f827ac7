package tokens

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hecate/internal/demomodel"
)

// benchText is about 24 KB of English.
var benchText = strings.Repeat(demomodel.Card(), 2)[:24<<10]

func benchmarkEncode(b *testing.B, tok *Tokenizer, text string) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tok.EncodePlain(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeSentencePiece(b *testing.B) { benchmarkEncode(b, demo(b), benchText) }

func BenchmarkEncodeBytePairs(b *testing.B) {
	for _, pre := range []string{"llama-bpe", "qwen2", "smollm", "tekken"} {
		b.Run(pre, func(b *testing.B) { benchmarkEncode(b, newTokenizer(b, bpeSource(b, pre)), benchText) })
	}
}

// Texts that make careless tokenizers quadratic.
func BenchmarkEncodeHostile(b *testing.B) {
	toks := map[string]*Tokenizer{"spm": demo(b), "qwen2": newTokenizer(b, bpeSource(b, "qwen2")), "tekken": newTokenizer(b, bpeSource(b, "tekken"))}
	for name, text := range map[string]string{"spaces": " ", "letters": "a", "capitals": "A", "lines": "\n", "cjk": "\u6771", "tags": "<|im_start|>"} {
		text = strings.Repeat(text, 256<<10/len(text))
		for model, tok := range toks {
			b.Run(fmt.Sprint(name, "/", model), func(b *testing.B) { benchmarkEncode(b, tok, text) })
		}
	}
}

func BenchmarkEncodeChat(b *testing.B) {
	chat := Chat{Generate: true}
	for i := range 20 {
		chat.Messages = append(chat.Messages, Message{Role: []string{"user", "assistant"}[i%2], Content: "Tell me something about number " + fmt.Sprint(i) + ", please."})
	}
	for family := range families {
		tok := newTokenizer(b, familySource(b, family))
		b.Run(family, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := tok.EncodeChat(context.Background(), chat); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	tok := demo(b)
	ids, err := tok.EncodePlain(benchText)
	if err != nil {
		b.Fatal(err)
	}
	s, err := tok.NewStream(StreamOptions{Stops: []string{"<never>", "\n\nUser:"}})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Push(ids[i%len(ids)])
	}
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		s, err := readSource(demomodel.GGUF())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := New(s); err != nil {
			b.Fatal(err)
		}
	}
}
