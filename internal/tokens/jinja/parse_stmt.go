package jinja

import "slices"

// statements parses until one of the named tags begins (which is left, its
// name being the next lexeme) or the template ends.
func (p *parser) statements(until ...string) ([]stmt, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer p.unnest()
	var body []stmt
	for {
		switch l := p.peek(); l.kind {
		case kEOF:
			if len(until) > 0 {
				return nil, p.fail("missing {%% %s %%}", until[len(until)-1])
			}
			return body, nil
		case kData:
			body = append(body, text{p.next().text})
		case kVarBegin:
			s, err := p.output()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
		case kBlockBegin:
			p.next()
			if k := p.peek(); k.kind == kName && slices.Contains(until, k.text) {
				return body, nil
			}
			s, err := p.statement()
			if err != nil {
				return nil, err
			}
			body = append(body, s)
		default:
			return nil, p.fail("unexpected %s", p.describe())
		}
	}
}

func (p *parser) output() (stmt, error) {
	p.next()
	at := p.line()
	x, err := p.tuple()
	if err != nil {
		return nil, err
	}
	return output{at, x}, p.expect(kVarEnd)
}

// block parses a body, its end tag and, when the body ended otherwise, returns
// the name of that tag with its lexeme consumed.
func (p *parser) block(until ...string) (body []stmt, tag string, err error) {
	if body, err = p.statements(until...); err != nil {
		return nil, "", err
	}
	return body, p.next().text, nil
}

// closed parses a body up to the given end tag, which is consumed whole.
func (p *parser) closed(end string) ([]stmt, error) {
	body, _, err := p.block(end)
	if err != nil {
		return nil, err
	}
	return body, p.expect(kBlockEnd)
}

func (p *parser) statement() (stmt, error) {
	at := p.line()
	tag, err := p.expectName()
	if err != nil {
		return nil, err
	}
	switch tag {
	case "if":
		return p.ifStmt(at)
	case "for":
		return p.forStmt(at)
	case "set":
		return p.setStmt(at)
	case "with":
		return p.withStmt(at)
	case "macro":
		return p.macroStmt(at)
	case "call":
		return p.callBlock(at)
	case "filter":
		return p.filterBlock(at)
	case "generation": // marks the assistant's words for training
		if err := p.expect(kBlockEnd); err != nil {
			return nil, err
		}
		body, err := p.closed("endgeneration")
		return group{body}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, p.fail("%s outside of a loop", tag)
		}
		return jumpStmt{at, tag == "break"}, p.expect(kBlockEnd)
	}
	return nil, p.fail("unsupported tag %q", tag)
}

func (p *parser) ifStmt(at pos) (stmt, error) {
	if err := p.nest(); err != nil { // elif chains recurse
		return nil, err
	}
	defer p.unnest()
	cond, err := p.tuple()
	if err != nil {
		return nil, err
	}
	if err := p.expect(kBlockEnd); err != nil {
		return nil, err
	}
	s := ifStmt{pos: at, cond: cond}
	var tag string
	if s.then, tag, err = p.block("elif", "else", "endif"); err != nil {
		return nil, err
	}
	switch tag {
	case "elif":
		other, err := p.ifStmt(p.line())
		s.other = []stmt{other}
		return s, err
	case "else":
		if err := p.expect(kBlockEnd); err != nil {
			return nil, err
		}
		s.other, err = p.closed("endif")
		return s, err
	}
	return s, p.expect(kBlockEnd)
}

