package tokens

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// ErrNotGGUF is what errors.Is finds when a file is not a GGUF at all.
var ErrNotGGUF = errors.New("not a GGUF file")

// OpenSource reads the text side of a GGUF file.
func OpenSource(path string) (Source, error) {
	f, err := os.Open(path)
	if err != nil {
		return Source{}, fmt.Errorf("read vocabulary: %w", err)
	}
	defer f.Close()
	s, err := ReadSource(f)
	if err != nil {
		return Source{}, fmt.Errorf("read vocabulary of %s: %w", path, err)
	}
	return s, nil
}

// ReadSource reads the text side of a GGUF (version 2 or 3, little-endian) from
// its start. Only the metadata is read, so a file without tensors will do. Input
// may be hostile: lengths are bounded before memory is taken.
func ReadSource(r io.Reader) (Source, error) {
	g := &ggufReader{r: bufio.NewReaderSize(r, 1<<16)}
	var s Source
	keys, err := g.header()
	if err != nil {
		return s, err
	}
	numbers := map[string]uint64{}
	for range keys {
		key, err := g.str(maxKeyBytes)
		if err != nil {
			return s, fmt.Errorf("metadata key: %w", err)
		}
		if err := g.value(key, &s, numbers); err != nil {
			return s, fmt.Errorf("metadata %q: %w", key, err)
		}
	}
	s.ContextLength, s.Width = numbers[s.Architecture+".context_length"], numbers[s.Architecture+".embedding_length"]
	if n, ok := numbers[s.Architecture+".pooling_type"]; ok {
		s.Pooling = &n
	}
	s.defaultIDs()
	return s, nil
}

// defaultIDs fills in what llama.cpp assumes of SentencePiece vocabularies.
func (s *Source) defaultIDs() {
	if s.Model != modelSentencePiece || len(s.Tokens) < 3 {
		return
	}
	for id, at := range []**int32{&s.Unknown, &s.BOS, &s.EOS} {
		if *at == nil {
			*at = new(int32(id))
		}
	}
}

// Kinds of GGUF values.
const (
	ggufUint8 uint32 = iota
	ggufInt8
	ggufUint16
	ggufInt16
	ggufUint32
	ggufInt32
	ggufFloat32
	ggufBool
	ggufString
	ggufArray
	ggufUint64
	ggufInt64
	ggufFloat64
)

var ggufSizes = map[uint32]int{
	ggufUint8: 1, ggufInt8: 1, ggufUint16: 2, ggufInt16: 2, ggufUint32: 4, ggufInt32: 4,
	ggufFloat32: 4, ggufBool: 1, ggufUint64: 8, ggufInt64: 8, ggufFloat64: 8,
}

type ggufReader struct {
	r    *bufio.Reader
	buf  [8]byte
	kept uint64 // bytes of strings read so far
}

func (g *ggufReader) bytes(n int) ([]byte, error) {
	_, err := io.ReadFull(g.r, g.buf[:n])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return g.buf[:n], err
}

func (g *ggufReader) u32() (uint32, error) {
	b, err := g.bytes(4)
	return binary.LittleEndian.Uint32(b), err
}

func (g *ggufReader) u64() (uint64, error) {
	b, err := g.bytes(8)
	return binary.LittleEndian.Uint64(b), err
}

// header reads up to the first key and returns the number of keys.
func (g *ggufReader) header() (keys uint64, err error) {
	magic, err := g.bytes(4)
	if err != nil || string(magic) != "GGUF" {
		return 0, ErrNotGGUF
	}
	version, err := g.u32()
	if err != nil {
		return 0, err
	}
	if version != 2 && version != 3 {
		return 0, fmt.Errorf("GGUF version %d, supported are 2 and 3 (little-endian)", version)
	}
	if _, err := g.u64(); err != nil { // number of tensors
		return 0, err
	}
	keys, err = g.u64()
	if err == nil && keys > maxKeys {
		err = fmt.Errorf("%d metadata keys, at most %d", keys, maxKeys)
	}
	return keys, err
}

func (g *ggufReader) str(limit uint64) (string, error) {
	n, err := g.u64()
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", fmt.Errorf("a string of %d bytes, at most %d", n, limit)
	}
	if g.kept += n; g.kept > maxKeptBytes {
		return "", fmt.Errorf("more than %d bytes of strings", maxKeptBytes)
	}
	var b strings.Builder
	if _, err := io.CopyN(&b, g.r, int64(n)); err != nil { // grows with what is there
		return "", io.ErrUnexpectedEOF
	}
	return b.String(), nil
}

// skip passes over a value.
func (g *ggufReader) skip(kind uint32, depth int) error {
	if size, ok := ggufSizes[kind]; ok {
		return g.discard(uint64(size))
	}
	n, err := uint64(0), error(nil)
	switch kind {
	case ggufString:
		if n, err = g.u64(); err != nil {
			return err
		}
		return g.discard(n)
	case ggufArray:
		if depth == maxArrayDepth {
			return fmt.Errorf("arrays nested more than %d levels", maxArrayDepth)
		}
		return g.skipArray(depth)
	}
	return fmt.Errorf("unknown value kind %d", kind)
}

func (g *ggufReader) skipArray(depth int) error {
	kind, n, err := g.arrayHead()
	if err != nil {
		return err
	}
	if size, ok := ggufSizes[kind]; ok {
		if n > math.MaxInt64/8 {
			return io.ErrUnexpectedEOF
		}
		return g.discard(n * uint64(size))
	}
	for range n { // ends with the input at the latest
		if err := g.skip(kind, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (g *ggufReader) discard(n uint64) error {
	if n > math.MaxInt64 {
		return io.ErrUnexpectedEOF
	}
	if _, err := io.CopyN(io.Discard, g.r, int64(n)); err != nil {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func (g *ggufReader) arrayHead() (kind uint32, n uint64, err error) {
	if kind, err = g.u32(); err != nil {
		return 0, 0, err
	}
	n, err = g.u64()
	return kind, n, err
}
