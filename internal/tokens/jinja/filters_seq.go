package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

func listFilter(e *evaluator, v Value, _ params) (Value, error) {
	items, err := e.iterate(v)
	return &List{Items: items}, err
}

func endFilter(at func(n int) int) filter {
	return func(e *evaluator, v Value, _ params) (Value, error) {
		items, err := e.iterate(v)
		if err != nil || len(items) == 0 {
			return undefined{"element of an empty sequence"}, err
		}
		return items[at(len(items))], nil
	}
}

func reverseFilter(e *evaluator, v Value, _ params) (Value, error) {
	items, err := e.iterate(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(Text); ok {
		return e.joinAll(Text{}, []Value{&List{Items: items}})
	}
	return &List{Items: items}, nil
}

func joinFilter(e *evaluator, v Value, p params) (Value, error) {
	sep, err := p.text(0, "d", "")
	if err != nil {
		return nil, err
	}
	if attr, ok := p.get(1, "attribute"); ok {
		if v, err = mapFilter(e, v, params{kw: map[string]Value{"attribute": attr}}); err != nil {
			return nil, err
		}
	}
	return e.joinAll(sep, []Value{v})
}

// path reads an attribute path such as "function.name" or a position.
func (e *evaluator) path(v, path Value) (Value, error) {
	if n, ok := integer(path); ok {
		return e.item(v, n)
	}
	t, ok := path.(Text)
	if !ok {
		return nil, fmt.Errorf("an attribute is a %s, not a str", typeName(path))
	}
	for _, part := range strings.Split(t.S, ".") {
		var err error
		if v, err = e.item(v, Trusted(part)); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func mapFilter(e *evaluator, v Value, p params) (Value, error) {
	items, err := e.iterate(v)
	if err != nil {
		return nil, err
	}
	change, err := mapping(p)
	if err != nil {
		return nil, err
	}
	out := &List{Items: make([]Value, len(items))}
	for i, x := range items {
		if out.Items[i], err = change(e, x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// mapping says what map does to each element: take an attribute, or filter.
func mapping(p params) (func(e *evaluator, x Value) (Value, error), error) {
	if attr, ok := p.kw["attribute"]; ok {
		def, hasDef := p.kw["default"]
		return func(e *evaluator, x Value) (Value, error) {
			v, err := e.path(x, attr)
			if _, missing := v.(undefined); missing && hasDef {
				v = def
			}
			return v, err
		}, nil
	}
	id, err := p.text(0, "filter", "")
	if err != nil {
		return nil, err
	}
	f := filters[id.S]
	if f == nil {
		return nil, fmt.Errorf("unsupported filter %q", id.S)
	}
	return func(e *evaluator, x Value) (v Value, err error) {
		// map may be given map: nested, so it counts as a level.
		err = e.deeper(func() error { v, err = f(e, x, p.rest(1)); return err })
		return v, err
	}, nil
}

// selectFilter keeps elements, or those with an attribute, that pass a test.
func selectFilter(byAttr, keep bool) filter {
	return func(e *evaluator, v Value, p params) (Value, error) {
		items, err := e.iterate(v)
		if err != nil {
			return nil, err
		}
		var attr Value
		if byAttr {
			if len(p.args) == 0 {
				return nil, errors.New("no attribute given")
			}
			attr, p = p.args[0], p.rest(1)
		}
		pass := test(func(_ *evaluator, v Value, _ params) (bool, error) { return truth(v), nil })
		if len(p.args) > 0 {
			id, _ := p.args[0].(Text)
			if pass, p = tests[id.S], p.rest(1); pass == nil {
				return nil, fmt.Errorf("unsupported test %q", id.S)
			}
		}
		out := &List{}
		for _, x := range items {
			of := x
			if byAttr {
				if of, err = e.path(x, attr); err != nil {
					return nil, err
				}
			}
			ok, err := pass(e, of, p)
			if err != nil {
				return nil, err
			}
			if ok == keep {
				out.Items = append(out.Items, x)
			}
		}
		return out, nil
	}
}

// sortKey is what sort, min, max and unique compare: by default, letters of
// either case count the same.
func (e *evaluator) sortKey(v Value, p params) (Value, error) {
	if attr, ok := p.kw["attribute"]; ok {
		var err error
		if v, err = e.path(v, attr); err != nil {
			return nil, err
		}
	}
	if t, ok := v.(Text); ok && !truth(p.kw["case_sensitive"]) {
		return Trusted(strings.ToLower(t.S)), e.build(len(t.S))
	}
	return v, nil
}

type keyed struct{ key, v Value }

func (e *evaluator) keyed(v Value, p params) ([]keyed, error) {
	items, err := e.iterate(v)
	if err != nil {
		return nil, err
	}
	out := make([]keyed, len(items))
	for i, x := range items {
		k, err := e.sortKey(x, p)
		if err != nil {
			return nil, err
		}
		out[i] = keyed{k, x}
	}
	return out, nil
}

// sortKeyed sorts stably; the first failed comparison is returned.
func (e *evaluator) sortKeyed(list []keyed, reverse bool) error {
	var failed error
	slices.SortStableFunc(list, func(a, b keyed) int {
		if reverse {
			a, b = b, a
		}
		if failed != nil {
			return 0
		}
		if failed = e.step(1); failed != nil {
			return 0
		}
		less, err := e.less(a.key, b.key)
		if err != nil {
			failed = err
		} else if less {
			return -1
		} else if more, _ := e.less(b.key, a.key); more {
			return 1
		}
		return 0
	})
	return failed
}

func sortFilter(e *evaluator, v Value, p params) (Value, error) {
	list, err := e.keyed(v, p)
	if err != nil {
		return nil, err
	}
	if err := e.sortKeyed(list, p.truth(0, "reverse")); err != nil {
		return nil, err
	}
	out := &List{}
	for _, x := range list {
		out.Items = append(out.Items, x.v)
	}
	return out, nil
}

func extremeFilter(largest bool) filter {
	return func(e *evaluator, v Value, p params) (Value, error) {
		list, err := e.keyed(v, p)
		if err != nil || len(list) == 0 {
			return undefined{"extreme of an empty sequence"}, err
		}
		if err := e.sortKeyed(list, largest); err != nil {
			return nil, err
		}
		return list[0].v, nil
	}
}

func uniqueFilter(e *evaluator, v Value, p params) (Value, error) {
	list, err := e.keyed(v, p)
	if err != nil {
		return nil, err
	}
	seen, out := &List{}, &List{}
	for _, x := range list {
		known, err := e.contains(seen, x.key)
		if err != nil {
			return nil, err
		}
		if !known {
			seen.Items, out.Items = append(seen.Items, x.key), append(out.Items, x.v)
		}
	}
	return out, nil
}

func sumFilter(e *evaluator, v Value, p params) (Value, error) {
	if attr, ok := p.get(0, "attribute"); ok && attr != nil {
		var err error
		if v, err = mapFilter(e, v, params{kw: map[string]Value{"attribute": attr}}); err != nil {
			return nil, err
		}
	}
	items, err := e.iterate(v)
	if err != nil {
		return nil, err
	}
	total, ok := p.get(1, "start")
	if !ok {
		total = int64(0)
	}
	for _, x := range items {
		if total, err = e.operate("+", total, x); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func dictSortFilter(e *evaluator, v Value, p params) (Value, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("a %s is no dict", typeName(v))
	}
	by, err := p.text(1, "by", "key")
	if err != nil {
		return nil, err
	}
	position := int64(0)
	if by.S == "value" {
		position = 1
	}
	items, err := e.items(d)
	if err != nil {
		return nil, err
	}
	return sortFilter(e, items, params{kw: map[string]Value{
		"attribute": position, "case_sensitive": p.truth(0, "case_sensitive"), "reverse": p.truth(2, "reverse"),
	}})
}
