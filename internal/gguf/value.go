package gguf

import "fmt"

// ValueType is the type of a metadata value, numbered as in the format.
type ValueType uint32

// The value types of GGUF.
const (
	TypeUint8 ValueType = iota
	TypeInt8
	TypeUint16
	TypeInt16
	TypeUint32
	TypeInt32
	TypeFloat32
	TypeBool
	TypeString
	TypeArray
	TypeUint64
	TypeInt64
	TypeFloat64
)

var valueNames = [...]string{"uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "bool", "string", "array", "uint64", "int64", "float64"}

func (t ValueType) String() string {
	if int(t) < len(valueNames) {
		return valueNames[t]
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// width is the size of a scalar in bytes; 0 for strings, arrays and unknown
// types.
func (t ValueType) width() int64 {
	switch t {
	case TypeUint8, TypeInt8, TypeBool:
		return 1
	case TypeUint16, TypeInt16:
		return 2
	case TypeUint32, TypeInt32, TypeFloat32:
		return 4
	case TypeUint64, TypeInt64, TypeFloat64:
		return 8
	}
	return 0
}

// KV is one metadata entry.
type KV struct {
	Key  string
	Type ValueType
	// Elem and Count describe an array.
	Elem  ValueType
	Count int64

	// value is a uint64, int64, float64, bool or string, or for short numeric
	// arrays a []uint64, []int64, []float64 or []bool. Arrays of strings and
	// long arrays are not kept.
	value any

	// where the value lies in the file, from its type on
	at, size int64
}

// Uint returns a metadata value that is a whole number of at least 0,
// whatever its width.
func (f *File) Uint(key string) (uint64, bool) {
	switch v := f.lookup(key).(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	}
	return 0, false
}

// Float returns a metadata value that is a number.
func (f *File) Float(key string) (float64, bool) {
	switch v := f.lookup(key).(type) {
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
func (f *File) Text(key string) (string, bool) {
	s, ok := f.lookup(key).(string)
	return s, ok
}

// Flag returns a metadata value that is a boolean.
func (f *File) Flag(key string) (value, ok bool) {
	b, ok := f.lookup(key).(bool)
	return b, ok
}

// Flags returns a short array of truth values.
func (f *File) Flags(key string) ([]bool, bool) {
	b, ok := f.lookup(key).([]bool)
	return b, ok
}

// Len returns the number of elements of an array, whether it is kept or not.
func (f *File) Len(key string) (int64, bool) {
	kv, ok := f.KV(key)
	if !ok || kv.Type != TypeArray {
		return 0, false
	}
	return kv.Count, true
}

// Uints returns a short array of whole numbers of at least 0, or a single one
// as an array of one.
func (f *File) Uints(key string) ([]uint64, bool) {
	switch v := f.lookup(key).(type) {
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
	if v, ok := f.Uint(key); ok {
		return []uint64{v}, true
	}
	return nil, false
}

// Has says whether the file has the key, of whatever type.
func (f *File) Has(key string) bool { _, ok := f.keys[key]; return ok }

// KV returns the entry of a key.
func (f *File) KV(key string) (KV, bool) {
	i, ok := f.keys[key]
	if !ok {
		return KV{}, false
	}
	return f.KVs[i], true
}

func (f *File) lookup(key string) any {
	if i, ok := f.keys[key]; ok {
		return f.KVs[i].value
	}
	return nil
}

// Span is where an entry's value lies in the file, from its type on: first
// byte and the one after the last.
func (f *File) Span(kv KV) [2]int64 { return [2]int64{kv.at, kv.at + kv.size} }
