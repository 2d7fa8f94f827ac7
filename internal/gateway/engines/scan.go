package engines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A span is where a value stands in a body: body[from:to].
type span struct{ from, to int }

func (s span) of(body []byte) []byte { return body[s.from:s.to] }

func (s span) there() bool { return s.to > s.from }

// ErrNotJSON is matched by every refusal of a body that is no JSON object.
var ErrNotJSON = errors.New("the body is no JSON object")

// object visits the fields of a JSON object, not those of objects in it. Values
// are skipped over, not checked: what is wrong inside them is for whoever reads
// them. The visitor may stop it by an error.
func object(body []byte, visit func(key []byte, value span) error) error {
	i := space(body, 0)
	if i >= len(body) || body[i] != '{' {
		return ErrNotJSON
	}
	if i = space(body, i+1); i < len(body) && body[i] == '}' {
		return rest(body, i+1)
	}
	for {
		key, after, ok := text(body, i)
		if !ok {
			return fmt.Errorf("%w: no name of a field at byte %d", ErrNotJSON, i)
		}
		if i = space(body, after); i >= len(body) || body[i] != ':' {
			return fmt.Errorf("%w: no colon at byte %d", ErrNotJSON, i)
		}
		from := space(body, i+1)
		to, ok := value(body, from)
		if !ok {
			return fmt.Errorf("%w: a value that does not end, from byte %d", ErrNotJSON, from)
		}
		if err := visit(key, span{from, to}); err != nil {
			return err
		}
		i = space(body, to)
		switch {
		case i < len(body) && body[i] == ',':
			i = space(body, i+1)
		case i < len(body) && body[i] == '}':
			return rest(body, i+1)
		default:
			return fmt.Errorf("%w: neither comma nor end at byte %d", ErrNotJSON, i)
		}
	}
}

// rest wants nothing but white space.
func rest(body []byte, i int) error {
	if i = space(body, i); i < len(body) {
		return fmt.Errorf("%w: more after its end, at byte %d", ErrNotJSON, i)
	}
	return nil
}

func space(body []byte, i int) int {
	for i < len(body) && (body[i] == ' ' || body[i] == '\n' || body[i] == '\r' || body[i] == '\t') {
		i++
	}
	return i
}

// text is the string that begins at i, without its quotes and as it is written.
func text(body []byte, i int) (inner []byte, after int, ok bool) {
	if i >= len(body) || body[i] != '"' {
		return nil, i, false
	}
	end := endOfText(body, i+1)
	if end < 0 {
		return nil, i, false
	}
	return body[i+1 : end], end + 1, true
}

// endOfText is the place of the quote that ends a string whose inside begins at i.
func endOfText(body []byte, i int) int {
	for {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return -1
		}
		i += n
		slashes := 0
		for k := i - 1; k >= 0 && body[k] == '\\'; k-- {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
}

// value skips the value at i.
func value(body []byte, i int) (after int, ok bool) {
	if i >= len(body) {
		return i, false
	}
	switch body[i] {
	case '"':
		_, after, ok = text(body, i)
		return after, ok
	case '{', '[':
		return nested(body, i)
	}
	from := i
	for i < len(body) && !bytes.ContainsRune([]byte(",}] \n\r\t"), rune(body[i])) {
		i++
	}
	return i, i > from
}

// nested skips an object or array; brackets of either kind only need to even out.
func nested(body []byte, i int) (after int, ok bool) {
	depth := 0
	for ; i < len(body); i++ {
		switch body[i] {
		case '"':
			end := endOfText(body, i+1)
			if end < 0 {
				return i, false
			}
			i = end
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		}
	}
	return i, false
}

// named says whether a field has a name, however it is escaped or capitalised:
// servers written in Go take "Model" for "model".
func named(key []byte, name string) bool {
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &plain) != nil {
			return false
		}
		key = []byte(plain)
	}
	return len(key) == len(name) && bytes.EqualFold(key, []byte(name))
}

// spliced is a body with one value replaced. The body itself stays as it is.
func spliced(body []byte, at span, with []byte) []byte {
	out := make([]byte, 0, len(body)-(at.to-at.from)+len(with))
	return append(append(append(out, body[:at.from]...), with...), body[at.to:]...)
}

// quoted writes a string as JSON, without escaping for HTML.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("BUG: a string that is no JSON: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
