package tokens

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestTokenizerIsSafeForConcurrentUse(t *testing.T) {
	tok := demo(t)
	cases := goldens(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, g := range cases {
				if ids, err := tok.Encode(g.Prompt); err != nil || !slices.Equal(ids, g.PromptIDs) {
					t.Errorf("%s: %v, %v", g.Name, ids, err)
				}
				if g.Kind != "chat" {
					continue
				}
				ids, err := tok.EncodeChat(context.Background(), Chat{Messages: g.Messages, Generate: true})
				if err != nil || !slices.Equal(ids, g.PromptIDs) {
					t.Errorf("%s: %v, %v", g.Name, ids, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestTextsAreBounded(t *testing.T) {
	tok := demo(t)
	long := strings.Repeat("x", MaxTextBytes+1)
	if _, err := tok.Encode(long); !errors.Is(err, ErrTooLong) {
		t.Errorf("Encode: %v", err)
	}
	if _, err := tok.EncodePlain(long); !errors.Is(err, ErrTooLong) {
		t.Errorf("EncodePlain: %v", err)
	}
}

func TestEncodePlainReadsNoControlTokens(t *testing.T) {
	tok := demo(t)
	for _, text := range []string{"<s>", "</s>", "<|im_end|>", "<unk>", "<0x41>", " <s> "} {
		ids, err := tok.EncodePlain(text)
		if err != nil {
			t.Fatal(err)
		}
		if special := specialIDs(tok, ids); len(special) > 0 || tok.Decode(ids) != text {
			t.Errorf("%q: %q", text, pieces(tok, ids))
		}
	}
	if ids, err := tok.Encode("a<|im_end|>"); err != nil || ids[0] != 1 || ids[len(ids)-1] != 4 {
		t.Errorf("Encode: %v, %v", ids, err)
	}
}

func TestAddEOSAndBOSAreHonoured(t *testing.T) {
	s := demoSource(t)
	s.AddEOS, s.AddBOS = new(true), new(false)
	ids, err := newTokenizer(t, s).Encode("Hello")
	if err != nil || ids[0] == 1 || ids[len(ids)-1] != 4 {
		t.Errorf("%v, %v", ids, err)
	}
	// Llama 3's kind wants a beginning even where the file says nothing, Qwen's not.
	for pre, want := range map[string]bool{"llama-bpe": true, "tekken": true, "qwen2": false, "gpt-2": false} {
		s := bpeSource(t, pre)
		ids, err := newTokenizer(t, s).Encode("Hello")
		if err != nil || (ids[0] == *s.BOS) != want {
			t.Errorf("%s: begins with BOS %t, want %t (%v)", pre, ids[0] == *s.BOS, want, err)
		}
	}
}

func TestNamesOfTokens(t *testing.T) {
	tok := demo(t)
	for id, want := range map[int32]string{1: "<s>", 5 + 0xff: "\ufffd", -1: "<token -1>", 4000: "<token 4000>"} {
		if got := tok.TokenName(id); got != want {
			t.Errorf("token %d is called %q, want %q", id, got, want)
		}
	}
}
