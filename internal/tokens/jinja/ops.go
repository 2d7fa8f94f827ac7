package jinja

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

func (e *evaluator) unary(x *unary, s *scope) (Value, error) {
	v, err := e.eval(x.x, s)
	if err != nil {
		return nil, err
	}
	if x.op == "not" {
		return !truth(v), nil
	}
	if n, ok := integer(v); ok {
		if x.op == "-" {
			n = -n
		}
		return n, nil
	}
	if f, ok := v.(float64); ok {
		if x.op == "-" {
			f = -f
		}
		return f, nil
	}
	return nil, fmt.Errorf("%s before a %s", x.op, typeName(v))
}

func (e *evaluator) binary(x *binary, s *scope) (Value, error) {
	a, err := e.eval(x.x, s)
	if err != nil {
		return nil, err
	}
	switch x.op {
	case "and":
		if !truth(a) {
			return a, nil
		}
		return e.eval(x.y, s)
	case "or":
		if truth(a) {
			return a, nil
		}
		return e.eval(x.y, s)
	}
	b, err := e.eval(x.y, s)
	if err != nil {
		return nil, err
	}
	return e.operate(x.op, a, b)
}

func (e *evaluator) operate(op string, a, b Value) (Value, error) {
	switch op {
	case "~":
		return e.join(a, b)
	case "+":
		if v, done, err := e.plus(a, b); done {
			return v, err
		}
	case "*":
		if v, done, err := e.repeat(a, b); done {
			return v, err
		}
	}
	x, xInt, ok1 := number(a)
	y, yInt, ok2 := number(b)
	if !ok1 || !ok2 {
		return nil, fmt.Errorf("unsupported: %s %s %s", typeName(a), op, typeName(b))
	}
	if xInt && yInt && op != "/" && op != "**" {
		n, _ := integer(a)
		m, _ := integer(b)
		return intOp(op, n, m)
	}
	return floatOp(op, x, y)
}

// plus handles + between texts and between lists.
func (e *evaluator) plus(a, b Value) (v Value, done bool, err error) {
	switch x := a.(type) {
	case Text:
		y, ok := b.(Text)
		if !ok {
			return nil, true, fmt.Errorf("unsupported: str + %s", typeName(b))
		}
		if err := e.build(len(x.S) + len(y.S)); err != nil {
			return nil, true, err
		}
		return concat(x, y), true, nil
	case *List:
		y, ok := b.(*List)
		if !ok {
			return nil, true, fmt.Errorf("unsupported: list + %s", typeName(b))
		}
		if err := e.step(len(x.Items) + len(y.Items)); err != nil {
			return nil, true, err
		}
		return &List{Items: append(append([]Value{}, x.Items...), y.Items...)}, true, nil
	}
	return nil, false, nil
}

// join is a ~ b: both as text.
func (e *evaluator) join(a, b Value) (Value, error) {
	x, err := e.str(a)
	if err != nil {
		return nil, err
	}
	y, err := e.str(b)
	if err != nil {
		return nil, err
	}
	if err := e.build(len(x.S) + len(y.S)); err != nil {
		return nil, err
	}
	return concat(x, y), nil
}

// repeat handles text * n.
func (e *evaluator) repeat(a, b Value) (v Value, done bool, err error) {
	t, ok := a.(Text)
	if !ok {
		if t, ok = b.(Text); !ok {
			return nil, false, nil
		}
		b = a
	}
	n, ok := integer(b)
	if !ok {
		return nil, true, fmt.Errorf("unsupported: str * %s", typeName(b))
	}
	if n <= 0 || t.S == "" {
		return Text{}, true, nil
	}
	if n > int64(e.limits.Output) { // so that the product cannot overflow
		return nil, true, fmt.Errorf("%w: a text repeated %d times", ErrLimit, n)
	}
	if err := e.build(len(t.S) * int(n)); err != nil {
		return nil, true, err
	}
	return t.like(strings.Repeat(t.S, int(n))), true, nil
}

