package gguf

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// parser reads a header front to back. It knows how many bytes are left and
// refuses any length before it allocates or skips.
type parser struct {
	m    *Metadata
	r    *bufio.Reader
	at   int64
	left int64  // bytes that may still be read
	kept uint64 // bytes of strings that are kept
	buf  [8]byte
}

// parser reads n bytes of the file from a position on.
func (m *Metadata) parser(r io.ReaderAt, at, n int64) *parser {
	return &parser{m: m, r: bufio.NewReaderSize(io.NewSectionReader(r, at, n), 1<<16), at: at, left: n}
}

// header reads all that may come before the tensor data.
func (m *Metadata) header(r io.ReaderAt) *parser { return m.parser(r, 0, min(m.Size, maxHeader)) }

// metadata reads up to the first tensor and returns the number of tensors.
func (p *parser) metadata() (tensors uint64, err error) {
	keys, tensors, err := p.preamble()
	if err != nil {
		return 0, err
	}
	p.m.keys = make(map[string]int)
	for i := range keys {
		if err := p.entry(i); err != nil {
			return 0, err
		}
	}
	return tensors, nil
}

// preamble reads magic, version and counts.
func (p *parser) preamble() (keys, tensors uint64, err error) {
	magic, err := p.bytes("magic", 4)
	if err != nil {
		return 0, 0, err
	}
	if string(magic) != "GGUF" {
		return 0, 0, p.m.Fault("magic", string(magic), "not a GGUF file")
	}
	if p.m.Version, err = p.u32("version"); err != nil {
		return 0, 0, err
	}
	if v := p.m.Version; v != 2 && v != 3 {
		if v == 2<<24 || v == 3<<24 {
			return 0, 0, p.m.Fault("version", v, "a big-endian file; only little-endian ones are read")
		}
		return 0, 0, p.m.Fault("version", v, "only versions 2 and 3 are known")
	}
	if tensors, err = p.count("tensor count", maxTensors, 24); err != nil {
		return 0, 0, err
	}
	keys, err = p.count("metadata count", maxKeys, 13)
	return keys, tensors, err
}

// entry reads one metadata entry.
func (p *parser) entry(i uint64) error {
	key, err := p.str(fmt.Sprintf("key %d", i), maxKeyLen)
	if err != nil {
		return err
	}
	if key == "" || !utf8.ValidString(key) {
		return p.m.Fault(fmt.Sprintf("key %d", i), key, "not a usable key")
	}
	if _, dup := p.m.keys[key]; dup {
		return p.m.Fault("key "+key, nil, "occurs twice")
	}
	kv := KV{Key: key, at: p.at}
	t, err := p.u32("type of " + key)
	if err != nil {
		return err
	}
	kv.Type = ValueType(t)
	if kv.Type == TypeArray {
		err = p.array(&kv)
	} else {
		kv.value, err = p.scalar(key, kv.Type)
	}
	if err != nil {
		return err
	}
	kv.size = p.at - kv.at
	p.m.keys[key] = len(p.m.KVs)
	p.m.KVs = append(p.m.KVs, kv)
	return nil
}

// scalar reads a value that is not an array.
func (p *parser) scalar(key string, t ValueType) (any, error) {
	if t == TypeString {
		text, err := p.str(key, min(maxStringLen, maxKept-p.kept))
		p.kept += uint64(len(text))
		return text, err
	}
	w := t.width()
	if w == 0 {
		return nil, p.m.Fault("type of "+key, uint32(t), "no such value type")
	}
	b, err := p.bytes(key, w)
	if err != nil {
		return nil, err
	}
	if t == TypeBool && b[0] > 1 {
		return nil, p.m.Fault(key, b[0], "a bool is 0 or 1")
	}
	return decode(t, b), nil
}

// decode turns a scalar's bytes into a uint64, int64, float64 or bool.
func decode(t ValueType, b []byte) any {
	le := binary.LittleEndian
	switch t {
	case TypeUint8:
		return uint64(b[0])
	case TypeInt8:
		return int64(int8(b[0]))
	case TypeUint16:
		return uint64(le.Uint16(b))
	case TypeInt16:
		return int64(int16(le.Uint16(b)))
	case TypeUint32:
		return uint64(le.Uint32(b))
	case TypeInt32:
		return int64(int32(le.Uint32(b)))
	case TypeUint64:
		return le.Uint64(b)
	case TypeInt64:
		return int64(le.Uint64(b))
	case TypeFloat32:
		return float64(math.Float32frombits(le.Uint32(b)))
	case TypeFloat64:
		return math.Float64frombits(le.Uint64(b))
	case TypeBool:
		return b[0] == 1
	}
	panic("BUG: decode of " + t.String())
}

// array reads an array's elements, keeping short numeric ones.
func (p *parser) array(kv *KV) error {
	t, err := p.u32("element type of " + kv.Key)
	if err != nil {
		return err
	}
	kv.Elem = ValueType(t)
	w := kv.Elem.width()
	if w == 0 && kv.Elem != TypeString {
		return p.m.Fault("element type of "+kv.Key, kv.Elem, "not a type that arrays may have")
	}
	least := w
	if kv.Elem == TypeString {
		least = 8
	}
	n, err := p.count("length of "+kv.Key, maxArrayLen, least)
	if err != nil {
		return err
	}
	kv.Count = int64(n)
	switch {
	case kv.Elem == TypeString:
		return p.skipStrings(kv)
	case n > maxKeptNumbers:
		return p.skip(kv.Key, kv.Count*w)
	}
	raw, err := p.bytes(kv.Key, kv.Count*w)
	if err != nil {
		return err
	}
	kv.value = decodeArray(kv.Elem, raw, int(n))
	return nil
}

