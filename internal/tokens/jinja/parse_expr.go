package jinja

import (
	"slices"
	"strconv"
)

// tuple parses an expression, or several with commas between.
func (p *parser) tuple() (expr, error) {
	at := p.line()
	first, err := p.expr()
	if err != nil || !p.isOp(",") {
		return first, err
	}
	items := []expr{first}
	for p.takeOp(",") {
		if k := p.peek().kind; k == kVarEnd || k == kBlockEnd || p.isOp(")") {
			break
		}
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return &listLit{at, items, true}, nil
}

// expr parses a conditional expression, the loosest binding of all.
func (p *parser) expr() (expr, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	at := p.line()
	x, err := p.or()
	if err != nil {
		return nil, err
	}
	for p.takeName("if") {
		cond, err := p.or()
		if err != nil {
			return nil, err
		}
		c := &conditional{pos: at, then: x, cond: cond}
		if p.takeName("else") {
			if c.other, err = p.expr(); err != nil {
				return nil, err
			}
		}
		x = c
	}
	return x, nil
}

// chain parses x op y op z, all of one precedence, to the left.
func (p *parser) chain(operand func() (expr, error), isOp func() (string, bool)) (expr, error) {
	x, err := operand()
	for n := 0; err == nil; n++ {
		at := p.line()
		op, ok := isOp()
		if !ok {
			return x, nil
		}
		if n == maxNesting {
			return nil, p.fail("%w: more than %d operators in a row", ErrLimit, maxNesting)
		}
		p.next()
		var y expr
		if y, err = operand(); err == nil {
			x = &binary{at, op, x, y}
		}
	}
	return nil, err
}

func (p *parser) nameOp(id string) func() (string, bool) {
	return func() (string, bool) { return id, p.isName(id) }
}

func (p *parser) anyOp(ops ...string) func() (string, bool) {
	return func() (string, bool) {
		l := p.peek()
		return l.text, l.kind == kOp && slices.Contains(ops, l.text)
	}
}

func (p *parser) or() (expr, error)  { return p.chain(p.and, p.nameOp("or")) }
func (p *parser) and() (expr, error) { return p.chain(p.not, p.nameOp("and")) }

func (p *parser) not() (expr, error) {
	at := p.line()
	if !p.takeName("not") {
		return p.compare()
	}
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	x, err := p.not()
	return &unary{at, "not", x}, err
}

// compareOp takes a comparison operator, if one is next.
func (p *parser) compareOp() string {
	if op, ok := p.anyOp("==", "!=", "<", "<=", ">", ">=")(); ok {
		p.next()
		return op
	}
	if p.takeName("in") {
		return "in"
	}
	if p.isName("not") && p.in[p.i+1].kind == kName && p.in[p.i+1].text == "in" {
		p.i += 2
		return "not in"
	}
	return ""
}

func (p *parser) compare() (expr, error) {
	first, err := p.sum()
	if err != nil {
		return nil, err
	}
	c := &comparison{pos: p.line(), first: first}
	for {
		op := p.compareOp()
		if op == "" {
			break
		}
		x, err := p.sum()
		if err != nil {
			return nil, err
		}
		c.ops, c.rest = append(c.ops, op), append(c.rest, x)
	}
	if len(c.ops) == 0 {
		return first, nil
	}
	return c, nil
}

func (p *parser) sum() (expr, error)    { return p.chain(p.concat, p.anyOp("+", "-")) }
func (p *parser) concat() (expr, error) { return p.chain(p.product, p.anyOp("~")) }
func (p *parser) product() (expr, error) {
	return p.chain(p.power, p.anyOp("*", "/", "//", "%"))
}
func (p *parser) power() (expr, error) { return p.chain(p.unary, p.anyOp("**")) }

func (p *parser) unary() (expr, error) {
	x, err := p.signed()
	if err != nil {
		return nil, err
	}
	return p.filtersAndTests(x)
}

// signed parses an operand with its signs, which bind closer than anything but
// access: Jinja, unlike Python, reads -1 ** 2 as (-1) ** 2.
func (p *parser) signed() (expr, error) {
	at := p.line()
	op, ok := p.anyOp("-", "+")()
	if !ok {
		return p.postfix()
	}
	p.next()
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	x, err := p.signed()
	return &unary{at, op, x}, err
}

// filtersAndTests parses what may follow an operand: | filter, is test.
func (p *parser) filtersAndTests(x expr) (expr, error) {
	for n := 0; ; n++ {
		if n == maxNesting {
			return nil, p.fail("%w: more than %d filters in a row", ErrLimit, maxNesting)
		}
		switch {
		case p.takeOp("|"):
			f, err := p.filterCall(x)
			if err != nil {
				return nil, err
			}
			x = f
		case p.takeName("is"):
			t, err := p.test(x)
			if err != nil {
				return nil, err
			}
			x = t
		case p.isOp("("):
			var err error
			if x, err = p.callOf(x); err != nil {
				return nil, err
			}
		default:
			return x, nil
		}
	}
}

func (p *parser) filterCall(of expr) (*filtering, error) {
	f := &filtering{pos: p.line(), of: of}
	var err error
	if f.name, err = p.expectName(); err != nil {
		return nil, err
	}
	if filters[f.name] == nil {
		return nil, p.fail("unsupported filter %q", f.name)
	}
	if p.isOp("(") {
		f.arguments, err = p.arguments()
	}
	return f, err
}

func (p *parser) test(of expr) (expr, error) {
	t := &isTest{pos: p.line(), of: of, not: p.takeName("not")}
	l := p.peek()
	t.name = l.text
	if l.kind != kName || tests[t.name] == nil {
		return nil, p.fail("unsupported test %s", p.describe())
	}
	p.next()
	var err error
	switch l := p.peek(); {
	case l.kind == kOp && l.text == "(":
		t.arguments, err = p.arguments()
	case l.kind == kString, l.kind == kInt, l.kind == kFloat,
		l.kind == kName && !slices.Contains([]string{"and", "or", "not", "if", "else", "is", "in"}, l.text),
		l.kind == kOp && (l.text == "[" || l.text == "{"):
		var x expr // one argument without parentheses
		x, err = p.postfix()
		t.args = []expr{x}
	}
	return t, err
}

func (p *parser) postfix() (expr, error) {
	x, err := p.primary()
	for n := 0; err == nil; n++ {
		if n == maxNesting {
			return nil, p.fail("%w: more than %d accesses in a row", ErrLimit, maxNesting)
		}
		at := p.line()
		switch {
		case p.takeOp("."):
			if l := p.peek(); l.kind == kInt {
				p.next()
				x, err = p.index(at, x, l)
				continue
			}
			var attr string
			attr, err = p.expectName()
			x = &attribute{at, x, attr}
		case p.takeOp("["):
			x, err = p.subscript(at, x)
		case p.isOp("("):
			x, err = p.callOf(x)
		default:
			return x, nil
		}
	}
	return nil, err
}

func (p *parser) index(at pos, x expr, l lexeme) (expr, error) {
	v, err := p.int(l)
	return &subscript{at, x, v}, err
}

func (p *parser) int(l lexeme) (expr, error) {
	n, err := strconv.ParseInt(l.text, 10, 64)
	if err != nil {
		return nil, p.fail("number %s is too large", l.text)
	}
	return &literal{pos(l.line), n}, nil
}

// subscript parses what follows [: a key, or a slice.
func (p *parser) subscript(at pos, of expr) (expr, error) {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		if !p.isOp(":") && !p.isOp("]") {
			x, err := p.tuple()
			if err != nil {
				return nil, err
			}
			parts[n] = x
		}
		if !p.takeOp(":") {
			break
		}
	}
	if err := p.expectOp("]"); err != nil {
		return nil, err
	}
	if n > 0 {
		return &slicing{at, of, parts[0], parts[1], parts[2]}, nil
	}
	if parts[0] == nil {
		return nil, p.fail("empty subscript")
	}
	return &subscript{at, of, parts[0]}, nil
}