var errDivision = errors.New("division by zero")

func intOp(op string, a, b int64) (Value, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	}
	if b == 0 {
		return nil, errDivision
	}
	q, r := a/b, a%b
	if r != 0 && (r < 0) != (b < 0) { // Python rounds down
		q, r = q-1, r+b
	}
	if op == "//" {
		return q, nil
	}
	return r, nil
}

func floatOp(op string, a, b float64) (Value, error) {
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	case "**":
		p := math.Pow(a, b)
		if p == math.Trunc(p) && math.Abs(p) < 1<<53 && a == math.Trunc(a) && b >= 0 {
			return int64(p), nil
		}
		return p, nil
	}
	if b == 0 {
		return nil, errDivision
	}
	switch op {
	case "/":
		return a / b, nil
	case "//":
		return math.Floor(a / b), nil
	}
	return a - b*math.Floor(a/b), nil
}

func (e *evaluator) comparison(x *comparison, s *scope) (Value, error) {
	left, err := e.eval(x.first, s)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		right, err := e.eval(x.rest[i], s)
		if err != nil {
			return nil, err
		}
		ok, err := e.compare(op, left, right)
		if err != nil || !ok {
			return false, err
		}
		left = right
	}
	return true, nil
}

func (e *evaluator) compare(op string, a, b Value) (ok bool, err error) {
	switch op {
	case "==":
		return e.equal(a, b)
	case "!=":
		ok, err = e.equal(a, b)
		return !ok, err
	case "<":
		return e.less(a, b)
	case ">":
		return e.less(b, a)
	case "<=":
		ok, err = e.less(b, a)
		return !ok, err
	case ">=":
		ok, err = e.less(a, b)
		return !ok, err
	case "in":
		return e.contains(b, a)
	case "not in":
		ok, err = e.contains(b, a)
		return !ok, err
	}
	panic("BUG: comparison " + op)
}

// contains is Python's item in of.
func (e *evaluator) contains(of, item Value) (bool, error) {
	switch of := of.(type) {
	case Text:
		t, ok := item.(Text)
		if !ok {
			return false, fmt.Errorf("a %s cannot be in a str", typeName(item))
		}
		if err := e.build(len(of.S)); err != nil { // time, here
			return false, err
		}
		return strings.Contains(of.S, t.S), nil
	case *List:
		for _, x := range of.Items {
			if same, err := e.equal(x, item); same || err != nil {
				return same, err
			}
		}
		return false, nil
	case *Dict:
		t, ok := item.(Text)
		if !ok {
			return false, nil
		}
		_, ok = of.Get(t.S)
		return ok, nil
	case undefined:
		return false, nil
	}
	return false, fmt.Errorf("a %s contains nothing", typeName(of))
}

func (e *evaluator) attributeOf(x *attribute, s *scope) (Value, error) {
	of, err := e.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	return getAttr(of, x.attr)
}

// getAttr is of.attr: methods first, then keys, as Jinja looks them up.
func getAttr(of Value, attr string) (Value, error) {
	switch v := of.(type) {
	case undefined:
		return nil, fmt.Errorf("%q is undefined", v.name)
	case loopState:
		return v.attr(attr), nil
	case *namespace:
		if x, ok := v.vars[attr]; ok {
			return x, nil
		}
	case Text:
		if m := textMethods[attr]; m != nil {
			return callable(func(e *evaluator, args []Value, kw map[string]Value) (Value, error) {
				out, err := m(e, v, params{args, kw})
				if err != nil {
					return nil, fmt.Errorf("str.%s: %w", attr, err)
				}
				return out, nil
			}), nil
		}
	case *Dict:
		if m := dictMethod(v, attr); m != nil {
			return m, nil
		}
		if x, ok := v.Get(attr); ok {
			return x, nil
		}
	}
	return undefined{attr}, nil
}

