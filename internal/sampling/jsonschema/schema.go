package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"hecate/internal/sampling/grammar"
)

// Bounds of a schema.
const (
	MaxBytes  = 256 << 10
	MaxNest   = 64   // schemas within each other, not counting references
	MaxItems  = 1000 // of lists and characters of strings with a bound: larger ones are cut to it
	maxChoice = 5000 // values of an enumeration
)

// Builder makes one grammar of one or more schemas.
type Builder struct {
	rules map[string]grammar.Expr
	count int
}

// NewBuilder starts a grammar that has the rules of plain JSON.
func NewBuilder() *Builder { return &Builder{rules: commonRules()} }

// Object is any JSON object.
func (b *Builder) Object() grammar.Expr { return grammar.Call(ruleObject) }

// Rule names an expression, so that it is kept once however often it occurs. The
// name must be no other rule's.
func (b *Builder) Rule(name string, e grammar.Expr) grammar.Expr {
	b.rules[name] = e
	return grammar.Call(name)
}

// Grammar gives the texts of start. It fails when they are too many to keep, or
// when none ever ends.
func (b *Builder) Grammar(start grammar.Expr) (*grammar.Grammar, error) {
	const top = "start"
	b.rules[top] = start
	g := &grammar.Grammar{Start: top, Rules: b.used(top)}
	if err := grammar.Check(g); err != nil {
		return nil, err
	}
	return g, nil
}

// used gives the rules that can be reached: the rest need not travel.
func (b *Builder) used(from string) map[string]grammar.Expr {
	out := map[string]grammar.Expr{}
	for todo := []string{from}; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		if _, seen := out[name]; seen {
			continue
		}
		e := b.rules[name]
		out[name] = e
		todo = append(todo, e.Calls()...)
	}
	return out
}

// Schema gives the values of a schema. Errors are *Error.
func (b *Builder) Schema(raw json.RawMessage) (grammar.Expr, error) {
	if len(raw) > MaxBytes {
		return grammar.Expr{}, fault("#", "has %d bytes, at most %d are taken", len(raw), MaxBytes)
	}
	if !json.Valid(raw) {
		return grammar.Expr{}, fault("#", "is not valid JSON")
	}
	r := &reader{b: b, root: raw, known: map[string]string{}, seen: map[*byte]*object{}, looks: map[*byte][]shape{}}
	e, err := r.schema("#", raw, 0)
	if err != nil {
		return grammar.Expr{}, err
	}
	return e, nil
}

// reader reads one schema.
type reader struct {
	b     *Builder
	root  json.RawMessage
	known map[string]string // reference -> rule
	seen  map[*byte]*object // what references led through

	looks    map[*byte][]shape // how values look, by where their schema begins
	compared int               // shapes and properties so far
}

// rule adds a rule of a new name.
func (r *reader) rule(e grammar.Expr) grammar.Expr {
	name := r.name()
	r.b.rules[name] = e
	return grammar.Call(name)
}

func (r *reader) name() string {
	r.b.count++
	return fmt.Sprint("s", r.b.count)
}

// annotations describe and do not constrain, and so does what begins with x-.
// (A discriminator only says which property tells branches apart; a format is
// honoured where it is known, see formats.)
var annotations = []string{"title", "description", "default", "example", "examples", "$schema", "$id", "id", "$comment", "$defs", "definitions",
	"deprecated", "readOnly", "writeOnly", "format", "contentEncoding", "contentMediaType", "strict", "discriminator"}

func annotation(name string) bool {
	return slices.Contains(annotations, name) || strings.HasPrefix(name, "x-")
}

// wholes are the keywords that stand for a whole schema, alone.
var wholes = []string{"$ref", "anyOf", "oneOf", "allOf"}

// constraints are the keywords that are honoured, by the type that they are of.
var constraints = map[string][]string{
	"object":  {"properties", "required", "additionalProperties", "propertyNames"},
	"array":   {"items", "prefixItems", "additionalItems", "minItems", "maxItems"},
	"string":  {"pattern", "minLength", "maxLength"},
	"number":  {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
	"integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"},
}

var kinds = []string{"object", "array", "string", "number", "integer", "boolean", "null"}

// hints say what to do instead of a keyword that is refused.
var hints = map[string]string{
	"not": "; say what may come instead",
}

func (r *reader) schema(path string, raw json.RawMessage, depth int) (grammar.Expr, error) {
	switch raw = bytes.TrimSpace(raw); {
	case r.b.count > grammar.MaxRules:
		return grammar.Expr{}, fault(path, "the schema has more than %d parts", grammar.MaxRules)
	case depth > MaxNest:
		return grammar.Expr{}, fault(path, "schemas are nested more than %d deep", MaxNest)
	case string(raw) == "true":
		return grammar.Call(ruleValue), nil
	case string(raw) == "false":
		return grammar.Expr{}, fault(path, "nothing satisfies the schema false")
	}
	o, err := readObject(raw)
	if err != nil {
		return grammar.Expr{}, fault(path, "a schema %s", err)
	}
	if err := known(path, o); err != nil {
		return grammar.Expr{}, err
	}
	switch {
	case o.has("$ref"):
		return r.only(path, o, "$ref", depth, r.reference)
	case o.has("anyOf"):
		return r.only(path, o, "anyOf", depth, r.anyOf)
	case o.has("oneOf"):
		return r.only(path, o, "oneOf", depth, r.oneOf)
	case o.has("allOf"):
		return r.only(path, o, "allOf", depth, r.allOf)
	case o.has("const"), o.has("enum"):
		return r.literals(path, o)
	}
	return r.typed(path, o, depth)
}

