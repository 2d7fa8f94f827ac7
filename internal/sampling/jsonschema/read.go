package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Error is what a schema asks for and does not get, or what is wrong with it.
type Error struct {
	Path    string // JSON pointer into the schema, such as #/properties/age
	Message string
}

func (e *Error) Error() string { return e.Path + ": " + e.Message }

func fault(path, format string, args ...any) *Error {
	return &Error{path, fmt.Sprintf(format, args...)}
}

// object is a JSON object whose names keep their order.
type object struct {
	names  []string
	values map[string]json.RawMessage
}

func (o *object) has(name string) bool { _, ok := o.values[name]; return ok }

// readObject reads one level of an object.
func readObject(raw json.RawMessage) (*object, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("must be an object")
	}
	o := &object{values: map[string]json.RawMessage{}}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := t.(string)
		if !ok {
			return nil, errors.New("must be an object")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		if !o.has(name) {
			o.names = append(o.names, name)
		}
		o.values[name] = v
	}
	return o, nil
}

// step is one part of a JSON pointer, escaped.
func step(path, name string) string {
	return path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// resolve finds what a reference within the schema points to. What is read on
// the way is remembered in seen, by where it begins: there may be many references.
func resolve(root json.RawMessage, ref string, seen map[*byte]*object) (json.RawMessage, error) {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok || rest != "" && rest[0] != '/' {
		return nil, fmt.Errorf("%q does not point into this schema; only references like #/$defs/name do", ref)
	}
	at := root
	for _, part := range strings.Split(rest, "/")[1:] {
		part = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		next, err := member(at, part, seen)
		if err != nil {
			return nil, fmt.Errorf("%q points to nothing", ref)
		}
		at = next
	}
	return at, nil
}

func member(at json.RawMessage, part string, seen map[*byte]*object) (json.RawMessage, error) {
	o := seen[&at[0]]
	if o == nil {
		if read, err := readObject(at); err == nil {
			o, seen[&at[0]] = read, read
		}
	}
	if o != nil {
		if v, ok := o.values[part]; ok {
			return v, nil
		}
		return nil, errors.New("no such member")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(at, &list); err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(part)
	if err != nil || i < 0 || i >= len(list) {
		return nil, errors.New("no such member")
	}
	return list[i], nil
}
