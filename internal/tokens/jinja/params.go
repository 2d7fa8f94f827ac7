package jinja

import "fmt"

// params are the arguments of a filter, test, method or function.
type params struct {
	args []Value
	kw   map[string]Value
}

// get returns argument i, or the keyword argument of the given name.
func (p params) get(i int, name string) (Value, bool) {
	if i < len(p.args) {
		return p.args[i], true
	}
	v, ok := p.kw[name]
	return v, ok
}

func (p params) text(i int, name, def string) (Text, error) {
	v, ok := p.get(i, name)
	if !ok || v == nil {
		return Trusted(def), nil
	}
	t, ok := v.(Text)
	if !ok {
		return Text{}, fmt.Errorf("argument %s is a %s, not a str", name, typeName(v))
	}
	return t, nil
}

func (p params) int(i int, name string, def int) (int, error) {
	v, ok := p.get(i, name)
	if !ok || v == nil {
		return def, nil
	}
	n, ok := integer(v)
	if !ok || n < -1<<31 || n >= 1<<31 {
		return 0, fmt.Errorf("argument %s is not a small int", name)
	}
	return int(n), nil
}

func (p params) truth(i int, name string) bool {
	v, _ := p.get(i, name)
	return truth(v)
}

// rest returns p without its first n positional arguments.
func (p params) rest(n int) params {
	return params{p.args[min(n, len(p.args)):], p.kw}
}