func (e *evaluator) subscriptOf(x *subscript, s *scope) (Value, error) {
	of, err := e.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	key, err := e.eval(x.key, s)
	if err != nil {
		return nil, err
	}
	return e.item(of, key)
}

// item is of[key]; a missing item is undefined, as in Jinja.
func (e *evaluator) item(of, key Value) (Value, error) {
	if u, ok := of.(undefined); ok {
		return nil, fmt.Errorf("%q is undefined", u.name)
	}
	if n, ok := integer(key); ok {
		items, err := e.indexable(of)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			n += int64(len(items))
		}
		if n < 0 || n >= int64(len(items)) {
			return undefined{fmt.Sprint("item ", key)}, nil
		}
		return items[n], nil
	}
	t, ok := key.(Text)
	if !ok {
		return undefined{typeName(key)}, nil
	}
	if d, ok := of.(*Dict); ok {
		if v, ok := d.Get(t.S); ok {
			return v, nil
		}
		return undefined{t.S}, nil
	}
	return getAttr(of, t.S)
}

// indexable lists the elements that integer subscripts reach.
func (e *evaluator) indexable(of Value) ([]Value, error) {
	switch of := of.(type) {
	case *List:
		return of.Items, nil
	case Text:
		return e.iterate(of)
	}
	return nil, nil
}

func (e *evaluator) slice(x *slicing, s *scope) (Value, error) {
	of, err := e.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, b := range []expr{x.from, x.to, x.step} {
		if b == nil {
			continue
		}
		v, err := e.eval(b, s)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		n, ok := integer(v)
		if !ok {
			return nil, fmt.Errorf("a %s as slice bound", typeName(v))
		}
		bounds[i] = &n
	}
	switch of := of.(type) {
	case *List:
		return &List{Items: sliceOf(of.Items, bounds), tuple: of.tuple}, e.step(len(of.Items))
	case Text:
		return e.sliceText(of, bounds)
	case undefined:
		return nil, fmt.Errorf("%q is undefined", of.name)
	}
	return nil, fmt.Errorf("a %s cannot be sliced", typeName(of))
}

func (e *evaluator) sliceText(t Text, bounds [3]*int64) (Value, error) {
	if err := e.build(len(t.S)); err != nil {
		return nil, err
	}
	starts := make([]int, 0, len(t.S)+1) // of the characters
	for i := range t.S {
		starts = append(starts, i)
	}
	var b textBuilder
	picked := sliceOf(starts, bounds)
	if bounds[2] == nil && len(picked) > 0 {
		last := picked[len(picked)-1]
		_, n := utf8.DecodeRuneInString(t.S[last:])
		return t.slice(picked[0], last+n), nil
	}
	if err := e.step(len(picked)); err != nil {
		return nil, err
	}
	for _, i := range picked {
		_, n := utf8.DecodeRuneInString(t.S[i:])
		b.add(t.slice(i, i+n))
	}
	return b.text(), nil
}

// sliceOf is Python's items[from:to:step].
func sliceOf[T any](items []T, bounds [3]*int64) []T {
	n, step := int64(len(items)), int64(1)
	if bounds[2] != nil && *bounds[2] != 0 {
		step = max(-n-1, min(n+1, *bounds[2]))
	}
	clamp := func(b *int64, def, lo, hi int64) int64 {
		if b == nil {
			return def
		}
		i := *b
		if i < 0 {
			i += n
		}
		return max(lo, min(hi, i))
	}
	var out []T
	if step > 0 {
		for i, end := clamp(bounds[0], 0, 0, n), clamp(bounds[1], n, 0, n); i < end; i += step {
			out = append(out, items[i])
		}
		return out
	}
	for i, end := clamp(bounds[0], n-1, -1, n-1), clamp(bounds[1], -1, -1, n-1); i > end; i += step {
		out = append(out, items[i])
	}
	return out
}
