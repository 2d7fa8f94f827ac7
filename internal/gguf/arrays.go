package gguf

import (
	"fmt"
	"io"
	"math"
)

// Strings reads an array of at most count strings of at most size bytes each.
// Like Ints and Floats32 it reads from r, the file that the metadata came from,
// and gives nothing where the file does not have the key.
func (m *Metadata) Strings(r io.ReaderAt, key string, count, size uint64) ([]string, error) {
	p, kv, err := m.elements(r, key, count, "strings", func(t ValueType) bool { return t == TypeString })
	if err != nil || p == nil {
		return nil, err
	}
	out := make([]string, kv.Count)
	for i := range out {
		if out[i], err = p.str(fmt.Sprintf("%s[%d]", key, i), size); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Ints reads an array of at most count whole numbers, whatever their width.
func (m *Metadata) Ints(r io.ReaderAt, key string, count uint64) ([]int64, error) {
	p, kv, err := m.elements(r, key, count, "whole numbers", ValueType.Whole)
	if err != nil || p == nil {
		return nil, err
	}
	out := make([]int64, kv.Count)
	for i := range out {
		v, err := p.scalar(key, kv.Elem)
		if err != nil {
			return nil, err
		}
		switch v := v.(type) {
		case int64:
			out[i] = v
		case uint64:
			if v > math.MaxInt64 {
				return nil, m.Fault(fmt.Sprintf("%s[%d]", key, i), v, "more than the limit of %d", int64(math.MaxInt64))
			}
			out[i] = int64(v)
		}
	}
	return out, nil
}

// Floats32 reads an array of at most count numbers of type float32.
func (m *Metadata) Floats32(r io.ReaderAt, key string, count uint64) ([]float32, error) {
	p, kv, err := m.elements(r, key, count, "float32 numbers", func(t ValueType) bool { return t == TypeFloat32 })
	if err != nil || p == nil {
		return nil, err
	}
	out := make([]float32, kv.Count)
	for i := range out {
		bits, err := p.u32(key)
		if err != nil {
			return nil, err
		}
		out[i] = math.Float32frombits(bits)
	}
	return out, nil
}

// elements checks an array and gives a parser that stands before its first
// element; nil for an array that the file does not have.
func (m *Metadata) elements(r io.ReaderAt, key string, count uint64, what string, good func(ValueType) bool) (*parser, KV, error) {
	kv, ok := m.KV(key)
	switch {
	case !ok:
		return nil, KV{}, nil
	case kv.Type != TypeArray:
		return nil, KV{}, m.Fault("type of "+key, kv.Type, "must be an array of %s", what)
	case !good(kv.Elem):
		return nil, KV{}, m.Fault("element type of "+key, kv.Elem, "must be an array of %s", what)
	case uint64(kv.Count) > count:
		return nil, KV{}, m.Fault("length of "+key, kv.Count, "more than the limit of %d", count)
	case kv.size > maxKept:
		return nil, KV{}, m.Fault(key, fmt.Sprintf("%d bytes", kv.size), "more than the limit of %d", maxKept)
	}
	return m.parser(r, kv.at+arrayHead, kv.size-arrayHead), kv, nil
}

// arrayHead is what stands before an array's elements: its type, theirs, and
// their number.
const arrayHead = 4 + 4 + 8