// known refuses the keywords that nothing here understands.
func known(path string, o *object) *Error {
	for _, name := range o.names {
		ok := annotation(name) || slices.Contains(wholes, name) || slices.Contains([]string{"const", "enum", "type"}, name)
		for _, list := range constraints {
			ok = ok || slices.Contains(list, name)
		}
		switch v := string(o.values[name]); {
		case ok:
		case name == "uniqueItems" && v == "false", name == "nullable" && v == "false", name == "multipleOf" && v == "1" && string(o.values["type"]) == `"integer"`:
		default:
			return fault(step(path, name), "%q is not supported%s", name, hints[name])
		}
	}
	return nil
}

// only reads a keyword that stands for the whole schema.
func (r *reader) only(path string, o *object, keyword string, depth int, read func(string, json.RawMessage, int) (grammar.Expr, error)) (grammar.Expr, error) {
	for _, name := range o.names {
		if name != keyword && !annotation(name) {
			return grammar.Expr{}, fault(step(path, name), "%q beside %q is not supported", name, keyword)
		}
	}
	return read(step(path, keyword), o.values[keyword], depth)
}

// reference makes a rule of what is pointed to, once: schemas may contain
// themselves.
func (r *reader) reference(path string, raw json.RawMessage, _ int) (grammar.Expr, error) {
	var ref string
	if json.Unmarshal(raw, &ref) != nil {
		return grammar.Expr{}, fault(path, "must be a string")
	}
	if name, ok := r.known[ref]; ok {
		return grammar.Call(name), nil
	}
	target, err := resolve(r.root, ref, r.seen)
	if err != nil {
		return grammar.Expr{}, fault(path, "%s", err)
	}
	name := r.name()
	r.known[ref] = name
	e, err := r.schema(ref, target, 0)
	if err != nil {
		return grammar.Expr{}, err
	}
	r.b.rules[name] = e
	return grammar.Call(name), nil
}

// several reads a list of schemas.
func several(path string, raw json.RawMessage) ([]json.RawMessage, error) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, fault(path, "must be an array of at least one schema")
	}
	return list, nil
}

// allOf of one schema is that schema: some write references so.
func (r *reader) allOf(path string, raw json.RawMessage, depth int) (grammar.Expr, error) {
	list, err := several(path, raw)
	switch {
	case err != nil:
		return grammar.Expr{}, err
	case len(list) > 1:
		return grammar.Expr{}, fault(path, `"allOf" of more than one schema is not supported; write its parts as one schema`)
	}
	return r.schema(step(path, "0"), list[0], depth+1)
}

func (r *reader) anyOf(path string, raw json.RawMessage, depth int) (grammar.Expr, error) {
	list, err := several(path, raw)
	if err != nil {
		return grammar.Expr{}, err
	}
	var alt []grammar.Expr
	for i, s := range list {
		e, err := r.schema(step(path, fmt.Sprint(i)), s, depth+1)
		if err != nil {
			return grammar.Expr{}, err
		}
		alt = append(alt, e)
	}
	return grammar.Alt(alt...), nil
}

// literals are the values of const and enum that the types admit.
func (r *reader) literals(path string, o *object) (grammar.Expr, error) {
	for _, name := range o.names {
		if name != "const" && name != "enum" && name != "type" && !annotation(name) {
			return grammar.Expr{}, fault(step(path, name), "%q beside fixed values is not supported", name)
		}
	}
	values, err := fixed(path, o)
	if err != nil {
		return grammar.Expr{}, err
	}
	var alt []grammar.Expr
	for _, v := range values {
		alt = append(alt, grammar.Text(compact(v)))
	}
	return grammar.Alt(alt...), nil
}

// fixed lists the values of const and enum that the types admit.
func fixed(path string, o *object) ([]json.RawMessage, error) {
	values, at := []json.RawMessage{o.values["const"]}, step(path, "const")
	if o.has("enum") {
		values, at = nil, step(path, "enum")
		if json.Unmarshal(o.values["enum"], &values) != nil || len(values) == 0 {
			return nil, fault(at, "must be an array of at least one value")
		}
		if len(values) > maxChoice {
			return nil, fault(at, "has %d values, at most %d are taken", len(values), maxChoice)
		}
	}
	types, err := typesOf(path, o)
	if err != nil {
		return nil, err
	}
	values = slices.DeleteFunc(values, func(v json.RawMessage) bool {
		return o.has("const") && compact(v) != compact(o.values["const"]) ||
			types != nil && !slices.ContainsFunc(types, func(t string) bool { return isOf(t, v) })
	})
	if len(values) == 0 {
		return nil, fault(at, "no value is of the type, or is the constant, that the schema wants")
	}
	return values, nil
}

