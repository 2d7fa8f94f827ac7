package jinja

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// errBreak and errContinue travel from a jump to its loop.
var (
	errBreak    = errors.New("break outside of a loop")
	errContinue = errors.New("continue outside of a loop")
)

func (e *evaluator) run(body []stmt, s *scope, out *textBuilder) error {
	return e.deeper(func() error {
		for _, st := range body {
			if err := e.step(1); err != nil {
				return err
			}
			if err := e.exec(st, s, out); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *evaluator) exec(st stmt, s *scope, out *textBuilder) error {
	switch st := st.(type) {
	case text:
		return e.write(out, Trusted(st.s))
	case output:
		v, err := e.eval(st.x, s)
		if err != nil {
			return err
		}
		t, err := e.str(v)
		if err != nil {
			return located(err, st.at())
		}
		return e.write(out, t)
	case ifStmt:
		return e.ifStmt(st, s, out)
	case forStmt:
		return located(e.forStmt(st, s, out), st.at())
	case setStmt:
		return located(e.setStmt(st, s), st.at())
	case setBlock:
		t, err := e.captured(st.body, s.inner(), st.filter, s)
		if err != nil {
			return err
		}
		return located(assign(st.to, t, s), st.at())
	case filterBlock:
		return e.filterBlock(st, s, out)
	case withStmt:
		return e.withStmt(st, s, out)
	case *macroStmt:
		s.set(st.name, e.macro(st, s))
		return nil
	case callBlock:
		return e.callBlock(st, s, out)
	case group:
		return e.run(st.body, s, out)
	case jumpStmt:
		if st.brk {
			return errBreak
		}
		return errContinue
	}
	panic(fmt.Sprintf("BUG: no execution for %T", st))
}

func (e *evaluator) write(out *textBuilder, t Text) error {
	if n := out.len() + len(t.S); n > e.limits.Output {
		return fmt.Errorf("%w: output of more than %d bytes", ErrLimit, e.limits.Output)
	}
	if err := e.build(len(t.S)); err != nil {
		return err
	}
	out.add(t)
	return nil
}

func (e *evaluator) ifStmt(st ifStmt, s *scope, out *textBuilder) error {
	cond, err := e.eval(st.cond, s)
	if err != nil {
		return err
	}
	if truth(cond) {
		return e.run(st.then, s, out)
	}
	return e.run(st.other, s, out)
}

// iterate lists what a for loop over v visits.
func (e *evaluator) iterate(v Value) ([]Value, error) {
	var items []Value
	switch v := v.(type) {
	case *List:
		items = v.Items
	case *Dict:
		for _, k := range v.keys {
			items = append(items, k)
		}
	case Text:
		if err := e.step(len(v.S)); err != nil { // before the memory is taken
			return nil, err
		}
		for i := 0; i < len(v.S); {
			_, n := utf8.DecodeRuneInString(v.S[i:])
			items = append(items, v.slice(i, i+n))
			i += n
		}
	case undefined:
	default:
		return nil, fmt.Errorf("a %s cannot be iterated", typeName(v))
	}
	return items, e.step(len(items))
}

func (e *evaluator) forStmt(st forStmt, s *scope, out *textBuilder) error {
	over, err := e.eval(st.over, s)
	if err != nil {
		return err
	}
	items, err := e.iterate(over)
	if err != nil {
		return err
	}
	if st.where != nil {
		if items, err = e.filtered(st, items, s); err != nil {
			return err
		}
	}
	if len(items) == 0 {
		return e.run(st.other, s.inner(), out)
	}
	for i := range items {
		round := s.inner()
		round.set("loop", loopState{items, i})
		if err := unpack(st.vars, items[i], round); err != nil {
			return err
		}
		switch err := e.run(st.body, round, out); {
		case errors.Is(err, errBreak):
			return nil
		case err != nil && !errors.Is(err, errContinue):
			return err
		}
	}
	return nil
}

func (e *evaluator) filtered(st forStmt, items []Value, s *scope) ([]Value, error) {
	var kept []Value
	for _, item := range items {
		round := s.inner()
		if err := unpack(st.vars, item, round); err != nil {
			return nil, err
		}
		ok, err := e.eval(st.where, round)
		if err != nil {
			return nil, err
		}
		if truth(ok) {
			kept = append(kept, item)
		}
	}
	return kept, nil
}

func unpack(names []string, v Value, s *scope) error {
	if len(names) == 1 {
		s.set(names[0], v)
		return nil
	}
	l, ok := v.(*List)
	if !ok || len(l.Items) != len(names) {
		return fmt.Errorf("a %s cannot be unpacked into %d names", typeName(v), len(names))
	}
	for i, id := range names {
		s.set(id, l.Items[i])
	}
	return nil
}

// loopState is the loop variable of one round.
type loopState struct {
	items []Value
	i     int
}

func (l loopState) attr(id string) Value {
	n := len(l.items)
	at := func(i int) Value {
		if i < 0 || i >= n {
			return undefined{id}
		}
		return l.items[i]
	}
	switch id {
	case "index":
		return int64(l.i + 1)
	case "index0":
		return int64(l.i)
	case "revindex":
		return int64(n - l.i)
	case "revindex0":
		return int64(n - l.i - 1)
	case "first":
		return l.i == 0
	case "last":
		return l.i == n-1
	case "length":
		return int64(n)
	case "previtem":
		return at(l.i - 1)
	case "nextitem":
		return at(l.i + 1)
	case "cycle":
		return callable(func(_ *evaluator, args []Value, _ map[string]Value) (Value, error) {
			if len(args) == 0 {
				return nil, errors.New("loop.cycle without values")
			}
			return args[l.i%len(args)], nil
		})
	}
	return undefined{"loop." + id}
}

func (e *evaluator) setStmt(st setStmt, s *scope) error {
	v, err := e.eval(st.x, s)
	if err != nil {
		return err
	}
	if len(st.targets) == 1 {
		return assign(st.targets[0], v, s)
	}
	l, ok := v.(*List)
	if !ok || len(l.Items) != len(st.targets) {
		return fmt.Errorf("a %s cannot be unpacked into %d names", typeName(v), len(st.targets))
	}
	for i, t := range st.targets {
		if err := assign(t, l.Items[i], s); err != nil {
			return err
		}
	}
	return nil
}

func assign(t target, v Value, s *scope) error {
	if t.attr == "" {
		s.set(t.name, v)
		return nil
	}
	ns, ok := s.lookup(t.name).(*namespace)
	if !ok {
		return fmt.Errorf("%s is no namespace", t.name)
	}
	ns.vars[t.attr] = v
	return nil
}

// captured runs a body and filters its output; filter arguments see outer.
func (e *evaluator) captured(body []stmt, s *scope, chain []*filtering, outer *scope) (Value, error) {
	var b textBuilder
	if err := e.run(body, s, &b); err != nil {
		return nil, err
	}
	var v Value = b.text()
	for _, f := range chain {
		var err error
		if v, err = e.filter(f, v, outer); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (e *evaluator) filterBlock(st filterBlock, s *scope, out *textBuilder) error {
	v, err := e.captured(st.body, s.inner(), st.filter, s)
	if err != nil {
		return err
	}
	t, err := e.str(v)
	if err != nil {
		return located(err, st.at())
	}
	return e.write(out, t)
}

func (e *evaluator) withStmt(st withStmt, s *scope, out *textBuilder) error {
	inner := s.inner()
	for i, x := range st.values {
		v, err := e.eval(x, s)
		if err != nil {
			return err
		}
		inner.set(st.names[i], v)
	}
	return e.run(st.body, inner, out)
}

// macro makes a function of a macro; it sees the scope of its definition.
func (e *evaluator) macro(m *macroStmt, s *scope) callable {
	return func(e *evaluator, args []Value, kw map[string]Value) (Value, error) {
		if err := e.enter(); err != nil {
			return nil, err
		}
		defer e.leave()
		inner := s.inner()
		if err := e.bind(m, args, kw, inner); err != nil {
			return nil, fmt.Errorf("macro %s: %w", m.name, err)
		}
		var b textBuilder
		err := e.run(m.body, inner, &b)
		return b.text(), err
	}
}

func (e *evaluator) bind(m *macroStmt, args []Value, kw map[string]Value, inner *scope) error {
	if len(args) > len(m.params) {
		return fmt.Errorf("%d arguments for %d parameters", len(args), len(m.params))
	}
	used := 0
	for i, p := range m.params {
		v, named := kw[p]
		switch {
		case i < len(args):
			v = args[i]
		case named:
			used++
		case m.defaults[i] != nil:
			var err error
			if v, err = e.eval(m.defaults[i], inner); err != nil {
				return err
			}
		default:
			v = undefined{p}
		}
		inner.set(p, v)
	}
	if c, ok := kw["caller"]; ok {
		inner.set("caller", c)
		used++
	}
	if used < len(kw) {
		return errors.New("unknown or doubled keyword argument")
	}
	return nil
}

func (e *evaluator) callBlock(st callBlock, s *scope, out *textBuilder) error {
	fn, err := e.eval(st.call.fn, s)
	if err != nil {
		return err
	}
	f, ok := fn.(callable)
	if !ok {
		return located(fmt.Errorf("a %s cannot be called", typeName(fn)), st.at())
	}
	args, kw, err := e.values(st.call.arguments, s)
	if err != nil {
		return err
	}
	if kw == nil {
		kw = map[string]Value{}
	}
	kw["caller"] = e.macro(st.caller, s)
	v, err := f(e, args, kw)
	if err != nil {
		return located(err, st.at())
	}
	t, err := e.str(v)
	if err != nil {
		return located(err, st.at())
	}
	return e.write(out, t)
}
