package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"hecate/internal/sampling/grammar"
)

// Bounds of telling schemas apart; beyond them they count as alike.
const (
	maxApart    = 8       // schemas within each other, counting references
	maxCompared = 1 << 22 // comparisons in one schema: under a second
	maxShapes   = 1 << 10 // ways that one schema's values may look
)

// oneOf is anyOf of branches that no value satisfies two of. Whether that is so
// is found out beforehand: a text that fits two branches would break the schema,
// and a grammar cannot take it back.
func (r *reader) oneOf(path string, raw json.RawMessage, depth int) (grammar.Expr, error) {
	list, err := several(path, raw)
	if err != nil {
		return grammar.Expr{}, err
	}
	e, err := r.anyOf(path, raw, depth) // with its faults first: they say more
	if err != nil {
		return grammar.Expr{}, err
	}
	for j := range list {
		for i := range j {
			if !r.apart(list[i], list[j], 0) || !r.apart(list[j], list[i], 0) {
				return grammar.Expr{}, fault(step(path, fmt.Sprint(j)), "a value may satisfy this and %s; give both a required property with a fixed value of its own, or use anyOf", step(path, fmt.Sprint(i)))
			}
		}
	}
	return e, nil
}

// shape is one way that values of a schema may look: one value, or any of a kind.
type shape struct {
	kind    string
	literal json.RawMessage // nil: any of the kind
	value   any             // the literal, read
	members *members        // of an object
}

// members is what telling objects apart needs to know of one's properties.
type members struct {
	values map[string]json.RawMessage
	needs  []string // those required
	open   bool     // others may be written
	closed bool     // others are not admitted
}

// shapes lists how the values of a schema may look. It fails where that is not
// known.
func (r *reader) shapes(raw json.RawMessage, depth int) ([]shape, bool) {
	if len(raw) == 0 || depth > maxApart {
		return nil, false
	}
	if known := r.looks[&raw[0]]; known != nil {
		return known, true
	}
	o, err := readObject(raw)
	if err != nil {
		return nil, false // true and false
	}
	all, ok := r.shapesOf(o, depth)
	if ok {
		r.looks[&raw[0]] = all
	}
	return all, ok
}

func (r *reader) shapesOf(o *object, depth int) (all []shape, ok bool) {
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		if !o.has(keyword) {
			continue
		}
		list, err := several("", o.values[keyword])
		if err != nil {
			return nil, false
		}
		for _, s := range list {
			some, ok := r.shapes(s, depth+1)
			if all = append(all, some...); !ok || len(all) > maxShapes {
				return nil, false
			}
		}
		return all, true
	}
	switch {
	case o.has("$ref"):
		var ref string
		if json.Unmarshal(o.values["$ref"], &ref) != nil {
			return nil, false
		}
		target, err := resolve(r.root, ref, r.seen)
		if err != nil {
			return nil, false
		}
		return r.shapes(target, depth+1)
	case o.has("const"), o.has("enum"):
		values, err := fixed("", o)
		if err != nil || len(values) > maxShapes {
			return nil, false
		}
		for _, v := range values {
			s := shape{literal: v}
			if json.Unmarshal(v, &s.value) != nil {
				return nil, false // a number beyond float64
			}
			all = append(all, s)
		}
		return all, true
	}
	types, err := typesOf("", o)
	if err != nil || types == nil {
		return nil, false // any type may satisfy it
	}
	for _, kind := range types {
		s := shape{kind: kind}
		if kind == "object" {
			s.members = membersOf(o)
		}
		all = append(all, s)
	}
	return all, true
}

// membersOf reads what was read before, with its faults.
func membersOf(o *object) *members {
	m := &members{}
	_ = json.Unmarshal(o.values["required"], &m.needs)
	if props, err := readObject(o.values["properties"]); err == nil {
		m.values = props.values
	}
	m.closed = isFalse(o.values["additionalProperties"])
	m.open = !m.closed && (o.has("additionalProperties") || len(m.values)+len(m.needs) == 0)
	return m
}

// apart says that no text written for a satisfies b, as far as it can tell.
func (r *reader) apart(a, b json.RawMessage, depth int) bool {
	x, known := r.shapes(a, depth)
	y, also := r.shapes(b, depth)
	if !known || !also {
		return false
	}
	for i := range x {
		for j := range y {
			if !r.differ(&x[i], &y[j], depth) {
				return false
			}
		}
	}
	return true
}

func (r *reader) differ(x, y *shape, depth int) bool {
	if r.compared++; r.compared > maxCompared {
		return false
	}
	switch {
	case x.literal != nil && y.literal != nil:
		return !reflect.DeepEqual(x.value, y.value) // large numbers that are close count as the same
	case x.literal != nil:
		return !isOf(y.kind, x.literal)
	case y.literal != nil:
		return !isOf(x.kind, y.literal)
	case x.kind != y.kind:
		return !isNumber(x.kind) || !isNumber(y.kind)
	}
	return x.kind == "object" && r.objectsDiffer(x.members, y.members, depth)
}

func isNumber(kind string) bool { return kind == "number" || kind == "integer" }

// objectsDiffer looks for a property that what is written for x has and y does
// not admit, or lacks and y requires.
func (r *reader) objectsDiffer(x, y *members, depth int) bool {
	for i, name := range slices.Concat(x.needs, y.needs) {
		r.compared++
		always := i < len(x.needs)
		mine, described := x.values[name]
		its, admitted := y.values[name]
		switch {
		case always && y.closed && !admitted:
			return true
		case !always && !described && !x.open && !slices.Contains(x.needs, name):
			return true
		case described && admitted && r.apart(mine, its, depth+1):
			return true
		}
	}
	return false
}

func isFalse(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "false" }
