package gguf

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Entry is a metadata entry to write. Value is a bool, string, uint8, int32,
// uint32, uint64, int64, float32 or float64, a slice of string, int32, uint32
// or float32, or Raw.
type Entry struct {
	Key   string
	Value any
}

// Raw is a value as it stands in another file, from its type on.
type Raw []byte

// Item is a tensor to write. Data writes exactly the tensor's bytes; nil means
// zeros.
type Item struct {
	Name string
	Kind Kind
	Dims []int64
	Data func(w io.Writer) error
}

func (it Item) bytes() int64 { return Tensor{Kind: it.Kind, Dims: it.Dims}.Bytes() }

// Write writes a file of version 3 with the default alignment of 32.
func Write(w io.Writer, entries []Entry, items []Item) error {
	cw := &countingWriter{w: bufio.NewWriterSize(w, 1<<18)}
	if _, err := WriteHeader(cw, entries, items); err != nil {
		return err
	}
	for _, it := range items {
		begin := cw.n
		if it.Data != nil {
			if err := it.Data(cw); err != nil {
				return fmt.Errorf("write tensor %s: %w", it.Name, err)
			}
			if got := cw.n - begin; got != it.bytes() {
				return fmt.Errorf("write tensor %s: %d bytes given, %d expected", it.Name, got, it.bytes())
			}
		}
		if err := cw.pad(begin + align(it.bytes(), defaultAlignment)); err != nil {
			return err
		}
	}
	return cw.w.Flush()
}

const defaultAlignment = 32

// WriteHeader writes only what comes before the tensor data and returns the
// size that the whole file would have.
func WriteHeader(w io.Writer, entries []Entry, items []Item) (size int64, err error) {
	e := &encoder{}
	e.buf = append(e.buf, "GGUF"...)
	e.u32(3)
	e.u64(uint64(len(items)))
	e.u64(uint64(len(entries)))
	for _, kv := range entries {
		if err := e.entry(kv); err != nil {
			return 0, err
		}
	}
	at := int64(0)
	for _, it := range items {
		e.str(it.Name)
		e.u32(uint32(len(it.Dims)))
		for _, d := range it.Dims {
			e.u64(uint64(d))
		}
		e.u32(uint32(it.Kind))
		e.u64(uint64(at))
		at += align(it.bytes(), defaultAlignment)
	}
	for int64(len(e.buf)) != align(int64(len(e.buf)), defaultAlignment) {
		e.buf = append(e.buf, 0)
	}
	_, err = w.Write(e.buf)
	return int64(len(e.buf)) + at, err
}

// encoder builds a header in memory.
type encoder struct{ buf []byte }

func (e *encoder) u32(v uint32) { e.buf = binary.LittleEndian.AppendUint32(e.buf, v) }
func (e *encoder) u64(v uint64) { e.buf = binary.LittleEndian.AppendUint64(e.buf, v) }
func (e *encoder) str(s string) {
	e.u64(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

func (e *encoder) entry(kv Entry) error {
	e.str(kv.Key)
	switch v := kv.Value.(type) {
	case Raw:
		e.buf = append(e.buf, v...)
	case string:
		e.u32(uint32(TypeString))
		e.str(v)
	case []string:
		e.head(TypeString, len(v))
		for _, s := range v {
			e.str(s)
		}
	case bool, uint8, int32, uint32, uint64, int64, float32, float64:
		e.u32(uint32(typeOf(v)))
		e.fixed(v)
	case []int32:
		e.head(TypeInt32, len(v))
		e.fixed(v)
	case []uint32:
		e.head(TypeUint32, len(v))
		e.fixed(v)
	case []bool:
		e.head(TypeBool, len(v))
		e.fixed(v)
	case []float32:
		e.head(TypeFloat32, len(v))
		e.fixed(v)
	default:
		return fmt.Errorf("gguf: cannot write %s: a %T", kv.Key, kv.Value)
	}
	return nil
}

func (e *encoder) head(t ValueType, n int) {
	e.u32(uint32(TypeArray))
	e.u32(uint32(t))
	e.u64(uint64(n))
}

func (e *encoder) fixed(v any) {
	out, err := binary.Append(e.buf, binary.LittleEndian, v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	e.buf = out
}

func typeOf(v any) ValueType {
	switch v.(type) {
	case bool:
		return TypeBool
	case uint8:
		return TypeUint8
	case int32:
		return TypeInt32
	case uint32:
		return TypeUint32
	case uint64:
		return TypeUint64
	case int64:
		return TypeInt64
	case float32:
		return TypeFloat32
	case float64:
		return TypeFloat64
	}
	panic(fmt.Sprintf("BUG: no type for %T", v))
}

// countingWriter knows how much was written, for padding.
type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

var zeros [4096]byte

// pad writes zeros up to the given position.
func (c *countingWriter) pad(to int64) error {
	for c.n < to {
		if _, err := c.Write(zeros[:min(to-c.n, int64(len(zeros)))]); err != nil {
			return err
		}
	}
	return nil
}

// Floats makes an F32 item of values, the first dimension varying fastest.
func Floats(name string, values []float32, dims ...int64) Item {
	return Item{Name: name, Kind: F32, Dims: dims, Data: func(w io.Writer) error {
		raw := make([]byte, 0, 4*len(values))
		for _, v := range values {
			raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
		}
		_, err := w.Write(raw)
		return err
	}}
}
