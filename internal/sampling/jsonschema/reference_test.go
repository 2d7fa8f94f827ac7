package jsonschema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/mail"
	"reflect"
	"regexp"
	"time"
	"unicode/utf8"
)

// satisfies is the reference: it parses a text with encoding/json and checks it
// against a schema as the specification reads, knowing nothing of grammars.
func satisfies(schema, text string) error {
	var value any
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one value")
	}
	if !utf8.ValidString(text) {
		return fmt.Errorf("not UTF-8")
	}
	var root any
	d = json.NewDecoder(bytes.NewReader([]byte(schema)))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		return err
	}
	return check(root, root, value)
}

func check(root, schema, v any) error {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return fmt.Errorf("false")
		}
		return nil
	}
	if ref, ok := s["$ref"].(string); ok {
		raw, err := json.Marshal(root)
		if err != nil {
			return err
		}
		target, err := resolve(raw, ref, map[*byte]*object{})
		if err != nil {
			return err
		}
		var t any
		d := json.NewDecoder(bytes.NewReader(target))
		d.UseNumber()
		if err := d.Decode(&t); err != nil {
			return err
		}
		return check(root, t, v)
	}
	if all, ok := s["allOf"].([]any); ok {
		for _, one := range all {
			if err := check(root, one, v); err != nil {
				return err
			}
		}
	}
	if one, ok := s["oneOf"].([]any); ok {
		n := 0
		for _, x := range one {
			if check(root, x, v) == nil {
				n++
			}
		}
		if n != 1 {
			return fmt.Errorf("%v is %d of oneOf", v, n)
		}
		return nil
	}
	if any, ok := s["anyOf"].([]any); ok {
		for _, one := range any {
			if check(root, one, v) == nil {
				return nil
			}
		}
		return fmt.Errorf("%v is none of anyOf", v)
	}
	if err := checkFixed(s, v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		return checkText(s, v)
	case json.Number:
		return checkNumber(s, v)
	case []any:
		return checkArray(root, s, v)
	case map[string]any:
		return checkObject(root, s, v)
	}
	return nil
}

func checkFixed(s map[string]any, v any) error {
	if c, ok := s["const"]; ok && !reflect.DeepEqual(c, v) {
		return fmt.Errorf("%v is not %v", v, c)
	}
	if list, ok := s["enum"].([]any); ok {
		found := false
		for _, c := range list {
			found = found || reflect.DeepEqual(c, v)
		}
		if !found {
			return fmt.Errorf("%v is none of %v", v, list)
		}
	}
	var types []any
	switch t := s["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	default:
		return nil
	}
	for _, t := range types {
		if hasType(t.(string), v) {
			return nil
		}
	}
	return fmt.Errorf("%v is of none of the types %v", v, types)
}

func hasType(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		r, ok := new(big.Rat).SetString(string(v))
		return name == "number" || name == "integer" && ok && r.IsInt()
	}
	return false
}

func checkText(s map[string]any, v string) error {
	n := utf8.RuneCountInString(v)
	if lo, ok := s["minLength"].(json.Number); ok && cmpNumber(json.Number(fmt.Sprint(n)), lo) < 0 {
		return fmt.Errorf("%q is shorter than %s", v, lo)
	}
	if hi, ok := s["maxLength"].(json.Number); ok && cmpNumber(json.Number(fmt.Sprint(n)), hi) > 0 {
		return fmt.Errorf("%q is longer than %s", v, hi)
	}
	if f, ok := s["format"].(string); ok && isFormat[f] != nil && !isFormat[f](v) {
		return fmt.Errorf("%q is no %s", v, f)
	}
	if p, ok := s["pattern"].(string); ok && !regexp.MustCompile(p).MatchString(v) {
		return fmt.Errorf("%q does not match %s", v, p)
	}
	return nil
}

// isFormat reads formats with the standard library.
var isFormat = map[string]func(string) bool{
	"date-time": func(s string) bool { _, err := time.Parse(time.RFC3339Nano, s); return err == nil },
	"date":      func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
	"time":      func(s string) bool { _, err := time.Parse("15:04:05.999999999Z07:00", s); return err == nil },
	"email":     func(s string) bool { a, err := mail.ParseAddress(s); return err == nil && a.Address == s },
	"uuid": func(s string) bool {
		return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`).MatchString(s)
	},
}

func cmpNumber(a, b json.Number) int {
	x, _ := new(big.Rat).SetString(string(a))
	y, _ := new(big.Rat).SetString(string(b))
	return x.Cmp(y)
}

func checkNumber(s map[string]any, v json.Number) error {
	for name, bad := range map[string]func(int) bool{
		"minimum":          func(c int) bool { return c < 0 },
		"exclusiveMinimum": func(c int) bool { return c <= 0 },
		"maximum":          func(c int) bool { return c > 0 },
		"exclusiveMaximum": func(c int) bool { return c >= 0 },
	} {
		if l, ok := s[name].(json.Number); ok && bad(cmpNumber(v, l)) {
			return fmt.Errorf("%s breaks %s %s", v, name, l)
		}
	}
	return nil
}

func checkArray(root any, s map[string]any, v []any) error {
	n := json.Number(fmt.Sprint(len(v)))
	if lo, ok := s["minItems"].(json.Number); ok && cmpNumber(n, lo) < 0 {
		return fmt.Errorf("%d items", len(v))
	}
	if hi, ok := s["maxItems"].(json.Number); ok && cmpNumber(n, hi) > 0 {
		return fmt.Errorf("%d items", len(v))
	}
	item, ok := s["items"]
	first, _ := s["prefixItems"].([]any)
	if list, old := item.([]any); old {
		first = list
		item, ok = s["additionalItems"]
	}
	for i, x := range first {
		if i < len(v) {
			if err := check(root, x, v[i]); err != nil {
				return err
			}
		}
	}
	if ok {
		for _, x := range v[min(len(first), len(v)):] {
			if err := check(root, item, x); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkObject(root any, s map[string]any, v map[string]any) error {
	if list, ok := s["required"].([]any); ok {
		for _, name := range list {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Errorf("%v has no %v", v, name)
			}
		}
	}
	props, _ := s["properties"].(map[string]any)
	for name, x := range v {
		if p, ok := props[name]; ok {
			if err := check(root, p, x); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			continue
		}
		if more, ok := s["additionalProperties"]; ok {
			if err := check(root, more, x); err != nil {
				return fmt.Errorf("%s, which is additional: %w", name, err)
			}
		}
	}
	return nil
}
