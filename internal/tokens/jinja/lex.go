package jinja

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a fault of a template, at a line of its source (from 1).
type Error struct {
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("template line %d: %v", e.Line, e.Err) }

// Unwrap gives the fault without its place.
func (e *Error) Unwrap() error { return e.Err }

type kind uint8

const (
	kEOF kind = iota
	kData
	kBlockBegin
	kBlockEnd
	kVarBegin
	kVarEnd
	kName
	kString
	kInt
	kFloat
	kOp
)

type lexeme struct {
	kind kind
	text string
	line int
}

// lexer follows Jinja's with trim_blocks and lstrip_blocks on.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // what was consumed last ended a line
	out       []lexeme
}

// lex turns the source into lexemes.
func lex(src string) ([]lexeme, error) {
	if len(src) > maxSource {
		return nil, fmt.Errorf("%w: a template of %d bytes, at most %d", ErrLimit, len(src), maxSource)
	}
	src = strings.ReplaceAll(strings.ReplaceAll(src, "\r\n", "\n"), "\r", "\n")
	l := &lexer{src: strings.TrimSuffix(src, "\n"), line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.data(); err != nil {
			return nil, err
		}
	}
	l.emit(kEOF, "")
	return l.out, nil
}

func (l *lexer) emit(k kind, text string) {
	l.out = append(l.out, lexeme{k, text, l.line})
}

func (l *lexer) fail(format string, args ...any) error {
	return &Error{l.line, fmt.Errorf(format, args...)}
}

// advance consumes n bytes.
func (l *lexer) advance(n int) {
	s := l.src[l.pos : l.pos+n]
	l.line += strings.Count(s, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = strings.HasSuffix(s, "\n")
	}
}

// data consumes text up to and including the next tag.
func (l *lexer) data() error {
	rest := l.src[l.pos:]
	at := nextTag(rest)
	if at < 0 {
		l.emit(kData, rest)
		l.advance(len(rest))
		return nil
	}
	text, tag := rest[:at], rest[at:at+2]
	sign := byte(0)
	if at+2 < len(rest) {
		sign = rest[at+2]
	}
	if kept := l.beforeTag(text, tag, sign); kept != "" {
		l.emit(kData, kept)
	}
	l.advance(at + 2)
	if sign == '-' || sign == '+' {
		l.advance(1)
	}
	switch tag {
	case "{#":
		return l.comment()
	case "{{":
		return l.tag(kVarBegin, kVarEnd, "}}")
	}
	if raw, ok := l.rawStart(); ok {
		return l.raw(raw)
	}
	return l.tag(kBlockBegin, kBlockEnd, "%}")
}

// nextTag finds the next of {{, {% and {#.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		j := strings.IndexByte(s[i:], '{')
		if j < 0 || i+j+1 >= len(s) {
			return -1
		}
		i += j
		if c := s[i+1]; c == '{' || c == '%' || c == '#' {
			return i
		}
	}
	return -1
}

// beforeTag strips the text before a tag as the tag's sign or lstrip_blocks ask.
func (l *lexer) beforeTag(text, tag string, sign byte) string {
	if sign == '-' {
		return strings.TrimRightFunc(text, isSpace)
	}
	if sign == '+' || tag == "{{" {
		return text
	}
	from := strings.LastIndexByte(text, '\n') + 1
	if (from > 0 || l.lineStart) && strings.TrimFunc(text[from:], isSpace) == "" {
		return text[:from]
	}
	return text
}

// afterTag consumes what follows the end of a tag: all white space after a minus
// sign, else one newline after blocks and comments (trim_blocks).
func (l *lexer) afterTag(sign byte, trim bool) {
	rest := l.src[l.pos:]
	switch {
	case sign == '-':
		l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
	case sign != '+' && trim && strings.HasPrefix(rest, "\n"):
		l.advance(1)
	}
}

func (l *lexer) comment() error {
	end := strings.Index(l.src[l.pos:], "#}")
	if end < 0 {
		return l.fail("comment without end")
	}
	sign := byte(0)
	if end > 0 {
		sign = l.src[l.pos+end-1]
	}
	l.advance(end + 2)
	l.afterTag(sign, true)
	return nil
}

// closing recognises the end of a tag, with its sign.
func (l *lexer) closing(end string) (length int, sign byte) {
	rest := l.src[l.pos:]
	if strings.HasPrefix(rest, end) {
		return len(end), 0
	}
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+' && end == "%}") && strings.HasPrefix(rest[1:], end) {
		return len(end) + 1, rest[0]
	}
	return 0, 0
}

// rawStart recognises the rest of {% raw %} and consumes it.
func (l *lexer) rawStart() (sign byte, ok bool) {
	back, backStart := l.pos, l.lineStart
	line := l.line
	l.skipSpace()
	if strings.HasPrefix(l.src[l.pos:], "raw") {
		l.advance(3)
		l.skipSpace()
		if n, s := l.closing("%}"); n > 0 {
			l.advance(n)
			return s, true
		}
	}
	l.pos, l.line, l.lineStart = back, line, backStart
	return 0, false
}

