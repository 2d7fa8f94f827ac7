package jinja

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// RaisedError is what a template said with raise_exception: usually that the
// conversation has a shape the model was not made for.
type RaisedError struct{ Message string }

func (e *RaisedError) Error() string { return "the chat template says: " + e.Message }

// Input is what a template sees.
type Input struct {
	// Vars are the template's variables.
	Vars map[string]Value
	// Now is the time that strftime_now formats.
	Now time.Time
	// Limits bound the rendering; the zero value means the defaults.
	Limits Limits
}

// Render runs the template. The result's marks tell where its bytes
// come from. It fails with an error that wraps ErrLimit, ctx's error,
// *RaisedError or, for a fault of the template, *Error.
func (t *Template) Render(ctx context.Context, in Input) (Text, error) {
	e := &evaluator{budget: budget{ctx: ctx, limits: in.Limits.withDefaults()}, now: in.Now}
	if err := ctx.Err(); err != nil {
		return Text{}, err
	}
	root := &scope{vars: make(map[string]Value, len(in.Vars)+8)}
	for k, v := range globals {
		root.vars[k] = v
	}
	for k, v := range in.Vars {
		root.vars[k] = v
	}
	var out textBuilder
	if err := e.run(t.body, root, &out); err != nil {
		return Text{}, err
	}
	return out.text(), nil
}

// scope is the variables of a template, loop round, macro or with block.
type scope struct {
	vars  map[string]Value
	outer *scope
}

func (s *scope) inner() *scope { return &scope{outer: s} }

func (s *scope) lookup(id string) Value {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[id]; ok {
			return v
		}
	}
	return undefined{id}
}

func (s *scope) set(id string, v Value) {
	if s.vars == nil {
		s.vars = make(map[string]Value, 2)
	}
	s.vars[id] = v
}

// evaluator is one rendering.
type evaluator struct {
	budget
	now    time.Time
	nested int
}

// maxDepth bounds the evaluator's recursion, so that no template can exhaust
// the stack, which would end the whole process.
const maxDepth = 1500

// deeper runs f one level deeper.
func (e *evaluator) deeper(f func() error) error {
	e.nested++
	defer func() { e.nested-- }()
	if e.nested > maxDepth {
		return fmt.Errorf("%w: %d levels deep", ErrLimit, maxDepth)
	}
	return f()
}

// located adds the line to an error that has none, and leaves limits and
// raised exceptions as they are: they are no faults of a line.
func located(err error, line int) error {
	var already *Error
	var raised *RaisedError
	if err == nil || errors.As(err, &already) || errors.As(err, &raised) || errors.Is(err, errBreak) || errors.Is(err, errContinue) ||
		errors.Is(err, ErrLimit) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &Error{line, err}
}

// eval evaluates one expression.
func (e *evaluator) eval(x expr, s *scope) (v Value, err error) {
	if err := e.step(1); err != nil {
		return nil, err
	}
	err = e.deeper(func() error {
		v, err = e.dispatch(x, s)
		return err
	})
	return v, located(err, x.at())
}

func (e *evaluator) dispatch(x expr, s *scope) (Value, error) {
	switch x := x.(type) {
	case *literal:
		return x.v, nil
	case *name:
		return s.lookup(x.id), nil
	case *attribute:
		return e.attributeOf(x, s)
	case *subscript:
		return e.subscriptOf(x, s)
	case *slicing:
		return e.slice(x, s)
	case *call:
		return e.call(x, s)
	case *filtering:
		of, err := e.eval(x.of, s)
		if err != nil {
			return nil, err
		}
		return e.filter(x, of, s)
	case *isTest:
		return e.test(x, s)
	case *unary:
		return e.unary(x, s)
	case *binary:
		return e.binary(x, s)
	case *comparison:
		return e.comparison(x, s)
	case *conditional:
		return e.conditional(x, s)
	case *listLit:
		items, err := e.evalAll(x.items, s)
		return &List{Items: items, tuple: x.tuple}, err
	case *dictLit:
		return e.dict(x, s)
	}
	panic(fmt.Sprintf("BUG: no evaluation for %T", x))
}

func (e *evaluator) evalAll(xs []expr, s *scope) ([]Value, error) {
	out := make([]Value, 0, len(xs))
	for _, x := range xs {
		v, err := e.eval(x, s)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func (e *evaluator) conditional(x *conditional, s *scope) (Value, error) {
	cond, err := e.eval(x.cond, s)
	switch {
	case err != nil:
		return nil, err
	case truth(cond):
		return e.eval(x.then, s)
	case x.other == nil:
		return undefined{"conditional without else"}, nil
	}
	return e.eval(x.other, s)
}

func (e *evaluator) dict(x *dictLit, s *scope) (Value, error) {
	d := NewDict()
	for i := range x.keys {
		k, err := e.eval(x.keys[i], s)
		if err != nil {
			return nil, err
		}
		key, ok := k.(Text)
		if !ok {
			return nil, fmt.Errorf("a dict key is a %s, not a str", typeName(k))
		}
		v, err := e.eval(x.values[i], s)
		if err != nil {
			return nil, err
		}
		d.Set(key, v)
	}
	return d, nil
}

// values evaluates call arguments.
func (e *evaluator) values(a arguments, s *scope) (args []Value, kw map[string]Value, err error) {
	if args, err = e.evalAll(a.args, s); err != nil {
		return nil, nil, err
	}
	if len(a.kw) == 0 {
		return args, nil, nil
	}
	kw = make(map[string]Value, len(a.kw))
	for i, x := range a.kw {
		if kw[a.names[i]], err = e.eval(x, s); err != nil {
			return nil, nil, err
		}
	}
	return args, kw, nil
}

func (e *evaluator) call(x *call, s *scope) (Value, error) {
	fn, err := e.eval(x.fn, s)
	if err != nil {
		return nil, err
	}
	f, ok := fn.(callable)
	if !ok {
		if u, is := fn.(undefined); is {
			return nil, fmt.Errorf("%q is undefined and cannot be called", u.name)
		}
		return nil, fmt.Errorf("a %s cannot be called", typeName(fn))
	}
	args, kw, err := e.values(x.arguments, s)
	if err != nil {
		return nil, err
	}
	return f(e, args, kw)
}

func (e *evaluator) filter(x *filtering, of Value, s *scope) (Value, error) {
	args, kw, err := e.values(x.arguments, s)
	if err != nil {
		return nil, err
	}
	v, err := filters[x.name](e, of, params{args, kw})
	if err != nil {
		return nil, located(fmt.Errorf("filter %s: %w", x.name, err), x.at())
	}
	return v, nil
}

func (e *evaluator) test(x *isTest, s *scope) (Value, error) {
	of, err := e.eval(x.of, s)
	if err != nil {
		return nil, err
	}
	args, kw, err := e.values(x.arguments, s)
	if err != nil {
		return nil, err
	}
	ok, err := tests[x.name](e, of, params{args, kw})
	if err != nil {
		return nil, fmt.Errorf("test %s: %w", x.name, err)
	}
	return ok != x.not, nil
}
