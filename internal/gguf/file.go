package gguf

import (
	"fmt"
	"io"
	"os"
	"slices"
)

// File is a checked header.
type File struct {
	Metadata
	Alignment  int64 // of tensor data, a power of two
	DataOffset int64 // where tensor data begin
	Tensors    []Tensor

	tensors map[string]int
}

// Tensor describes a tensor; its data lie in the file.
type Tensor struct {
	Name string
	Kind Kind
	// Dims has 1 to 4 entries of at least 1; the first varies fastest.
	Dims []int64
	// Offset of the data from DataOffset, a multiple of Alignment.
	Offset int64
}

// Elements is the number of elements.
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Dims {
		n *= d
	}
	return n
}

// Bytes is the size of the data.
func (t Tensor) Bytes() int64 { return t.Kind.Bytes(t.Elements()) }

// Dim is the size along one dimension; dimensions a tensor does not have are 1.
func (t Tensor) Dim(i int) int64 {
	if i < len(t.Dims) {
		return t.Dims[i]
	}
	return 1
}

// Open reads and checks the header of a GGUF file. The errors are those of the
// file system and *FormatError.
func Open(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	if !st.Mode().IsRegular() {
		return nil, &FormatError{File: path, Field: "file", Why: "not a regular file"}
	}
	return Read(r, st.Size(), path)
}

// Read reads and checks the header of a GGUF file of the given size. name
// stands for the file in errors.
func Read(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{Metadata: Metadata{Name: name, Size: size}, Alignment: defaultAlignment, tensors: map[string]int{}}
	p := f.header(r)
	tensors, err := p.metadata()
	if err != nil {
		return nil, err
	}
	if err := f.align(); err != nil {
		return nil, err
	}
	for i := range tensors {
		if err := p.tensor(f, i); err != nil {
			return nil, err
		}
	}
	f.DataOffset = align(p.at, f.Alignment)
	if err := f.checkData(); err != nil {
		return nil, err
	}
	return f, nil
}

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.tensors[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// align takes the file's own alignment over the default.
func (f *File) align() error {
	const key = "general.alignment"
	kv, ok := f.KV(key)
	if !ok {
		return nil
	}
	a, ok := f.Uint(key)
	if !ok || kv.Type != TypeUint32 {
		return f.Fault(key, kv.value, "must be a uint32")
	}
	if a < 8 || a > maxAlignment || a&(a-1) != 0 {
		return f.Fault(key, a, "must be a power of two from 8 to %d", maxAlignment)
	}
	f.Alignment = int64(a)
	return nil
}

// checkData checks where the tensors' data lie.
func (f *File) checkData() error {
	room := f.Size - f.DataOffset
	order := make([]int, len(f.Tensors))
	for i, t := range f.Tensors {
		order[i] = i
		if t.Offset%f.Alignment != 0 {
			return f.Fault("offset of tensor "+t.Name, t.Offset, "not a multiple of the alignment %d", f.Alignment)
		}
		if n := t.Bytes(); t.Offset > room || n > room-t.Offset {
			return f.Fault("tensor "+t.Name, fmt.Sprintf("%d bytes at %d", n, t.Offset), "the file has only %d bytes of tensor data: truncated?", max(0, room))
		}
	}
	slices.SortFunc(order, func(a, b int) int { return int(min(1, max(-1, f.Tensors[a].Offset-f.Tensors[b].Offset))) })
	for i := 1; i < len(order); i++ {
		a, b := f.Tensors[order[i-1]], f.Tensors[order[i]]
		if a.Offset+a.Bytes() > b.Offset {
			return f.Fault("tensor "+b.Name, fmt.Sprintf("at %d", b.Offset), "overlaps tensor %s", a.Name)
		}
	}
	return nil
}
