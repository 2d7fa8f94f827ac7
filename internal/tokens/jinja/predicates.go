package jinja

import (
	"errors"
	"fmt"
)

type test func(e *evaluator, v Value, p params) (bool, error)

// tests are what may stand after "is".
var tests map[string]test

func init() { // tests reach the evaluator, which reaches this map
	tests = map[string]test{
		"boolean":     isA(func(v Value) bool { _, ok := v.(bool); return ok }),
		"callable":    isA(func(v Value) bool { _, ok := v.(callable); return ok }),
		"defined":     isA(func(v Value) bool { _, ok := v.(undefined); return !ok }),
		"divisibleby": divisibleTest,
		"eq":          compareTest("=="), "equalto": compareTest("=="),
		"even": parityTest(0), "odd": parityTest(1),
		"false": isA(func(v Value) bool { return v == false }),
		"true":  isA(func(v Value) bool { return v == true }),
		"float": isA(func(v Value) bool { _, ok := v.(float64); return ok }),
		"ge":    compareTest(">="), "gt": compareTest(">"), "greaterthan": compareTest(">"),
		"in":       compareTest("in"),
		"integer":  isA(func(v Value) bool { _, ok := v.(int64); return ok }),
		"iterable": isA(isIterable), "sequence": isA(isIterable),
		"le": compareTest("<="), "lt": compareTest("<"), "lessthan": compareTest("<"),
		"lower":     isA(func(v Value) bool { t, ok := v.(Text); return ok && isLower(t.S) }),
		"upper":     isA(func(v Value) bool { t, ok := v.(Text); return ok && isUpper(t.S) }),
		"mapping":   isA(func(v Value) bool { _, ok := v.(*Dict); return ok }),
		"ne":        compareTest("!="),
		"none":      isA(func(v Value) bool { return v == nil }),
		"number":    isA(func(v Value) bool { _, _, ok := number(v); return ok }),
		"sameas":    compareTest("=="),
		"string":    isA(func(v Value) bool { _, ok := v.(Text); return ok }),
		"undefined": isA(func(v Value) bool { _, ok := v.(undefined); return ok }),
	}
}

func isA(is func(Value) bool) test {
	return func(_ *evaluator, v Value, _ params) (bool, error) { return is(v), nil }
}

func isIterable(v Value) bool {
	switch v.(type) {
	case Text, *List, *Dict, undefined:
		return true
	}
	return false
}

func compareTest(op string) test {
	return func(e *evaluator, v Value, p params) (bool, error) {
		if len(p.args) != 1 {
			return false, errors.New("needs one argument")
		}
		return e.compare(op, v, p.args[0])
	}
}

func parityTest(rest int64) test {
	return func(_ *evaluator, v Value, _ params) (bool, error) {
		n, ok := integer(v)
		if !ok {
			return false, fmt.Errorf("a %s is neither even nor odd", typeName(v))
		}
		return n&1 == rest, nil
	}
}

func divisibleTest(_ *evaluator, v Value, p params) (bool, error) {
	n, ok := integer(v)
	by, err := p.int(0, "num", 0)
	if err != nil || !ok || by == 0 {
		return false, errors.New("needs ints, and not zero")
	}
	return n%int64(by) == 0, nil
}
