package jinja

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

type textMethod func(e *evaluator, t Text, p params) (Value, error)

// textMethods are Python's str methods that templates use.
var textMethods map[string]textMethod

func init() { // methods reach the evaluator, which reaches this map
	textMethods = map[string]textMethod{
		"strip":        stripMethod(true, true),
		"lstrip":       stripMethod(true, false),
		"rstrip":       stripMethod(false, true),
		"split":        splitMethod(Text.split),
		"rsplit":       splitMethod(Text.rsplit),
		"splitlines":   splitLines,
		"startswith":   affixMethod(strings.HasPrefix),
		"endswith":     affixMethod(strings.HasSuffix),
		"replace":      replaceMethod,
		"upper":        caseMethod(strings.ToUpper),
		"lower":        caseMethod(strings.ToLower),
		"title":        caseMethod(titleCase),
		"capitalize":   caseMethod(capitalize),
		"find":         findMethod(strings.Index),
		"rfind":        findMethod(strings.LastIndex),
		"count":        countMethod,
		"join":         func(e *evaluator, t Text, p params) (Value, error) { return e.joinAll(t, p.args) },
		"removeprefix": cutMethod(true),
		"removesuffix": cutMethod(false),
		"isdigit":      allMethod(unicode.IsDigit),
		"isalpha":      allMethod(unicode.IsLetter),
		"isalnum":      allMethod(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
		"isspace":      allMethod(isSpace),
		"isupper":      func(_ *evaluator, t Text, _ params) (Value, error) { return isUpper(t.S), nil },
		"islower":      func(_ *evaluator, t Text, _ params) (Value, error) { return isLower(t.S), nil },
	}
}

func isUpper(s string) bool { return s == strings.ToUpper(s) && s != strings.ToLower(s) }
func isLower(s string) bool { return s == strings.ToLower(s) && s != strings.ToUpper(s) }

// stripSet reads the characters to strip; none means white space.
func stripSet(p params) (func(rune) bool, error) {
	v, ok := p.get(0, "chars")
	if !ok || v == nil {
		return isSpace, nil
	}
	set, ok := v.(Text)
	if !ok {
		return nil, errors.New("characters to strip must be a str")
	}
	return func(r rune) bool { return strings.ContainsRune(set.S, r) }, nil
}

func stripMethod(left, right bool) textMethod {
	return func(e *evaluator, t Text, p params) (Value, error) {
		drop, err := stripSet(p)
		if err != nil {
			return nil, err
		}
		return t.trim(left, right, drop), e.build(len(t.S))
	}
}

func splitMethod(split func(Text, string, int) []Text) textMethod {
	return func(e *evaluator, t Text, p params) (Value, error) {
		limit, err := p.int(1, "maxsplit", -1)
		if err != nil {
			return nil, err
		}
		if err := e.build(len(t.S)); err != nil {
			return nil, err
		}
		sep, ok := p.get(0, "sep")
		if !ok || sep == nil {
			return e.list(t.fields(limit))
		}
		s, ok := sep.(Text)
		if !ok || s.S == "" {
			return nil, errors.New("the separator must be a str that is not empty")
		}
		if err := e.step(strings.Count(t.S, s.S)); err != nil {
			return nil, err
		}
		return e.list(split(t, s.S, limit))
	}
}

// fields splits at runs of white space, at most n times unless n < 0.
func (t Text) fields(n int) []Text {
	var out []Text
	rest := t.trim(true, false, isSpace)
	for rest.S != "" {
		end := strings.IndexFunc(rest.S, isSpace)
		if end < 0 || n == 0 {
			return append(out, rest)
		}
		out = append(out, rest.slice(0, end))
		rest = rest.slice(end, len(rest.S)).trim(true, false, isSpace)
		n--
	}
	return out
}

func (e *evaluator) list(parts []Text) (Value, error) {
	l := &List{Items: make([]Value, len(parts))}
	for i, p := range parts {
		l.Items[i] = p
	}
	return l, e.step(len(parts))
}

func splitLines(e *evaluator, t Text, p params) (Value, error) {
	if err := e.step(strings.Count(t.S, "\n")); err != nil {
		return nil, err
	}
	parts := t.split("\n", -1)
	if parts[len(parts)-1].S == "" {
		parts = parts[:len(parts)-1]
	}
	for i := range parts {
		parts[i] = parts[i].trim(false, true, func(r rune) bool { return r == '\r' })
		if i < len(parts)-1 && p.truth(0, "keepends") {
			parts[i] = concat(parts[i], Trusted("\n"))
		}
	}
	return e.list(parts)
}

func affixMethod(has func(s, affix string) bool) textMethod {
	return func(_ *evaluator, t Text, p params) (Value, error) {
		v, _ := p.get(0, "prefix")
		if l, ok := v.(*List); ok {
			for _, x := range l.Items {
				if s, ok := x.(Text); ok && has(t.S, s.S) {
					return true, nil
				}
			}
			return false, nil
		}
		s, ok := v.(Text)
		if !ok {
			return nil, errors.New("the argument must be a str")
		}
		return has(t.S, s.S), nil
	}
}

func replaceMethod(e *evaluator, t Text, p params) (Value, error) {
	old, err := p.text(0, "old", "")
	if err != nil {
		return nil, err
	}
	by, err := p.text(1, "new", "")
	if err != nil {
		return nil, err
	}
	limit, err := p.int(2, "count", -1)
	if err != nil || old.S == "" {
		return t, err
	}
	n := strings.Count(t.S, old.S)
	if err := e.step(n); err != nil {
		return nil, err
	}
	// Both factors are bounded by the output limit, so this cannot overflow.
	if err := e.build(len(t.S) + n*len(by.S)); err != nil {
		return nil, err
	}
	return t.replace(old.S, by, limit), nil
}

func caseMethod(change func(string) string) textMethod {
	return func(e *evaluator, t Text, _ params) (Value, error) {
		if err := e.build(len(t.S)); err != nil {
			return nil, err
		}
		return t.like(change(t.S)), nil
	}
}

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:n]) + strings.ToLower(s[n:])
}

