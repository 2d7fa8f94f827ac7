package tokens

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// byteTokens encodes text so that every byte is a token of its own.
func byteTokens(tok *Tokenizer, text string) []int32 {
	var ids []int32
	for i := range len(text) {
		for id := range tok.Size() {
			if b := tok.TokenBytes(int32(id)); len(b) == 1 && b[0] == text[i] {
				ids = append(ids, int32(id))
				break
			}
		}
	}
	return ids
}

func TestDetokenizerHoldsIncompleteCharacters(t *testing.T) {
	tok := demo(t)
	for _, tc := range []struct {
		bytes string
		want  []string // what each byte adds, then what the end adds
	}{
		{"a\u00e9b", []string{"a", "", "\u00e9", "b", ""}},
		{"\u6771", []string{"", "", "\u6771", ""}},
		{"\U0001f642", []string{"", "", "", "\U0001f642", ""}},
		{"\xe6\x9d", []string{"", "", "\ufffd"}},
		{"\xf0\x9fx", []string{"", "", "\ufffdx", ""}},
		{"\x80a", []string{"\ufffd", "a", ""}},
		{"\xc3\xc3\xa9", []string{"", "\ufffd", "\u00e9", ""}},
		{"\xff", []string{"\ufffd", ""}},
		{"\xed\xa0\x80", []string{"", "\ufffd", "\ufffd", ""}}, // a surrogate is no character
		{"\xe2\x82\xe2\x82\xac", []string{"", "", "\ufffd", "", "\u20ac", ""}},
	} {
		d := tok.NewDetokenizer()
		var got []string
		for _, id := range byteTokens(tok, tc.bytes) {
			got = append(got, d.Push(id))
		}
		if got = append(got, d.Flush()); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.bytes, got, tc.want)
		}
	}
}

// However tokens cut the bytes of a text, the pieces are valid and add up to it.
func TestDetokenizerIsWholeAtEveryCut(t *testing.T) {
	tok := demo(t)
	for _, text := range oracleTexts(t) {
		d := tok.NewDetokenizer()
		var b strings.Builder
		for _, id := range byteTokens(tok, text) {
			piece := d.Push(id)
			if !utf8.ValidString(piece) {
				t.Fatalf("%q: piece %q is not UTF-8", text, piece)
			}
			b.WriteString(piece)
		}
		if b.WriteString(d.Flush()); b.String() != text {
			t.Errorf("got %q, want %q", b.String(), text)
		}
	}
}

func TestControlTokensHaveNoText(t *testing.T) {
	tok := demo(t)
	d := tok.NewDetokenizer()
	for _, id := range []int32{0, 1, 2, 3, 4, -1, 2048, 1 << 30} {
		if s := d.Push(id); s != "" {
			t.Errorf("token %d became %q", id, s)
		}
	}
}

// naiveStop looks at the whole text so far after every byte.
func naiveStop(text string, stops []string) (show, stop string) {
	for end := 1; end <= len(text); end++ {
		for _, s := range stops {
			if strings.HasSuffix(text[:end], s) && len(s) > len(stop) {
				stop = s
			}
		}
		if stop != "" {
			return text[:end-len(stop)], stop
		}
	}
	return text, ""
}

// pushAll feeds text in the given pieces; every prefix shown must be part of
// what may be shown.
func pushAll(t testing.TB, stops, parts []string) (show, stop string) {
	t.Helper()
	m, err := NewStopMatcher(stops)
	if err != nil {
		t.Fatal(err)
	}
	want, _ := naiveStop(strings.Join(parts, ""), stops)
	var b strings.Builder
	for _, p := range parts {
		s, hit := m.Push(p)
		if b.WriteString(s); !strings.HasPrefix(want, b.String()) {
			t.Fatalf("stops %q, pieces %q: showed %q, may show %q", stops, parts, b.String(), want)
		}
		if stop == "" {
			stop = hit
		}
	}
	if stop == "" {
		b.WriteString(m.Flush())
	}
	return b.String(), stop
}

func cutAtRandom(r *rand.Rand, text string) []string {
	var parts []string
	for text != "" {
		n := 1 + r.IntN(min(5, len(text)))
		parts, text = append(parts, text[:n]), text[n:]
	}
	return parts
}

