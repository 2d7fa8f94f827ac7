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

// Whole says whether it is a type of whole numbers.
func (t ValueType) Whole() bool {
	switch t {
	case TypeUint8, TypeInt8, TypeUint16, TypeInt16, TypeUint32, TypeInt32, TypeUint64, TypeInt64:
		return true
	}
	return false
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
	// long arrays are not kept; Strings, Ints and Floats32 read them.
	value any

	// where the value lies in the file, from its type on
	at, size int64
}