// titleCase is Python's str.title: a letter after a letter is small.
func titleCase(s string) string {
	after := false
	return strings.Map(func(r rune) rune {
		was := after
		after = unicode.IsLetter(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func findMethod(index func(s, sub string) int) textMethod {
	return func(e *evaluator, t Text, p params) (Value, error) {
		sub, err := p.text(0, "sub", "")
		if err != nil {
			return nil, err
		}
		i := index(t.S, sub.S)
		if i < 0 {
			return int64(-1), nil
		}
		return int64(utf8.RuneCountInString(t.S[:i])), e.build(len(t.S))
	}
}

func countMethod(e *evaluator, t Text, p params) (Value, error) {
	sub, err := p.text(0, "sub", "")
	if err != nil {
		return nil, err
	}
	return int64(strings.Count(t.S, sub.S)), e.build(len(t.S))
}

func cutMethod(front bool) textMethod {
	return func(_ *evaluator, t Text, p params) (Value, error) {
		affix, err := p.text(0, "affix", "")
		switch {
		case err != nil:
			return nil, err
		case front && strings.HasPrefix(t.S, affix.S):
			return t.slice(len(affix.S), len(t.S)), nil
		case !front && strings.HasSuffix(t.S, affix.S):
			return t.slice(0, len(t.S)-len(affix.S)), nil
		}
		return t, nil
	}
}

func allMethod(is func(rune) bool) textMethod {
	return func(e *evaluator, t Text, _ params) (Value, error) {
		all := t.S != "" && strings.IndexFunc(t.S, func(r rune) bool { return !is(r) }) < 0
		return all, e.build(len(t.S))
	}
}

// joinAll is sep.join(args[0]).
func (e *evaluator) joinAll(sep Text, args []Value) (Value, error) {
	if len(args) == 0 {
		return nil, errors.New("nothing to join")
	}
	items, err := e.iterate(args[0])
	if err != nil {
		return nil, err
	}
	var b textBuilder
	for i, x := range items {
		t, err := e.str(x)
		if err != nil {
			return nil, err
		}
		if err := e.fits(b.len() + len(sep.S) + len(t.S)); err != nil {
			return nil, err
		}
		if err := e.build(len(sep.S) + len(t.S)); err != nil {
			return nil, err
		}
		if i > 0 {
			b.add(sep)
		}
		b.add(t)
	}
	return b.text(), nil
}

// dictMethod returns a bound method of d, nil if there is none of that name.
func dictMethod(d *Dict, id string) Value {
	switch id {
	case "items":
		return callable(func(e *evaluator, _ []Value, _ map[string]Value) (Value, error) { return e.items(d) })
	case "keys":
		return callable(func(e *evaluator, _ []Value, _ map[string]Value) (Value, error) { return e.list(d.keys) })
	case "values":
		return callable(func(e *evaluator, _ []Value, _ map[string]Value) (Value, error) {
			l := &List{}
			for _, k := range d.keys {
				l.Items = append(l.Items, d.values[k.S])
			}
			return l, e.step(len(l.Items))
		})
	case "get":
		return callable(func(_ *evaluator, args []Value, kw map[string]Value) (Value, error) {
			p := params{args, kw}
			key, err := p.text(0, "key", "")
			if err != nil {
				return nil, err
			}
			if v, ok := d.Get(key.S); ok {
				return v, nil
			}
			def, _ := p.get(1, "default")
			return def, nil
		})
	}
	return nil
}

// items lists a dict's (key, value) pairs.
func (e *evaluator) items(d *Dict) (Value, error) {
	l := &List{}
	for _, k := range d.keys {
		l.Items = append(l.Items, &List{Items: []Value{k, d.values[k.S]}, tuple: true})
	}
	return l, e.step(len(l.Items))
}
