package tokens

import (
	"strings"
	"unicode/utf8"
)

// Detokenizer turns the tokens of one answer into text as they come. What it
// returns is always valid UTF-8: the start of a character that is not complete
// is held back until it is.
type Detokenizer struct {
	t    *Tokenizer
	held []byte // the start of a character, at most 3 bytes
}

// NewDetokenizer starts an answer.
func (t *Tokenizer) NewDetokenizer() *Detokenizer { return &Detokenizer{t: t} }

// Push returns the text that is complete with the next token.
func (d *Detokenizer) Push(id int32) string {
	b := d.t.TokenBytes(id)
	if len(d.held) == 0 && utf8.Valid(b) {
		return string(b)
	}
	all := append(d.held, b...)
	keep := incomplete(all)
	out := strings.ToValidUTF8(string(all[:len(all)-keep]), "\ufffd")
	d.held = append(d.held[:0], all[len(all)-keep:]...)
	return out
}

// Flush returns what is left at the end: U+FFFD if a character stayed
// incomplete, else nothing.
func (d *Detokenizer) Flush() string {
	if len(d.held) == 0 {
		return ""
	}
	d.held = d.held[:0]
	return "\ufffd"
}

// incomplete returns how many bytes at the end of b begin a character that more
// bytes could complete.
func incomplete(b []byte) int {
	for n := 1; n <= min(utf8.UTFMax-1, len(b)); n++ {
		tail := b[len(b)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}