func typesOf(path string, o *object) ([]string, error) {
	raw, ok := o.values["type"]
	if !ok {
		return nil, nil
	}
	var list []string
	var one string
	if json.Unmarshal(raw, &one) == nil {
		list = []string{one}
	} else if json.Unmarshal(raw, &list) != nil || len(list) == 0 {
		return nil, fault(step(path, "type"), "must be the name of a type, or several")
	}
	for _, t := range list {
		if !slices.Contains(kinds, t) {
			return nil, fault(step(path, "type"), "there is no type %q", t)
		}
	}
	return list, nil
}

// isOf says whether a value is of a type.
func isOf(kind string, v json.RawMessage) bool {
	v = bytes.TrimSpace(v)
	switch v[0] {
	case '{':
		return kind == "object"
	case '[':
		return kind == "array"
	case '"':
		return kind == "string"
	case 't', 'f':
		return kind == "boolean"
	case 'n':
		return kind == "null"
	}
	return kind == "number" || kind == "integer" && isWhole(v)
}

// compact is a value without whitespace.
func compact(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && bytes.TrimSpace(v)[0] == '"' {
		return `"` + characters(s) + `"`
	}
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		panic("BUG: a value of valid JSON that is not JSON")
	}
	return b.String()
}

// typed reads a schema by its types. Without any, the keywords tell.
func (r *reader) typed(path string, o *object, depth int) (grammar.Expr, error) {
	types, err := typesOf(path, o)
	if err != nil {
		return grammar.Expr{}, err
	}
	if types == nil {
		for _, kind := range kinds {
			if slices.ContainsFunc(constraints[kind], o.has) {
				types = append(types, kind)
				break
			}
		}
	}
	if types == nil {
		return grammar.Call(ruleValue), nil
	}
	var alt []grammar.Expr
	for _, kind := range types {
		e, err := r.kind(path, kind, o, depth)
		if err != nil {
			return grammar.Expr{}, err
		}
		alt = append(alt, e)
	}
	if len(alt) == 1 {
		return alt[0], nil
	}
	return grammar.Alt(alt...), nil
}

func (r *reader) kind(path, kind string, o *object, depth int) (grammar.Expr, error) {
	switch kind {
	case "object":
		return r.object(path, o, depth)
	case "array":
		return r.array(path, o, depth)
	case "string":
		return r.text(path, o)
	case "number", "integer":
		return r.number(path, kind, o)
	case "boolean":
		return grammar.Alt(grammar.Text("true"), grammar.Text("false")), nil
	}
	return grammar.Text("null"), nil
}

// bounds reads how often something may come; most is -1 without a bound.
func bounds(path string, o *object, from, to string) (least, most int, err error) {
	read := func(name string, def int) (int, error) {
		raw, ok := o.values[name]
		if !ok {
			return def, nil
		}
		var f float64
		if json.Unmarshal(raw, &f) != nil || f < 0 || f != float64(int64(f)) {
			return 0, fault(step(path, name), "must be a whole number, 0 or more")
		}
		return int(min(f, 1<<30)), nil
	}
	if least, err = read(from, 0); err != nil {
		return 0, 0, err
	}
	if most, err = read(to, -1); err != nil {
		return 0, 0, err
	}
	switch {
	case least > MaxItems:
		return 0, 0, fault(step(path, from), "is %d, at most %d is taken", least, MaxItems)
	case most >= 0 && most < least:
		return 0, 0, fault(step(path, to), "is %d, less than %q", most, from)
	}
	return least, min(most, MaxItems), nil
}

func (r *reader) text(path string, o *object) (grammar.Expr, error) {
	least, most, err := bounds(path, o, "minLength", "maxLength")
	if err != nil {
		return grammar.Expr{}, err
	}
	limited := least > 0 || most >= 0
	if raw, ok := o.values["pattern"]; ok {
		at := step(path, "pattern")
		if limited {
			return grammar.Expr{}, fault(at, `"pattern" beside a length is not supported; write the length into the pattern`)
		}
		var p string
		if json.Unmarshal(raw, &p) != nil {
			return grammar.Expr{}, fault(at, "must be a string")
		}
		e, err := pattern(p)
		if err != nil {
			return grammar.Expr{}, fault(at, "%s", err)
		}
		return r.rule(grammar.Seq(quote, e, quote)), nil
	}
	switch format := formatOf(o); {
	case !limited && format != "":
		e, err := pattern(format)
		if err != nil {
			panic("BUG: the pattern of a format: " + err.Error())
		}
		return r.rule(grammar.Seq(quote, e, quote)), nil
	case !limited:
		return grammar.Call(ruleString), nil
	case most == 0:
		return grammar.Text(`""`), nil
	}
	return r.rule(grammar.Seq(quote, grammar.Times(grammar.Call(ruleChar), least, max(most, 0)), quote)), nil
}
