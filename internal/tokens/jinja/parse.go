package jinja

import (
	"fmt"
	"slices"
)

// Template is a parsed template; it can be rendered any number of times, also
// concurrently.
type Template struct {
	body []stmt
	// literals are the texts and string constants of the source.
	literals []string
}

// Parse reads a template. Errors name the line and what is not supported.
func Parse(source string) (*Template, error) {
	lexemes, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{in: lexemes}
	body, err := p.statements()
	if err != nil {
		return nil, err
	}
	if p.peek().kind != kEOF {
		return nil, p.fail("unexpected %s", p.describe())
	}
	t := &Template{body: body}
	for _, l := range lexemes {
		if l.kind == kData || l.kind == kString {
			t.literals = append(t.literals, l.text)
		}
	}
	return t, nil
}

// Literals returns the texts and string constants of the source, in order.
func (t *Template) Literals() []string { return slices.Clone(t.literals) }

type parser struct {
	in    []lexeme
	i     int
	depth int
	loops int // enclosing for loops, for break and continue
}

func (p *parser) peek() lexeme { return p.in[p.i] }

func (p *parser) next() lexeme {
	l := p.in[p.i]
	if l.kind != kEOF {
		p.i++
	}
	return l
}

func (p *parser) line() pos { return pos(p.peek().line) }

func (p *parser) fail(format string, args ...any) error {
	return &Error{p.peek().line, fmt.Errorf(format, args...)}
}

func (p *parser) describe() string {
	switch l := p.peek(); l.kind {
	case kEOF:
		return "end of template"
	case kBlockEnd, kVarEnd:
		return "end of tag"
	case kData:
		return "text"
	default:
		return fmt.Sprintf("%q", l.text)
	}
}

func (p *parser) isOp(op string) bool { l := p.peek(); return l.kind == kOp && l.text == op }

func (p *parser) isName(id string) bool { l := p.peek(); return l.kind == kName && l.text == id }

func (p *parser) takeOp(op string) bool {
	if p.isOp(op) {
		p.i++
		return true
	}
	return false
}

func (p *parser) takeName(id string) bool {
	if p.isName(id) {
		p.i++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) error {
	if !p.takeOp(op) {
		return p.fail("expected %q, found %s", op, p.describe())
	}
	return nil
}

func (p *parser) expectName() (string, error) {
	if p.peek().kind != kName {
		return "", p.fail("expected a name, found %s", p.describe())
	}
	return p.next().text, nil
}

func (p *parser) expect(k kind) error {
	if p.peek().kind != k {
		return p.fail("unexpected %s", p.describe())
	}
	p.next()
	return nil
}

// nest guards the recursion of the parser, and with it that of the evaluator.
func (p *parser) nest() error {
	p.depth++
	if p.depth > maxNesting {
		return p.fail("%w: nested more than %d levels", ErrLimit, maxNesting)
	}
	return nil
}

func (p *parser) unnest() { p.depth-- }
