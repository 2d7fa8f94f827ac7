package calls

import (
	"encoding/json"
	"strings"
)

// scanner reads the object of one call byte by byte: its name, and where its
// arguments begin and end, which pass through as they are.
type scanner struct {
	raw      strings.Builder // all of it
	stack    []byte          // brackets that are open
	inString bool
	escaped  bool

	key, value strings.Builder // of the object itself, as JSON
	inValue    bool
	name       string
	argsBegun  bool
	early      strings.Builder // arguments that came before the name
	finished   bool
}

func newScanner() *scanner { return &scanner{} }

// begun says that the object's first bracket came.
func (s *scanner) begun() bool { return len(s.stack) > 0 || s.finished }

// named says that the name is known; ready, that the arguments have begun too.
func (s *scanner) named() bool { return s.name != "" }
func (s *scanner) ready() bool { return s.name != "" && s.argsBegun }
func (s *scanner) done() bool  { return s.finished }

// take reads one byte and gives what of the arguments is certain; false: this is
// no object.
func (s *scanner) take(c byte) (arguments string, fine bool) {
	s.raw.WriteByte(c)
	if !s.begun() {
		if c == '{' {
			s.stack = append(s.stack, c)
			return "", true
		}
		return "", isSpace(c)
	}
	if len(s.stack) == 1 && !s.inString {
		switch c {
		case ':':
			if !s.inValue {
				s.inValue = true
				s.argsBegun = s.argsBegun || s.isArguments()
				return "", true
			}
		case ',', '}':
			s.member()
			if c == '}' {
				s.stack, s.finished = nil, true
			}
			return s.flush(), true
		}
	}
	if !s.nest(c) {
		return "", false
	}
	if !s.inValue {
		s.key.WriteByte(c)
		return "", true
	}
	if s.isArguments() {
		if len(s.stack) == 1 && !s.inString && isSpace(c) {
			return "", true // around the arguments
		}
		s.early.WriteByte(c)
		return s.flush(), true
	}
	s.value.WriteByte(c)
	return "", true
}

// nest follows strings and brackets.
func (s *scanner) nest(c byte) bool {
	switch {
	case s.escaped:
		s.escaped = false
	case s.inString && c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = !s.inString
	case s.inString:
	case c == '{' || c == '[':
		s.stack = append(s.stack, c)
	case c == '}' || c == ']':
		if last := s.stack[len(s.stack)-1]; last != c-2 || len(s.stack) < 2 { // in ASCII, { and } as [ and ] are 2 apart
			return false
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
	return true
}

// isArguments says that the member being read holds the arguments.
func (s *scanner) isArguments() bool {
	key := strings.TrimSpace(s.key.String())
	return key == `"arguments"` || key == `"parameters"`
}

// member ends one member of the object.
func (s *scanner) member() {
	if strings.TrimSpace(s.key.String()) == `"name"` {
		_ = json.Unmarshal([]byte(s.value.String()), &s.name) // another type leaves it empty: no call
	}
	s.key.Reset()
	s.value.Reset()
	s.inValue = false
}

// flush gives the arguments so far, once the name is known.
func (s *scanner) flush() string {
	if s.name == "" {
		return ""
	}
	out := s.early.String()
	s.early.Reset()
	return out
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