func TestStopStringsNeverLeak(t *testing.T) {
	for _, tc := range []struct {
		text  string
		stops []string
		show  string
		stop  string
	}{
		{"hello world", nil, "hello world", ""},
		{"hello world", []string{"wor"}, "hello ", "wor"},
		{"aab", []string{"ab"}, "a", "ab"},
		{"ababac", []string{"abac"}, "ab", "abac"},
		{"user:", []string{"user: "}, "user:", ""},
		{"x\n\nUser: y", []string{"\nUser:", "\n\n"}, "x", "\n\n"},
		{"abcd", []string{"bcd", "c"}, "ab", "c"},   // complete first
		{"abcd", []string{"cd", "bcd"}, "a", "bcd"}, // same end: the longer
		{"STOP", []string{"STOP"}, "", "STOP"},
		{"caf\u00e9 \u6771\u4eac", []string{"\u4eac"}, "caf\u00e9 \u6771", "\u4eac"},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			show, stop := pushAll(t, tc.stops, cutAtRandom(r, tc.text))
			if show != tc.show || stop != tc.stop {
				t.Errorf("%q, stops %q: %q, %q; want %q, %q", tc.text, tc.stops, show, stop, tc.show, tc.stop)
			}
		}
	}
}

func TestStopMatcherEqualsTheNaiveOne(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	word := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = "abc"[r.IntN(3)]
		}
		return string(b)
	}
	for range 3000 {
		var stops []string
		for range 1 + r.IntN(4) {
			stops = append(stops, word(1+r.IntN(6)))
		}
		text := word(r.IntN(30))
		wantShow, wantStop := naiveStop(text, stops)
		show, stop := pushAll(t, stops, cutAtRandom(r, text))
		if show != wantShow || stop != wantStop {
			t.Fatalf("%q, stops %q: %q, %q; want %q, %q", text, stops, show, stop, wantShow, wantStop)
		}
	}
}

func TestStopStringsAreBounded(t *testing.T) {
	for name, stops := range map[string][]string{
		"empty": {"a", ""}, "five": {"a", "b", "c", "d", "e"}, "long": {strings.Repeat("x", MaxStopBytes+1)},
	} {
		if _, err := NewStopMatcher(stops); !errors.Is(err, ErrStops) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStreamFinishes(t *testing.T) {
	tok := demo(t)
	encode := func(text string) []int32 {
		ids, err := tok.EncodePlain(text)
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	const end = 4
	for _, tc := range []struct {
		name   string
		ids    []int32
		opts   StreamOptions
		text   string
		finish Finish
		stop   string
	}{
		{"end token", append(encode("Hello there."), end), StreamOptions{}, "Hello there.", FinishStop, ""},
		{"end token flushes a held prefix", append(encode("Hello ST"), end), StreamOptions{Stops: []string{"STOP"}}, "Hello ST", FinishStop, ""},
		{"end token inside a character", append(byteTokens(tok, "a\xe6\x9d"), end), StreamOptions{}, "a\ufffd", FinishStop, ""},
		{"stop string", encode("one STOP two"), StreamOptions{Stops: []string{"STOP"}}, "one ", FinishStop, "STOP"},
		{"length", encode("one two three"), StreamOptions{MaxTokens: 2}, tok.Decode(encode("one two three")[:2]), FinishLength, ""},
		{"length flushes", byteTokens(tok, "ab"), StreamOptions{MaxTokens: 2, Stops: []string{"bc"}}, "ab", FinishLength, ""},
		{"stop beats length", byteTokens(tok, "ab"), StreamOptions{MaxTokens: 2, Stops: []string{"b"}}, "a", FinishStop, "b"},
		{"nothing", nil, StreamOptions{}, "", FinishNone, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := tok.NewStream(tc.opts)
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			var last Piece
			for _, id := range tc.ids {
				if last.Finish != FinishNone {
					break
				}
				last = s.Push(id)
				text.WriteString(last.Text)
			}
			if text.String() != tc.text || last.Finish != tc.finish || last.Stop != tc.stop {
				t.Errorf("got %q, %q, %q; want %q, %q, %q", text.String(), last.Finish, last.Stop, tc.text, tc.finish, tc.stop)
			}
			if tc.finish != FinishNone {
				if p := s.Push(100); p.Text != "" || p.Finish != tc.finish {
					t.Errorf("after the end: %+v", p)
				}
				if p := s.Close(FinishLength); p.Text != "" || p.Finish != tc.finish {
					t.Errorf("closed after the end: %+v", p)
				}
			}
		})
	}
	s, err := tok.NewStream(StreamOptions{Stops: []string{"STOP"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range byteTokens(tok, "xST") {
		s.Push(id)
	}
	if p := s.Close(FinishLength); p.Text != "ST" || p.Finish != FinishLength || s.Count() != 3 {
		t.Errorf("closed from outside: %+v after %d tokens", p, s.Count())
	}
	if _, err := tok.NewStream(StreamOptions{Stops: []string{""}}); !errors.Is(err, ErrStops) {
		t.Errorf("empty stop string: %v", err)
	}
}
