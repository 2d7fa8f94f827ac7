package gateway

import "testing"

// Offsets count characters, also where a token holds a part of one.
func TestCharacters(t *testing.T) {
	for _, c := range []struct {
		tokens []string
		want   int
	}{
		{nil, 0},
		{[]string{"hello", " you"}, 9},
		{[]string{"é", "漢", "😀"}, 3},
		{[]string{"\xf0", "\x9f\x98", "\x80!"}, 2},
		{[]string{"a\xf0\x9f", "\x98\x80b"}, 3},
	} {
		got := 0
		for _, token := range c.tokens {
			got += characters([]byte(token))
		}
		if got != c.want {
			t.Errorf("%q: %d characters, want %d", c.tokens, got, c.want)
		}
	}
}