// raw consumes up to and including {% endraw %}.
func (l *lexer) raw(sign byte) error {
	l.afterTag(sign, true)
	begin := l.pos
	for {
		at := strings.Index(l.src[l.pos:], "{%")
		if at < 0 {
			return l.fail("raw without endraw")
		}
		l.advance(at)
		text := l.src[begin:l.pos]
		l.advance(2)
		open := byte(0)
		if strings.HasPrefix(l.src[l.pos:], "-") || strings.HasPrefix(l.src[l.pos:], "+") {
			open = l.src[l.pos]
			l.advance(1)
		}
		l.skipSpace()
		if !strings.HasPrefix(l.src[l.pos:], "endraw") {
			continue
		}
		l.advance(len("endraw"))
		l.skipSpace()
		if n, s := l.closing("%}"); n > 0 {
			l.emit(kData, l.beforeTag(text, "{%", open))
			l.advance(n)
			l.afterTag(s, true)
			return nil
		}
	}
}

func (l *lexer) skipSpace() {
	rest := l.src[l.pos:]
	l.advance(len(rest) - len(strings.TrimLeftFunc(rest, isSpace)))
}

// tag consumes lexemes up to and including the end of the tag.
func (l *lexer) tag(begin, endKind kind, end string) error {
	l.emit(begin, "")
	for depth := 0; ; {
		l.skipSpace()
		if l.pos >= len(l.src) {
			return l.fail("tag without %s", end)
		}
		if n, sign := l.closing(end); n > 0 && depth == 0 {
			l.emit(endKind, "")
			l.advance(n)
			l.afterTag(sign, end == "%}")
			return nil
		}
		op, err := l.lexeme()
		if err != nil {
			return err
		}
		switch op {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
	}
}

// lexeme consumes one lexeme inside a tag and returns it if it is an operator.
func (l *lexer) lexeme() (op string, err error) {
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case c == '"' || c == '\'':
		return "", l.str(c)
	case isDigit(c):
		l.number()
		return "", nil
	case isNameStart(c):
		n := 1
		for n < len(rest) && (isNameStart(rest[n]) || isDigit(rest[n])) {
			n++
		}
		l.emit(kName, rest[:n])
		l.advance(n)
		return "", nil
	}
	for _, op := range operators {
		if strings.HasPrefix(rest, op) {
			l.emit(kOp, op)
			l.advance(len(op))
			return op, nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return "", l.fail("unexpected character %q", r)
}

// operators, longer ones first.
var operators = []string{
	"==", "!=", ">=", "<=", "//", "**",
	"+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",",
}

func (l *lexer) number() {
	rest := l.src[l.pos:]
	n, k := digits(rest), kInt
	if n+1 < len(rest) && rest[n] == '.' && isDigit(rest[n+1]) {
		n += 1 + digits(rest[n+1:])
		k = kFloat
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if d := digits(rest[m:]); d > 0 {
			n, k = m+d, kFloat
		}
	}
	l.emit(k, strings.ReplaceAll(rest[:n], "_", ""))
	l.advance(n)
}

func digits(s string) int {
	n := 0
	for n < len(s) && (isDigit(s[n]) || n > 0 && s[n] == '_') {
		n++
	}
	return n
}

// str consumes a string literal with Python's escapes.
func (l *lexer) str(quote byte) error {
	rest := l.src[l.pos+1:]
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			l.emit(kString, b.String())
			l.advance(i + 2)
			return nil
		case c == '\\' && i+1 < len(rest):
			i += escape(&b, rest[i+1:])
		default:
			b.WriteByte(c)
		}
	}
	return l.fail("string without end")
}

// escape writes what the escape sequence s (without its backslash) stands for
// and returns its length. Unknown sequences stand for themselves.
func escape(b *strings.Builder, s string) int {
	const plain, means = "ntrbfav\\'\"", "\n\t\r\b\f\a\v\\'\""
	if i := strings.IndexByte(plain, s[0]); i >= 0 {
		b.WriteByte(means[i])
		return 1
	}
	if s[0] == '\n' {
		return 1
	}
	if width := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]; width > 0 && len(s) > width {
		if v, err := strconv.ParseUint(s[1:1+width], 16, 32); err == nil {
			b.WriteRune(rune(v))
			return 1 + width
		}
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1
}

func isDigit(c byte) bool     { return '0' <= c && c <= '9' }
func isNameStart(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isSpace is Python's str.isspace, which is also what \s and strip mean there.
func isSpace(r rune) bool {
	switch {
	case r >= 0x09 && r <= 0x0d, r >= 0x1c && r <= 0x20, r == 0x85, r == 0xa0:
		return true
	case r == 0x1680, r >= 0x2000 && r <= 0x200a, r == 0x2028, r == 0x2029, r == 0x202f, r == 0x205f, r == 0x3000:
		return true
	}
	return false
}
