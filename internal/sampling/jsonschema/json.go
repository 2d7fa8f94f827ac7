package jsonschema

import (
	"slices"

	"hecate/internal/sampling/grammar"
)

// Rules of plain JSON, by the names that grammars give them.
const (
	ruleSpace  = "space"
	ruleString = "string"
	ruleChar   = "char"
	ruleNumber = "number"
	ruleInt    = "integer"
	ruleValue  = "value"
	ruleObject = "object"
	ruleArray  = "array"
)

// Bounds that keep an answer from running on within one value.
const (
	maxIndent   = 24 // spaces after a line end
	maxDigits   = 15 // of a number in front of the point, and behind it: what a float64 tells apart
	maxExponent = 2  // digits of an exponent
)

var (
	digit  = grammar.Class('0', '9')
	space  = grammar.Call(ruleSpace)
	gap    = grammar.Maybe(grammar.Text(" ")) // after a colon
	comma  = grammar.Seq(grammar.Text(","), space)
	quote  = grammar.Text(`"`)
	plain  = []rune{0x20, '!', '#', '[', ']', 0x10ffff} // characters that JSON strings hold as they are
	escape = escapes()
)

// escapes is all that may stand for a character instead of itself. Halves of
// surrogate pairs are left out: alone they are no character.
func escapes() grammar.Expr {
	hex := grammar.Class('0', '9', 'a', 'f', 'A', 'F')
	code := grammar.Alt(
		grammar.Seq(grammar.Class('0', '9', 'a', 'c', 'e', 'f', 'A', 'C', 'E', 'F'), hex, hex, hex),
		grammar.Seq(grammar.Class('d', 'd', 'D', 'D'), grammar.Class('0', '7'), hex, hex))
	return grammar.Alt(
		grammar.Text(`\"`), grammar.Text(`\\`), grammar.Text(`\/`), grammar.Text(`\b`), grammar.Text(`\f`),
		grammar.Text(`\n`), grammar.Text(`\r`), grammar.Text(`\t`), grammar.Seq(grammar.Text(`\u`), code))
}

// commonRules are JSON without a schema.
func commonRules() map[string]grammar.Expr {
	char := grammar.Alt(grammar.Class(plain...), escape)
	pair := grammar.Seq(grammar.Call(ruleString), grammar.Text(":"), gap, grammar.Call(ruleValue))
	whole := grammar.Seq(grammar.Maybe(grammar.Text("-")),
		grammar.Alt(grammar.Text("0"), grammar.Seq(grammar.Class('1', '9'), grammar.Times(digit, 0, maxDigits-1))))
	return map[string]grammar.Expr{
		ruleSpace:  grammar.Maybe(grammar.Alt(grammar.Text(" "), grammar.Seq(grammar.Text("\n"), grammar.Times(grammar.Class(' ', ' ', '\t', '\t'), 0, maxIndent)))),
		ruleChar:   char,
		ruleString: grammar.Seq(quote, grammar.Any(char), quote),
		ruleInt:    whole,
		ruleNumber: grammar.Seq(whole,
			grammar.Maybe(grammar.Seq(grammar.Text("."), grammar.Times(digit, 1, maxDigits))),
			grammar.Maybe(grammar.Seq(grammar.Class('e', 'e', 'E', 'E'), grammar.Maybe(grammar.Class('+', '+', '-', '-')), grammar.Times(digit, 1, maxExponent)))),
		ruleValue: grammar.Alt(grammar.Text("true"), grammar.Text("false"), grammar.Text("null"),
			grammar.Call(ruleString), grammar.Call(ruleNumber), grammar.Call(ruleObject), grammar.Call(ruleArray)),
		ruleObject: braces(list(pair, 0, 0)),
		ruleArray:  brackets(list(grammar.Call(ruleValue), 0, 0)),
	}
}

func braces(inner grammar.Expr) grammar.Expr {
	return grammar.Seq(grammar.Text("{"), space, inner, space, grammar.Text("}"))
}

func brackets(inner grammar.Expr) grammar.Expr {
	return grammar.Seq(grammar.Text("["), space, inner, space, grammar.Text("]"))
}

// list is least to most items with commas between them; most 0 is without a bound.
func list(item grammar.Expr, least, most int) grammar.Expr {
	more := 0
	if most > 0 {
		more = most - 1
	}
	rest := grammar.Times(grammar.Seq(comma, item), max(least-1, 0), more)
	if most == 1 {
		rest = grammar.Expr{}
	}
	whole := grammar.Seq(item, rest)
	if least == 0 {
		return grammar.Maybe(whole)
	}
	return whole
}

// class is one character of ranges, as JSON strings hold it.
func class(ranges []rune) grammar.Expr {
	var out []rune
	alt := []grammar.Expr{}
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for p := 0; p < len(plain); p += 2 {
			if a, z := max(lo, plain[p]), min(hi, plain[p+1]); a <= z {
				out = append(out, a, z)
			}
		}
		for _, c := range special {
			if lo <= c && c <= hi {
				alt = append(alt, grammar.Text(escaped(c)))
			}
		}
	}
	if len(out) > 0 {
		alt = append(alt, grammar.Class(out...))
	}
	return grammar.Alt(alt...)
}

// special are the characters that JSON strings must escape.
var special = func() (out []rune) {
	for c := range rune(0x20) {
		out = append(out, c)
	}
	return append(out, '"', '\\')
}()

func escaped(c rune) string {
	const from, to = "\"\\\b\f\n\r\t", `"\bfnrt`
	if i := slices.Index([]rune(from), c); i >= 0 {
		return `\` + to[i:i+1]
	}
	const hex = "0123456789abcdef"
	return `\u00` + string(hex[c>>4]) + string(hex[c&15])
}

// characters are a string's inside, as JSON holds it.
func characters(s string) string {
	out := ""
	for _, c := range s {
		if c < 0x20 || c == '"' || c == '\\' {
			out += escaped(c)
			continue
		}
		out += string(c)
	}
	return out
}
