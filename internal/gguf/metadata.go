package gguf

import (
	"fmt"
	"io"
)

// Metadata is what a file says before it lists its tensors.
type Metadata struct {
	Name    string // path, or what the caller called it
	Version uint32 // 2 or 3
	Size    int64  // of the whole file, bytes
	KVs     []KV   // in the file's order

	keys map[string]int
}

// ReadMetadata reads and checks the metadata alone, of a file of which no more
// may be there. size is that of what is there; name stands for it in errors,
// which are those of r and *FormatError.
func ReadMetadata(r io.ReaderAt, size int64, name string) (*Metadata, error) {
	m := &Metadata{Name: name, Size: size}
	if _, err := m.header(r).metadata(); err != nil {
		return nil, err
	}
	return m, nil
}

// Fault makes the error for a field of this file; value may be nil.
func (m *Metadata) Fault(field string, value any, why string, args ...any) error {
	v := ""
	if value != nil {
		v = fmt.Sprint(value)
		if s, ok := value.(string); ok {
			v = fmt.Sprintf("%.100q", s)
		}
	}
	return &FormatError{File: m.Name, Field: field, Value: v, Why: fmt.Sprintf(why, args...)}
}

// Uint returns a metadata value that is a whole number of at least 0,
// whatever its width.
func (m *Metadata) Uint(key string) (uint64, bool) {
	switch v := m.lookup(key).(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	}
	return 0, false
}

// Float returns a metadata value that is a number.
func (m *Metadata) Float(key string) (float64, bool) {
	switch v := m.lookup(key).(type) {
	case float64:
		return v, true
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	}
	return 0, false
}

// Text returns a metadata value that is a string.
func (m *Metadata) Text(key string) (string, bool) {
	s, ok := m.lookup(key).(string)
	return s, ok
}

// Flag returns a metadata value that is a boolean.
func (m *Metadata) Flag(key string) (value, ok bool) {
	b, ok := m.lookup(key).(bool)
	return b, ok
}

// Flags returns a short array of truth values.
func (m *Metadata) Flags(key string) ([]bool, bool) {
	b, ok := m.lookup(key).([]bool)
	return b, ok
}

// Len returns the number of elements of an array, whether it is kept or not.
func (m *Metadata) Len(key string) (int64, bool) {
	kv, ok := m.KV(key)
	if !ok || kv.Type != TypeArray {
		return 0, false
	}
	return kv.Count, true
}

// Uints returns a short array of whole numbers of at least 0, or a single one
// as an array of one.
func (m *Metadata) Uints(key string) ([]uint64, bool) {
	switch v := m.lookup(key).(type) {
	case []uint64:
		return v, true
	case []int64:
		out := make([]uint64, len(v))
		for i, x := range v {
			if x < 0 {
				return nil, false
			}
			out[i] = uint64(x)
		}
		return out, true
	}
	if v, ok := m.Uint(key); ok {
		return []uint64{v}, true
	}
	return nil, false
}

// Has says whether the file has the key, of whatever type.
func (m *Metadata) Has(key string) bool { _, ok := m.keys[key]; return ok }

// KV returns the entry of a key.
func (m *Metadata) KV(key string) (KV, bool) {
	i, ok := m.keys[key]
	if !ok {
		return KV{}, false
	}
	return m.KVs[i], true
}

func (m *Metadata) lookup(key string) any {
	if i, ok := m.keys[key]; ok {
		return m.KVs[i].value
	}
	return nil
}

// Span is where an entry's value lies in the file, from its type on: first
// byte and the one after the last.
func (m *Metadata) Span(kv KV) [2]int64 { return [2]int64{kv.at, kv.at + kv.size} }
