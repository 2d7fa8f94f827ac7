package jsonschema

import (
	"bytes"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"hecate/internal/sampling/grammar"
)

// property is one member of an object that the schema names.
type property struct {
	pair     grammar.Expr
	required bool
}

func (r *reader) object(path string, o *object, depth int) (grammar.Expr, error) {
	if raw, ok := o.values["propertyNames"]; ok && !anyString(raw) {
		return grammar.Expr{}, fault(step(path, "propertyNames"), `"propertyNames" is not supported`)
	}
	props, names, err := r.properties(path, o, depth)
	if err != nil {
		return grammar.Expr{}, err
	}
	more, err := r.more(path, o, names, depth)
	if err != nil {
		return grammar.Expr{}, err
	}
	return r.rule(braces(r.members(props, more))), nil
}

// anyString says that a schema of names leaves them free.
func anyString(raw json.RawMessage) bool {
	o, err := readObject(raw)
	return err == nil && (len(o.names) == 0 || len(o.names) == 1 && compact(o.values["type"]) == `"string"`)
}

// properties reads the members that have names.
func (r *reader) properties(path string, o *object, depth int) (props []property, names []string, err error) {
	var required []string
	if raw, ok := o.values["required"]; ok && json.Unmarshal(raw, &required) != nil {
		return nil, nil, fault(step(path, "required"), "must be an array of strings")
	}
	described := &object{}
	at := step(path, "properties")
	if raw, ok := o.values["properties"]; ok {
		if described, err = readObject(raw); err != nil {
			return nil, nil, fault(at, "%s", err)
		}
	}
	add := func(name string, value grammar.Expr) {
		pair := grammar.Seq(grammar.Text(`"`+characters(name)+`":`), gap, value)
		props = append(props, property{pair, slices.Contains(required, name)})
		names = append(names, name)
	}
	for _, name := range described.names {
		value, err := r.schema(step(at, name), described.values[name], depth+1)
		if err != nil {
			return nil, nil, err
		}
		add(name, value)
	}
	for _, name := range required {
		if slices.Contains(names, name) {
			continue
		}
		value, err := r.undescribed(path, o, name, depth)
		if err != nil {
			return nil, nil, err
		}
		add(name, value)
	}
	return props, names, nil
}

// undescribed is the value of a required property that only
// additionalProperties speaks of.
func (r *reader) undescribed(path string, o *object, name string, depth int) (grammar.Expr, error) {
	raw, ok := o.values["additionalProperties"]
	if !ok {
		return grammar.Call(ruleValue), nil
	}
	if string(bytes.TrimSpace(raw)) == "false" {
		return grammar.Expr{}, fault(step(path, "required"), "names %q, which additionalProperties forbids", name)
	}
	return r.schema(step(path, "additionalProperties"), raw, depth+1)
}

// more reads what else an object may hold; nil: nothing.
func (r *reader) more(path string, o *object, names []string, depth int) (*grammar.Expr, error) {
	raw, ok := o.values["additionalProperties"]
	raw = bytes.TrimSpace(raw)
	if string(raw) == "false" || !ok && len(names) > 0 {
		return nil, nil
	}
	at := step(path, "additionalProperties")
	value := grammar.Call(ruleValue)
	if ok && string(raw) != "true" {
		var err error
		if value, err = r.schema(at, raw, depth+1); err != nil {
			return nil, err
		}
	}
	name := grammar.Call(ruleString)
	if len(names) > 0 {
		for _, n := range names {
			if utf8.RuneCountInString(n) > maxName {
				return nil, fault(at, "beside a property whose name has more than %d characters is not supported", maxName)
			}
		}
		name = r.rule(grammar.Seq(quote, otherThan(names), quote))
	}
	pair := r.rule(grammar.Seq(name, grammar.Text(":"), gap, value))
	return &pair, nil
}

// maxName bounds how deep the grammar of other names nests.
const maxName = 60

// otherThan is any name but those given, without escapes: an escape could spell
// one of them.
func otherThan(names []string) grammar.Expr {
	var alt []grammar.Expr
	if !slices.Contains(names, "") {
		alt = append(alt, grammar.Expr{})
	}
	next := map[rune][]string{}
	var firsts []rune
	for _, n := range names {
		if n == "" {
			continue
		}
		c, size := utf8.DecodeRuneInString(n)
		if next[c] == nil {
			firsts = append(firsts, c)
		}
		next[c] = append(next[c], n[size:])
	}
	slices.Sort(firsts)
	for _, c := range firsts {
		if inPlain(c) {
			alt = append(alt, grammar.Seq(grammar.Class(c, c), otherThan(next[c])))
		}
	}
	return grammar.Alt(append(alt, grammar.Seq(grammar.Class(without(plain, firsts)...), grammar.Any(grammar.Class(plain...))))...)
}

func inPlain(c rune) bool { return c >= 0x20 && c != '"' && c != '\\' }

// without takes single characters, in order, out of ranges.
func without(ranges []rune, chars []rune) (out []rune) {
	for i := 0; i < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		for _, c := range chars {
			if c < lo || c > hi {
				continue
			}
			if lo < c {
				out = append(out, lo, c-1)
			}
			lo = c + 1
		}
		if lo <= hi {
			out = append(out, lo, hi)
		}
	}
	return out
}

// members is the inside of an object: the properties in order, those that are
// not required perhaps left out, then others.
func (r *reader) members(props []property, more *grammar.Expr) grammar.Expr {
	// rest[i] is what may follow when something stands in front: properties from
	// i on, each with a comma.
	rest := make([]grammar.Expr, len(props)+1)
	if more != nil {
		rest[len(props)] = grammar.Any(grammar.Seq(comma, *more))
	}
	for i := len(props) - 1; i >= 0; i-- {
		p := grammar.Seq(comma, props[i].pair)
		if !props[i].required {
			p = grammar.Maybe(p)
		}
		rest[i] = r.rule(grammar.Seq(p, rest[i+1]))
	}
	var alt []grammar.Expr
	for i, p := range props {
		alt = append(alt, grammar.Seq(p.pair, rest[i+1]))
		if p.required {
			return grammar.Alt(alt...)
		}
	}
	alt = append(alt, grammar.Expr{})
	if more != nil {
		alt = append(alt, grammar.Seq(*more, rest[len(props)]))
	}
	return grammar.Alt(alt...)
}
