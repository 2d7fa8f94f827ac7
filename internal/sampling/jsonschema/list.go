package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"

	"hecate/internal/sampling/grammar"
)

// items is what the members of an array are: the first ones each in its own way,
// all others alike.
type items struct {
	first []json.RawMessage
	at    string          // where the first ones stand
	rest  json.RawMessage // nil: nothing is said of them
	after string          // where rest stands
}

// itemsOf reads both ways of writing it: prefixItems with items, and the older
// one, a list as items with additionalItems.
func itemsOf(path string, o *object) (items, error) {
	s := items{at: step(path, "prefixItems"), rest: o.values["items"], after: step(path, "items")}
	first := o.values["prefixItems"]
	if raw := bytes.TrimSpace(o.values["items"]); len(raw) > 0 && raw[0] == '[' {
		if first != nil {
			return s, fault(s.after, `a list beside "prefixItems" is not supported`)
		}
		s = items{at: s.after, rest: o.values["additionalItems"], after: step(path, "additionalItems")}
		first = raw
	} else if o.has("additionalItems") {
		return s, fault(step(path, "additionalItems"), `"additionalItems" without a list of items is not supported`)
	}
	if first == nil {
		return s, nil
	}
	var err error
	s.first, err = several(s.at, first)
	return s, err
}

func (r *reader) array(path string, o *object, depth int) (grammar.Expr, error) {
	its, err := itemsOf(path, o)
	if err != nil {
		return grammar.Expr{}, err
	}
	least, most, err := bounds(path, o, "minItems", "maxItems")
	if err != nil {
		return grammar.Expr{}, err
	}
	if len(its.first) > 0 {
		return r.tuple(path, o, its, least, most, depth)
	}
	if isFalse(its.rest) {
		if least > 0 {
			return grammar.Expr{}, fault(step(path, "minItems"), "is %d, and items forbids any", least)
		}
		most = 0
	}
	if most == 0 {
		return r.rule(brackets(grammar.Expr{})), nil
	}
	item, err := r.item(its, depth)
	if err != nil {
		return grammar.Expr{}, err
	}
	return r.rule(brackets(list(item, least, max(most, 0)))), nil
}

// item is one member of those that are alike.
func (r *reader) item(its items, depth int) (grammar.Expr, error) {
	if its.rest == nil {
		return grammar.Call(ruleValue), nil
	}
	e, err := r.schema(its.after, its.rest, depth+1)
	if err != nil {
		return grammar.Expr{}, err
	}
	return r.rule(e), nil
}

// tuple is an array whose first members are described one by one. They all come,
// unless minItems says that some may be left out at the end; others follow only
// where the schema speaks of them.
func (r *reader) tuple(path string, o *object, its items, least, most, depth int) (grammar.Expr, error) {
	n := len(its.first)
	if n > MaxItems {
		return grammar.Expr{}, fault(its.at, "has %d schemas, at most %d are taken", n, MaxItems)
	}
	if most >= 0 {
		n = min(n, most)
	}
	if !o.has("minItems") {
		least = n
	}
	var tail grammar.Expr // what may follow the first n
	switch {
	case isFalse(its.rest) && least > n:
		return grammar.Expr{}, fault(step(path, "minItems"), "is %d, and only %d items are allowed", least, n)
	case isFalse(its.rest), its.rest == nil && least <= n, most == n:
	default:
		item, err := r.item(its, depth)
		if err != nil {
			return grammar.Expr{}, err
		}
		tail = grammar.Times(grammar.Seq(comma, item), max(least-n, 0), max(most-n, 0)) // 0: without a bound
	}
	// From the last one on: each with what follows it.
	for i := n - 1; i >= 0; i-- {
		e, err := r.schema(step(its.at, fmt.Sprint(i)), its.first[i], depth+1)
		if err != nil {
			return grammar.Expr{}, err
		}
		if i > 0 {
			e = grammar.Seq(comma, e)
		}
		e = grammar.Seq(e, tail)
		if i >= least {
			e = grammar.Maybe(e)
		}
		tail = r.rule(e)
	}
	return r.rule(brackets(tail)), nil
}
