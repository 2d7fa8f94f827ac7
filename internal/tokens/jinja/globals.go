package jinja

import (
	"errors"
	"fmt"
	"maps"
	"strings"
)

// globals are the functions that every template sees.
var globals = map[string]Value{
	"range": callable(func(e *evaluator, args []Value, _ map[string]Value) (Value, error) { return e.rangeOf(args) }),
	"namespace": callable(func(_ *evaluator, args []Value, kw map[string]Value) (Value, error) {
		ns := &namespace{map[string]Value{}}
		for _, a := range args {
			d, ok := a.(*Dict)
			if !ok {
				return nil, fmt.Errorf("namespace of a %s", typeName(a))
			}
			maps.Copy(ns.vars, d.values)
		}
		maps.Copy(ns.vars, kw)
		return ns, nil
	}),
	"dict": callable(func(_ *evaluator, args []Value, kw map[string]Value) (Value, error) {
		if len(args) > 0 || len(kw) > 1 {
			return nil, errors.New("dict: only a single keyword argument is supported") // Go loses their order
		}
		d := NewDict()
		for k, v := range kw {
			d.Set(Trusted(k), v)
		}
		return d, nil
	}),
	"raise_exception": callable(func(e *evaluator, args []Value, _ map[string]Value) (Value, error) {
		msg := "the template refused the conversation"
		if len(args) > 0 {
			t, err := e.str(args[0])
			if err != nil {
				return nil, err
			}
			msg = t.S
		}
		return nil, &RaisedError{msg}
	}),
	"strftime_now": callable(func(e *evaluator, args []Value, _ map[string]Value) (Value, error) {
		format, err := params{args: args}.text(0, "format", "")
		if err != nil {
			return nil, err
		}
		if err := e.build(len(format.S) * 10); err != nil {
			return nil, err
		}
		s, err := e.strftime(format.S)
		return format.like(s), err
	}),
}

func (e *evaluator) rangeOf(args []Value) (Value, error) {
	var n [3]int64
	for i, a := range args {
		v, ok := integer(a)
		if !ok || i > 2 || v < -1<<40 || v > 1<<40 {
			return nil, errors.New("range needs one to three ints of sensible size")
		}
		n[i] = v
	}
	from, to, step := n[0], n[1], n[2]
	switch len(args) {
	case 0:
		return nil, errors.New("range without bounds")
	case 1:
		from, to, step = 0, n[0], 1
	case 2:
		step = 1
	}
	if step == 0 {
		return nil, errors.New("range with step 0")
	}
	l := &List{}
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if err := e.step(1); err != nil {
			return nil, err
		}
		l.Items = append(l.Items, i)
	}
	return l, nil
}

// layouts are Go's layouts of strftime's directives.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'H': "15", 'I': "03", 'm': "01", 'M': "04",
	'p': "PM", 'S': "05", 'y': "06", 'Y': "2006", 'Z': "MST", 'z': "-0700", 'j': "002", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
}

// strftime is Python's, for the directives of layouts, %% and their variants
// without leading zeros (%-d).
func (e *evaluator) strftime(format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		short := format[i] == '-' && i+1 < len(format)
		if short {
			i++
		}
		switch layout, ok := layouts[format[i]]; {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			return "", fmt.Errorf("strftime_now: unsupported directive %%%c", format[i])
		case short:
			s := strings.TrimLeft(e.now.Format(layout), "0 ")
			if s == "" {
				s = "0"
			}
			b.WriteString(s)
		default:
			b.WriteString(e.now.Format(layout))
		}
	}
	return b.String(), nil
}
