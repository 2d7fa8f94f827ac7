package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// maxJSONDepth bounds the nesting of values from outside.
const maxJSONDepth = 64

// FromJSON turns one JSON value into a Value whose texts, keys included, have
// the given mark. Objects keep the order of their keys.
func FromJSON(raw []byte, m Mark) (Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	r := jsonReader{d, m}
	v, err := r.value(0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: more than one value")
	}
	return v, nil
}

type jsonReader struct {
	*json.Decoder
	mark Mark
}

func (r jsonReader) value(depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested more than %d levels", maxJSONDepth)
	}
	tok, err := r.Token()
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '[' {
			return r.array(depth)
		}
		return r.object(depth)
	case string:
		return Marked(tok, r.mark), nil
	case json.Number:
		return jsonNumber(tok)
	}
	return tok, nil // nil and bool
}

func jsonNumber(n json.Number) (Value, error) {
	if !strings.ContainsAny(n.String(), ".eE") {
		if i, err := n.Int64(); err == nil {
			return i, nil
		}
	}
	return n.Float64()
}

func (r jsonReader) array(depth int) (Value, error) {
	l := &List{}
	for r.More() {
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		l.Items = append(l.Items, v)
	}
	_, err := r.Token()
	return l, err
}

func (r jsonReader) object(depth int) (Value, error) {
	dict := NewDict()
	for r.More() {
		key, err := r.Token()
		if err != nil {
			return nil, err
		}
		v, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		dict.Set(Marked(key.(string), r.mark), v)
	}
	_, err := r.Token()
	return dict, err
}

// jsonWriter writes JSON as Python's json.dumps does with ensure_ascii=False.
type jsonWriter struct {
	e         *evaluator
	b         textBuilder
	indent    string // "" is one line
	item, key string // separators
	sort      bool
	ascii     bool
}

func tojsonFilter(e *evaluator, v Value, p params) (Value, error) {
	w := &jsonWriter{e: e, item: ", ", key: ": "}
	if err := w.format(p); err != nil {
		return nil, err
	}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return w.b.text(), nil
}

// format reads tojson's keyword arguments.
func (w *jsonWriter) format(p params) error {
	w.ascii, w.sort = p.truth(0, "ensure_ascii"), truth(p.kw["sort_keys"])
	if err := w.setIndent(p.kw["indent"]); err != nil {
		return err
	}
	l, ok := p.kw["separators"].(*List)
	if !ok || len(l.Items) != 2 {
		return nil
	}
	item, ok1 := l.Items[0].(Text)
	key, ok2 := l.Items[1].(Text)
	if !ok1 || !ok2 {
		return errors.New("separators must be two str")
	}
	w.item, w.key = item.S, key.S
	return nil
}

func (w *jsonWriter) setIndent(v Value) error {
	if v == nil {
		return nil
	}
	n, ok := integer(v)
	if !ok || n < 0 || n > 16 {
		return errors.New("indent must be 0 to 16")
	}
	w.indent, w.item = "\n"+strings.Repeat(" ", int(n)), ","
	return nil
}

func (w *jsonWriter) raw(s string) { w.b.add(Trusted(s)) }

func (w *jsonWriter) value(v Value, depth int) error {
	if err := w.e.step(1); err != nil {
		return err
	}
	if err := w.e.fits(w.b.len()); err != nil {
		return err
	}
	if depth > maxJSONDepth*2 {
		return fmt.Errorf("%w: JSON of %d levels", ErrLimit, depth)
	}
	switch v := v.(type) {
	case nil:
		w.raw("null")
	case bool:
		w.raw(strconv.FormatBool(v))
	case int64:
		w.raw(strconv.FormatInt(v, 10))
	case float64:
		w.raw(formatFloat(v))
	case Text:
		return w.text(v)
	case *List:
		return w.list(v, depth)
	case *Dict:
		return w.dict(v, depth)
	default:
		return fmt.Errorf("a %s has no JSON form", typeName(v))
	}
	return nil
}

func (w *jsonWriter) text(t Text) error {
	if err := w.e.build(len(t.S)); err != nil {
		return err
	}
	w.raw(`"`)
	writeEscaped(&w.b, t, func(r rune) string {
		switch r {
		case '"':
			return `\"`
		case '\\':
			return `\\`
		case '\n':
			return `\n`
		case '\r':
			return `\r`
		case '\t':
			return `\t`
		case '\f':
			return `\f`
		case '\b':
			return `\b`
		}
		return w.codePoint(r)
	})
	w.raw(`"`)
	return nil
}

// codePoint escapes control characters and, if asked, all that is not ASCII.
func (w *jsonWriter) codePoint(r rune) string {
	switch {
	case r < 0x20, w.ascii && r > 0x7e && r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	case w.ascii && r >= 0x10000:
		hi, lo := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
	}
	return ""
}

// line starts a line of an indented value.
func (w *jsonWriter) line(depth int) {
	if w.indent != "" {
		w.raw("\n" + strings.Repeat(w.indent[1:], depth))
	}
}

func (w *jsonWriter) list(l *List, depth int) error {
	if len(l.Items) == 0 {
		w.raw("[]")
		return nil
	}
	w.raw("[")
	for i, x := range l.Items {
		if i > 0 {
			w.raw(w.item)
		}
		w.line(depth + 1)
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.raw("]")
	return nil
}

func (w *jsonWriter) dict(d *Dict, depth int) error {
	if d.Len() == 0 {
		w.raw("{}")
		return nil
	}
	w.raw("{")
	for i, k := range w.keys(d) {
		if i > 0 {
			w.raw(w.item)
		}
		w.line(depth + 1)
		if err := w.text(k); err != nil {
			return err
		}
		w.raw(w.key)
		if err := w.value(d.values[k.S], depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.raw("}")
	return nil
}

func (w *jsonWriter) keys(d *Dict) []Text {
	if !w.sort {
		return d.keys
	}
	keys := slices.Clone(d.keys)
	slices.SortFunc(keys, func(a, b Text) int { return strings.Compare(a.S, b.S) })
	return keys
}
