package jinja

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

type filter func(e *evaluator, v Value, p params) (Value, error)

// filters are Jinja's filters that templates use.
var filters map[string]filter

func init() { // filters reach the evaluator, which reaches this map
	filters = map[string]filter{
		"abs":        absFilter,
		"capitalize": textFilter("capitalize"),
		"count":      lengthFilter,
		"d":          defaultFilter,
		"default":    defaultFilter,
		"dictsort":   dictSortFilter,
		"first":      endFilter(func(n int) int { return 0 }),
		"float":      floatFilter,
		"indent":     indentFilter,
		"int":        intFilter,
		"items":      itemsFilter,
		"join":       joinFilter,
		"last":       endFilter(func(n int) int { return n - 1 }),
		"length":     lengthFilter,
		"list":       listFilter,
		"lower":      textFilter("lower"),
		"map":        mapFilter,
		"max":        extremeFilter(true),
		"min":        extremeFilter(false),
		"reject":     selectFilter(false, false),
		"rejectattr": selectFilter(true, false),
		"replace":    textFilter("replace"),
		"reverse":    reverseFilter,
		"round":      roundFilter,
		"safe":       sameFilter,
		"select":     selectFilter(false, true),
		"selectattr": selectFilter(true, true),
		"sort":       sortFilter,
		"string":     stringFilter,
		"sum":        sumFilter,
		"title":      textFilter("title"),
		"tojson":     tojsonFilter,
		"trim":       textFilter("strip"),
		"unique":     uniqueFilter,
		"upper":      textFilter("upper"),
	}
}

// textFilter applies a str method to the value as text.
func textFilter(method string) filter {
	return func(e *evaluator, v Value, p params) (Value, error) {
		t, err := e.str(v)
		if err != nil {
			return nil, err
		}
		return textMethods[method](e, t, p)
	}
}

func sameFilter(_ *evaluator, v Value, _ params) (Value, error) { return v, nil }

func stringFilter(e *evaluator, v Value, _ params) (Value, error) { return e.str(v) }

func defaultFilter(_ *evaluator, v Value, p params) (Value, error) {
	_, missing := v.(undefined)
	if missing || p.truth(1, "boolean") && !truth(v) {
		if def, ok := p.get(0, "default_value"); ok {
			return def, nil
		}
		return Text{}, nil
	}
	return v, nil
}

func lengthFilter(e *evaluator, v Value, _ params) (Value, error) {
	switch v := v.(type) {
	case Text:
		return int64(utf8.RuneCountInString(v.S)), e.build(len(v.S))
	case *List:
		return int64(len(v.Items)), nil
	case *Dict:
		return int64(v.Len()), nil
	case undefined:
		return int64(0), nil
	}
	return nil, fmt.Errorf("a %s has no length", typeName(v))
}

func intFilter(_ *evaluator, v Value, p params) (Value, error) {
	def, ok := p.get(0, "default")
	if !ok {
		def = int64(0)
	}
	if n, ok := integer(v); ok {
		return n, nil
	}
	f, isFloat := v.(float64)
	if t, ok := v.(Text); ok {
		s := strings.TrimFunc(t.S, isSpace)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
		var err error
		f, err = strconv.ParseFloat(s, 64)
		isFloat = err == nil
	}
	if isFloat && math.Abs(f) < 1<<62 {
		return int64(f), nil
	}
	return def, nil
}

func floatFilter(_ *evaluator, v Value, p params) (Value, error) {
	if f, _, ok := number(v); ok {
		return f, nil
	}
	if t, ok := v.(Text); ok {
		if f, err := strconv.ParseFloat(strings.TrimFunc(t.S, isSpace), 64); err == nil {
			return f, nil
		}
	}
	if def, ok := p.get(0, "default"); ok {
		return def, nil
	}
	return 0.0, nil
}

func absFilter(_ *evaluator, v Value, _ params) (Value, error) {
	if n, ok := integer(v); ok {
		return max(n, -n), nil
	}
	if f, ok := v.(float64); ok {
		return math.Abs(f), nil
	}
	return nil, fmt.Errorf("a %s has no absolute value", typeName(v))
}

func roundFilter(_ *evaluator, v Value, p params) (Value, error) {
	f, _, ok := number(v)
	if !ok {
		return nil, fmt.Errorf("a %s cannot be rounded", typeName(v))
	}
	digits, err := p.int(0, "precision", 0)
	if err != nil {
		return nil, err
	}
	method, err := p.text(1, "method", "common")
	if err != nil {
		return nil, err
	}
	round := map[string]func(float64) float64{"common": math.RoundToEven, "ceil": math.Ceil, "floor": math.Floor}[method.S]
	if round == nil || digits < 0 || digits > 15 {
		return nil, errors.New("unsupported method or precision")
	}
	scale := math.Pow10(digits)
	return round(f*scale) / scale, nil
}

func itemsFilter(e *evaluator, v Value, _ params) (Value, error) {
	switch v := v.(type) {
	case *Dict:
		return e.items(v)
	case undefined:
		return &List{}, nil
	}
	return nil, fmt.Errorf("a %s has no items", typeName(v))
}

// indentFilter indents all lines but the first and, by default, empty ones.
func indentFilter(e *evaluator, v Value, p params) (Value, error) {
	t, err := e.str(v)
	if err != nil {
		return nil, err
	}
	by := Trusted("    ")
	if w, ok := p.get(0, "width"); ok {
		if n, isInt := integer(w); isInt {
			if n < 0 || n > 1000 {
				return nil, fmt.Errorf("width %d", n)
			}
			by = Trusted(strings.Repeat(" ", int(n)))
		} else if by, err = p.text(0, "width", ""); err != nil {
			return nil, err
		}
	}
	n := strings.Count(t.S, "\n") + 1
	if err := e.step(n); err != nil {
		return nil, err
	}
	if err := e.build(len(t.S) + n*len(by.S)); err != nil {
		return nil, err
	}
	var b textBuilder
	for i, line := range t.split("\n", -1) {
		if i > 0 {
			b.add(Trusted("\n"))
		}
		if (i > 0 || p.truth(1, "first")) && (line.S != "" || p.truth(2, "blank")) {
			b.add(by)
		}
		b.add(line)
	}
	return b.text(), nil
}