func (p *parser) callOf(fn expr) (expr, error) {
	c := &call{pos: p.line(), fn: fn}
	var err error
	c.arguments, err = p.arguments()
	return c, err
}

func (p *parser) arguments() (a arguments, err error) {
	if err := p.expectOp("("); err != nil {
		return a, err
	}
	for !p.takeOp(")") {
		if p.isOp("*") || p.isOp("**") {
			return a, p.fail("unsupported: %s arguments", p.peek().text)
		}
		key := ""
		if l := p.peek(); l.kind == kName && p.in[p.i+1].kind == kOp && p.in[p.i+1].text == "=" {
			key = l.text
			p.i += 2
		}
		x, err := p.expr()
		if err != nil {
			return a, err
		}
		switch {
		case key != "":
			a.names, a.kw = append(a.names, key), append(a.kw, x)
		case len(a.kw) > 0:
			return a, p.fail("positional argument after keyword argument")
		default:
			a.args = append(a.args, x)
		}
		if !p.takeOp(",") && !p.isOp(")") {
			return a, p.fail("expected %q, found %s", ")", p.describe())
		}
	}
	return a, nil
}

func (p *parser) primary() (expr, error) {
	at, begin := p.line(), p.i
	switch l := p.next(); l.kind {
	case kName:
		if v, ok := constants[l.text]; ok {
			return &literal{at, v}, nil
		}
		return &name{at, l.text}, nil
	case kString:
		s := l.text
		for p.peek().kind == kString { // neighbours join
			s += p.next().text
		}
		return &literal{at, Trusted(s)}, nil
	case kInt:
		return p.int(l)
	case kFloat:
		f, err := strconv.ParseFloat(l.text, 64)
		if err != nil {
			return nil, p.fail("number %s is too large", l.text)
		}
		return &literal{at, f}, nil
	case kOp:
		switch l.text {
		case "(":
			return p.parens(at)
		case "[":
			items, err := p.items("]")
			return &listLit{at, items, false}, err
		case "{":
			return p.dict(at)
		}
	}
	p.i = begin
	return nil, p.fail("expected an expression, found %s", p.describe())
}

var constants = map[string]Value{
	"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil,
}

func (p *parser) parens(at pos) (expr, error) {
	if p.takeOp(")") {
		return &listLit{at, nil, true}, nil
	}
	x, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return x, p.expectOp(")")
}

func (p *parser) items(end string) ([]expr, error) {
	var out []expr
	for !p.takeOp(end) {
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, x)
		if !p.takeOp(",") && !p.isOp(end) {
			return nil, p.fail("expected %q, found %s", end, p.describe())
		}
	}
	return out, nil
}

func (p *parser) dict(at pos) (expr, error) {
	d := &dictLit{pos: at}
	for !p.takeOp("}") {
		k, err := p.expr()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		v, err := p.expr()
		if err != nil {
			return nil, err
		}
		d.keys, d.values = append(d.keys, k), append(d.values, v)
		if !p.takeOp(",") && !p.isOp("}") {
			return nil, p.fail("expected %q, found %s", "}", p.describe())
		}
	}
	return d, nil
}
