package jinja

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is what an expression evaluates to: nil (Python's None), bool, int64,
// float64, Text, *List, *Dict, or one of the package's own kinds (undefined,
// namespace, callable).
type Value any

// List is a Python list, or a tuple, which differs in how it is written.
type List struct {
	Items []Value
	tuple bool
}

// NewList returns a list of the given elements.
func NewList(items ...Value) *List { return &List{Items: items} }

// Dict is a Python dict with text keys; it keeps the order of insertion.
type Dict struct {
	keys   []Text
	values map[string]Value
}

// NewDict returns an empty Dict.
func NewDict() *Dict { return &Dict{values: map[string]Value{}} }

// Set adds or replaces a value; a replaced one keeps its place.
func (d *Dict) Set(key Text, v Value) {
	if _, ok := d.values[key.S]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key.S] = v
}

// Get returns the value under a key.
func (d *Dict) Get(key string) (Value, bool) {
	v, ok := d.values[key]
	return v, ok
}

// Len returns the number of entries.
func (d *Dict) Len() int { return len(d.keys) }

// undefined is a missing variable, attribute or key; it remembers its name.
type undefined struct{ name string }

// namespace is the object with attributes that set may change.
type namespace struct{ vars map[string]Value }

// callable is a function, method or macro.
type callable func(e *evaluator, args []Value, kw map[string]Value) (Value, error)

func typeName(v Value) string {
	switch v.(type) {
	case nil:
		return "none"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case Text:
		return "str"
	case *List:
		return "list"
	case *Dict:
		return "dict"
	case undefined:
		return "undefined"
	case *namespace:
		return "namespace"
	case callable:
		return "function"
	}
	return fmt.Sprintf("%T", v)
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case Text:
		return v.S != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return v.Len() > 0
	}
	return true
}

// number reads a bool, int or float.
func number(v Value) (f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true, true
		}
		return 0, true, true
	case int64:
		return float64(v), true, true
	case float64:
		return v, false, true
	}
	return 0, false, false
}

func integer(v Value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// equal is Python's ==. The budget bounds deep comparisons.
func (e *evaluator) equal(a, b Value) (bool, error) {
	if err := e.step(1); err != nil {
		return false, err
	}
	if x, _, ok := number(a); ok {
		y, _, ok := number(b)
		return ok && x == y, nil
	}
	switch a := a.(type) {
	case nil:
		return b == nil, nil
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case Text:
		b, ok := b.(Text)
		return ok && a.S == b.S, nil
	case *List:
		b, ok := b.(*List)
		if !ok || len(a.Items) != len(b.Items) {
			return false, nil
		}
		for i := range a.Items {
			if same, err := e.equal(a.Items[i], b.Items[i]); !same || err != nil {
				return false, err
			}
		}
		return true, nil
	case *Dict:
		if b, ok := b.(*Dict); ok {
			return e.sameEntries(a, b)
		}
		return false, nil
	case *namespace:
		b, ok := b.(*namespace)
		return ok && a == b, nil
	}
	return false, nil
}

func (e *evaluator) sameEntries(a, b *Dict) (bool, error) {
	if a.Len() != b.Len() {
		return false, nil
	}
	for _, k := range a.keys {
		other, ok := b.Get(k.S)
		if !ok {
			return false, nil
		}
		if same, err := e.equal(a.values[k.S], other); !same || err != nil {
			return false, err
		}
	}
	return true, nil
}

// less is Python's <, for numbers, strings and lists of them.
func (e *evaluator) less(a, b Value) (bool, error) {
	if x, _, ok := number(a); ok {
		if y, _, ok := number(b); ok {
			return x < y, nil
		}
	}
	switch x := a.(type) {
	case Text:
		if y, ok := b.(Text); ok {
			return x.S < y.S, nil
		}
	case *List:
		if y, ok := b.(*List); ok {
			for i := range min(len(x.Items), len(y.Items)) {
				if same, err := e.equal(x.Items[i], y.Items[i]); err != nil {
					return false, err
				} else if !same {
					return e.less(x.Items[i], y.Items[i])
				}
			}
			return len(x.Items) < len(y.Items), nil
		}
	}
	return false, fmt.Errorf("%s and %s cannot be ordered", typeName(a), typeName(b))
}

// str is Python's str(v).
func (e *evaluator) str(v Value) (Text, error) {
	switch v := v.(type) {
	case Text:
		return v, nil
	case undefined:
		return Text{}, nil
	}
	var b textBuilder
	err := e.repr(&b, v)
	return b.text(), err
}

// repr writes Python's repr(v).
func (e *evaluator) repr(b *textBuilder, v Value) error {
	if err := e.step(1); err != nil {
		return err
	}
	if err := e.fits(b.len()); err != nil {
		return err
	}
	switch v := v.(type) {
	case nil:
		b.add(Trusted("None"))
	case bool:
		b.add(Trusted(map[bool]string{true: "True", false: "False"}[v]))
	case int64:
		b.add(Trusted(strconv.FormatInt(v, 10)))
	case float64:
		b.add(Trusted(formatFloat(v)))
	case Text:
		reprText(b, v)
	case *List:
		return e.reprList(b, v)
	case *Dict:
		return e.reprDict(b, v)
	case undefined:
		b.add(Trusted("Undefined"))
	default:
		return fmt.Errorf("a %s cannot be written", typeName(v))
	}
	return nil
}

func (e *evaluator) reprList(b *textBuilder, l *List) error {
	begin, end := "[", "]"
	if l.tuple {
		begin, end = "(", ")"
		if len(l.Items) == 1 {
			end = ",)"
		}
	}
	b.add(Trusted(begin))
	for i, x := range l.Items {
		if i > 0 {
			b.add(Trusted(", "))
		}
		if err := e.deeper(func() error { return e.repr(b, x) }); err != nil {
			return err
		}
	}
	b.add(Trusted(end))
	return nil
}

func (e *evaluator) reprDict(b *textBuilder, d *Dict) error {
	b.add(Trusted("{"))
	for i, k := range d.keys {
		if i > 0 {
			b.add(Trusted(", "))
		}
		reprText(b, k)
		b.add(Trusted(": "))
		if err := e.deeper(func() error { return e.repr(b, d.values[k.S]) }); err != nil {
			return err
		}
	}
	b.add(Trusted("}"))
	return nil
}

// reprText writes a Python string literal.
func reprText(b *textBuilder, t Text) {
	quote := "'"
	if strings.Contains(t.S, "'") && !strings.Contains(t.S, `"`) {
		quote = `"`
	}
	b.add(Trusted(quote))
	writeEscaped(b, t, func(r rune) string {
		switch {
		case r == '\\':
			return `\\`
		case string(r) == quote:
			return `\` + quote
		case r == '\n':
			return `\n`
		case r == '\r':
			return `\r`
		case r == '\t':
			return `\t`
		case r < 0x20 || r == 0x7f:
			return fmt.Sprintf(`\x%02x`, r)
		}
		return ""
	})
	b.add(Trusted(quote))
}

// writeEscaped writes t with the characters for which escape gives a sequence
// replaced; a sequence is as trusted as its character.
func writeEscaped(b *textBuilder, t Text, escape func(rune) string) {
	from := 0
	for i := 0; i < len(t.S); {
		r, n := utf8.DecodeRuneInString(t.S[i:])
		if esc := escape(r); esc != "" {
			b.add(t.slice(from, i))
			b.add(t.slice(i, i+n).like(esc))
			from = i + n
		}
		i += n
	}
	b.add(t.slice(from, len(t.S)))
}

// formatFloat is Python's repr of a float.
func formatFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
