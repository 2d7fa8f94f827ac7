package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable turns bytes that a stranger chose into text that may stand in a log
// line: at most limit bytes are looked at, and what is not a printable character
// becomes '?', so that nobody forges lines or moves the cursor.
func printable(b []byte, limit int) string {
	if len(b) == 0 {
		return ""
	}
	s := cut(string(b[:min(len(b), limit)]), limit)
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}
