package jsonschema

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"unicode"

	"hecate/internal/sampling/grammar"
)

// pattern gives the strings that a regular expression finds something in, as JSON
// holds them. Of the dialect of JSON Schema it takes what Go's own has too: no
// look-around and no back-references.
func pattern(p string) (grammar.Expr, error) {
	tree, err := syntax.Parse(p, syntax.Perl)
	if err != nil {
		var e *syntax.Error
		if errors.As(err, &e) {
			return grammar.Expr{}, fmt.Errorf("the pattern cannot be used: %s: `%s`", e.Code, e.Expr)
		}
		return grammar.Expr{}, err
	}
	return found(tree, false, false)
}

// found gives the texts in which an expression is found: with anything before it
// and behind it, unless it is held to the beginning or the end.
func found(tree *syntax.Regexp, begins, ends bool) (grammar.Expr, error) {
	parts := []*syntax.Regexp{tree}
	if tree.Op == syntax.OpConcat {
		parts = tree.Sub
	}
	for len(parts) > 0 && isBegin(parts[0]) {
		begins, parts = true, parts[1:]
	}
	for len(parts) > 0 && isEnd(parts[len(parts)-1]) {
		ends, parts = true, parts[:len(parts)-1]
	}
	if len(parts) == 1 && (parts[0].Op == syntax.OpAlternate || parts[0].Op == syntax.OpCapture) {
		var alt []grammar.Expr
		for _, sub := range parts[0].Sub {
			e, err := found(sub, begins, ends)
			if err != nil {
				return grammar.Expr{}, err
			}
			alt = append(alt, e)
		}
		return grammar.Alt(alt...), nil
	}
	var seq []grammar.Expr
	anything := grammar.Any(class([]rune{0, unicode.MaxRune}))
	if !begins {
		seq = append(seq, anything)
	}
	for _, part := range parts {
		e, err := expression(part)
		if err != nil {
			return grammar.Expr{}, err
		}
		seq = append(seq, e)
	}
	if !ends {
		seq = append(seq, anything)
	}
	return grammar.Seq(seq...), nil
}

func isBegin(r *syntax.Regexp) bool { return r.Op == syntax.OpBeginText || r.Op == syntax.OpBeginLine }
func isEnd(r *syntax.Regexp) bool   { return r.Op == syntax.OpEndText || r.Op == syntax.OpEndLine }

func expression(r *syntax.Regexp) (grammar.Expr, error) {
	switch r.Op {
	case syntax.OpEmptyMatch:
		return grammar.Expr{}, nil
	case syntax.OpNoMatch:
		return grammar.Alt(), nil
	case syntax.OpLiteral:
		var seq []grammar.Expr
		for _, c := range r.Rune {
			seq = append(seq, class(folded(c, r.Flags&syntax.FoldCase != 0)))
		}
		return grammar.Seq(seq...), nil
	case syntax.OpCharClass:
		return class(r.Rune), nil
	case syntax.OpAnyChar:
		return class([]rune{0, unicode.MaxRune}), nil
	case syntax.OpAnyCharNotNL: // ECMA's dot leaves out all line ends
		return class([]rune{0, 9, 11, 12, 14, 0x2027, 0x202a, unicode.MaxRune}), nil
	case syntax.OpCapture:
		return expression(r.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return repeated(r)
	case syntax.OpConcat, syntax.OpAlternate:
		return combined(r)
	}
	return grammar.Expr{}, fmt.Errorf("the pattern cannot be used: `%s` within it is not supported", r)
}

// folded is the ranges of one character, perhaps in all its cases.
func folded(c rune, fold bool) []rune {
	out := []rune{c, c}
	if fold {
		for o := unicode.SimpleFold(c); o != c; o = unicode.SimpleFold(o) {
			out = append(out, o, o)
		}
	}
	return out
}

func repeated(r *syntax.Regexp) (grammar.Expr, error) {
	e, err := expression(r.Sub[0])
	if err != nil {
		return e, err
	}
	switch r.Op {
	case syntax.OpStar:
		return grammar.Any(e), nil
	case syntax.OpPlus:
		return grammar.Times(e, 1, 0), nil
	case syntax.OpQuest:
		return grammar.Maybe(e), nil
	}
	switch {
	case r.Max == 0:
		return grammar.Expr{}, nil
	case r.Max < 0:
		return grammar.Times(e, r.Min, 0), nil
	}
	return grammar.Times(e, r.Min, r.Max), nil
}

func combined(r *syntax.Regexp) (grammar.Expr, error) {
	var list []grammar.Expr
	for _, sub := range r.Sub {
		e, err := expression(sub)
		if err != nil {
			return e, err
		}
		list = append(list, e)
	}
	if r.Op == syntax.OpConcat {
		return grammar.Seq(list...), nil
	}
	return grammar.Alt(list...), nil
}