func (p *parser) skipStrings(kv *KV) error {
	for i := range kv.Count {
		n, err := p.u64(kv.Key)
		if err != nil {
			return err
		}
		if n > maxStringLen {
			return p.m.Fault(fmt.Sprintf("%s[%d]", kv.Key, i), n, "a string longer than %d bytes", maxStringLen)
		}
		if err := p.skip(kv.Key, int64(n)); err != nil {
			return err
		}
	}
	return nil
}

// decodeArray returns a []uint64, []int64, []float64 or []bool.
func decodeArray(t ValueType, raw []byte, n int) any {
	w := int(t.width())
	switch t {
	case TypeFloat32, TypeFloat64:
		return gather[float64](t, raw, n, w)
	case TypeBool:
		out := make([]bool, n)
		for i := range out {
			out[i] = raw[i] != 0
		}
		return out
	case TypeInt8, TypeInt16, TypeInt32, TypeInt64:
		return gather[int64](t, raw, n, w)
	}
	return gather[uint64](t, raw, n, w)
}

func gather[T any](t ValueType, raw []byte, n, w int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = decode(t, raw[i*w:]).(T)
	}
	return out
}

// tensor reads one tensor description.
func (p *parser) tensor(f *File, i uint64) error {
	field := fmt.Sprintf("name of tensor %d", i)
	name, err := p.str(field, maxNameLen)
	if err != nil {
		return err
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return p.m.Fault(field, name, "not a usable name")
	}
	if _, dup := f.tensors[name]; dup {
		return p.m.Fault("tensor "+name, nil, "occurs twice")
	}
	t := Tensor{Name: name}
	if err := p.dims(&t); err != nil {
		return err
	}
	kind, err := p.u32("kind of tensor " + name)
	if err != nil {
		return err
	}
	if t.Kind = Kind(kind); !t.Kind.Known() {
		return p.m.Fault("kind of tensor "+name, kind, "no such kind")
	}
	if t.Dims[0]%t.Kind.Block() != 0 {
		return p.m.Fault("tensor "+name, fmt.Sprint(t.Dims), "rows are no multiple of %s's block of %d", t.Kind, t.Kind.Block())
	}
	off, err := p.u64("offset of tensor " + name)
	if err != nil {
		return err
	}
	if off > uint64(p.m.Size) {
		return p.m.Fault("offset of tensor "+name, off, "beyond the end of the file (%d bytes)", p.m.Size)
	}
	t.Offset = int64(off)
	f.tensors[name] = len(f.Tensors)
	f.Tensors = append(f.Tensors, t)
	return nil
}

func (p *parser) dims(t *Tensor) error {
	n, err := p.u32("dimensions of tensor " + t.Name)
	if err != nil {
		return err
	}
	if n < 1 || n > 4 {
		return p.m.Fault("dimensions of tensor "+t.Name, n, "must be 1 to 4")
	}
	elems := int64(1)
	t.Dims = make([]int64, n)
	for d := range t.Dims {
		v, err := p.u64(fmt.Sprintf("dimension %d of tensor %s", d, t.Name))
		if err != nil {
			return err
		}
		if v < 1 || v > maxDim || int64(v) > maxElements/elems {
			return p.m.Fault(fmt.Sprintf("dimension %d of tensor %s", d, t.Name), v, "must be at least 1, and the tensor of at most 2^42 elements")
		}
		t.Dims[d] = int64(v)
		elems *= int64(v)
	}
	return nil
}

// count reads a count of things that take at least size bytes each.
func (p *parser) count(field string, limit uint64, size int64) (uint64, error) {
	n, err := p.u64(field)
	if err != nil {
		return 0, err
	}
	if n > limit {
		return 0, p.m.Fault(field, n, "more than the limit of %d", limit)
	}
	if int64(n)*size > p.left {
		return 0, p.m.Fault(field, n, "more than the file's %d bytes can hold: truncated?", p.m.Size)
	}
	return n, nil
}

func (p *parser) str(field string, limit uint64) (string, error) {
	n, err := p.u64("length of " + field)
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", p.m.Fault("length of "+field, n, "more than the limit of %d", limit)
	}
	b, err := p.bytes(field, int64(n))
	return string(b), err
}

func (p *parser) u32(field string) (uint32, error) {
	b, err := p.bytes(field, 4)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(b), nil
}

func (p *parser) u64(field string) (uint64, error) {
	b, err := p.bytes(field, 8)
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// bytes reads n bytes; they are valid until the next read.
func (p *parser) bytes(field string, n int64) ([]byte, error) {
	if err := p.take(field, n); err != nil {
		return nil, err
	}
	b := p.buf[:]
	if n > int64(len(b)) {
		b = make([]byte, n)
	}
	if _, err := io.ReadFull(p.r, b[:n]); err != nil {
		return nil, p.broken(field, err)
	}
	return b[:n], nil
}

func (p *parser) skip(field string, n int64) error {
	if err := p.take(field, n); err != nil {
		return err
	}
	if _, err := p.r.Discard(int(n)); err != nil {
		return p.broken(field, err)
	}
	return nil
}

// take accounts for n bytes of the header before they are read.
func (p *parser) take(field string, n int64) error {
	if n > p.left {
		return p.m.Fault(field, nil, "needs %d bytes at %d, the file ends at %d: truncated?", n, p.at, p.m.Size)
	}
	p.at += n
	p.left -= n
	return nil
}

func (p *parser) broken(field string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.m.Fault(field, nil, "the file ends early: truncated?")
	}
	return fmt.Errorf("gguf: %s: read %s: %w", p.m.Name, field, err)
}

// align rounds n up to a multiple of a, a power of two.
func align(n, a int64) int64 { return (n + a - 1) &^ (a - 1) }