func (p *parser) forStmt(at pos) (stmt, error) {
	s := forStmt{pos: at}
	var err error
	if s.vars, err = p.names(); err != nil {
		return nil, err
	}
	if !p.takeName("in") {
		return nil, p.fail("expected %q, found %s", "in", p.describe())
	}
	// Without the conditional: "if" begins the loop's filter here.
	if s.over, err = p.or(); err != nil {
		return nil, err
	}
	if p.takeName("if") {
		if s.where, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.isName("recursive") {
		return nil, p.fail("unsupported: recursive loop")
	}
	if err := p.expect(kBlockEnd); err != nil {
		return nil, err
	}
	p.loops++
	body, tag, err := p.block("else", "endfor")
	p.loops--
	if err != nil {
		return nil, err
	}
	s.body = body
	if err := p.expect(kBlockEnd); err != nil || tag == "endfor" {
		return s, err
	}
	s.other, err = p.closed("endfor")
	return s, err
}

// names parses a, b, c, with or without parentheses.
func (p *parser) names() ([]string, error) {
	paren := p.takeOp("(")
	var out []string
	for {
		id, err := p.expectName()
		if err != nil {
			return nil, err
		}
		out = append(out, id)
		if !p.takeOp(",") {
			break
		}
	}
	if paren {
		return out, p.expectOp(")")
	}
	return out, nil
}

func (p *parser) target() (target, error) {
	t := target{pos: p.line()}
	var err error
	if t.name, err = p.expectName(); err != nil {
		return t, err
	}
	if p.takeOp(".") {
		t.attr, err = p.expectName()
	}
	return t, err
}

func (p *parser) setStmt(at pos) (stmt, error) {
	var targets []target
	for {
		t, err := p.target()
		if err != nil {
			return nil, err
		}
		targets = append(targets, t)
		if !p.takeOp(",") {
			break
		}
	}
	if p.takeOp("=") {
		x, err := p.tuple()
		if err != nil {
			return nil, err
		}
		return setStmt{at, targets, x}, p.expect(kBlockEnd)
	}
	if len(targets) != 1 {
		return nil, p.fail("expected %q, found %s", "=", p.describe())
	}
	filter, err := p.filterChain(p.takeOp("|"))
	if err != nil {
		return nil, err
	}
	body, err := p.closed("endset")
	return setBlock{at, targets[0], body, filter}, err
}

// filterChain parses f | g(x) up to the end of the tag; nothing unless begun.
func (p *parser) filterChain(begun bool) ([]*filtering, error) {
	var chain []*filtering
	for more := begun; more; more = p.takeOp("|") {
		f, err := p.filterCall(nil)
		if err != nil {
			return nil, err
		}
		chain = append(chain, f)
	}
	return chain, p.expect(kBlockEnd)
}

func (p *parser) filterBlock(at pos) (stmt, error) {
	filter, err := p.filterChain(true)
	if err != nil {
		return nil, err
	}
	body, err := p.closed("endfilter")
	return filterBlock{at, filter, body}, err
}

func (p *parser) withStmt(at pos) (stmt, error) {
	s := withStmt{pos: at}
	for p.peek().kind == kName {
		id := p.next().text
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		x, err := p.expr()
		if err != nil {
			return nil, err
		}
		s.names, s.values = append(s.names, id), append(s.values, x)
		if !p.takeOp(",") {
			break
		}
	}
	err := p.expect(kBlockEnd)
	if err != nil {
		return nil, err
	}
	s.body, err = p.closed("endwith")
	return s, err
}

// macroHead parses (a, b=1) and the end of the tag.
func (p *parser) macroHead(m *macroStmt) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.takeOp(")") {
		id, err := p.expectName()
		if err != nil {
			return err
		}
		var def expr
		if p.takeOp("=") {
			if def, err = p.expr(); err != nil {
				return err
			}
		}
		m.params, m.defaults = append(m.params, id), append(m.defaults, def)
		if !p.takeOp(",") && !p.isOp(")") {
			return p.fail("expected %q, found %s", ")", p.describe())
		}
	}
	return nil
}

func (p *parser) macroBody(m *macroStmt, end string) (err error) {
	if err := p.expect(kBlockEnd); err != nil {
		return err
	}
	outer := p.loops
	p.loops = 0
	m.body, err = p.closed(end)
	p.loops = outer
	return err
}

func (p *parser) macroStmt(at pos) (stmt, error) {
	m := &macroStmt{pos: at}
	var err error
	if m.name, err = p.expectName(); err != nil {
		return nil, err
	}
	if err := p.macroHead(m); err != nil {
		return nil, err
	}
	return m, p.macroBody(m, "endmacro")
}

func (p *parser) callBlock(at pos) (stmt, error) {
	caller := &macroStmt{pos: at, name: "caller"}
	if p.isOp("(") {
		if err := p.macroHead(caller); err != nil {
			return nil, err
		}
	}
	x, err := p.expr()
	if err != nil {
		return nil, err
	}
	c, ok := x.(*call)
	if !ok {
		return nil, p.fail("call block without a call")
	}
	return callBlock{at, c, caller}, p.macroBody(caller, "endcall")
}
