package engine

import (
	"fmt"
	"io"
	"os"

	"hecate/internal/gguf"
)

// Weights are the bytes of a GGUF file, wherever they are kept. Only the header
// and the tensors of the layers that are loaded are read.
type Weights interface {
	io.ReaderAt
	io.Closer
	Size() int64 // of the whole file, in bytes
}

// weightsFile is a file on disk.
type weightsFile struct {
	*os.File
	size int64
}

func (w weightsFile) Size() int64 { return w.size }

// open gives the request's weights.
func (r LoadRequest) open() (Weights, error) {
	if r.Weights != nil {
		return r.Weights, nil
	}
	f, err := os.Open(r.Path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = &gguf.FormatError{File: r.Path, Field: "file", Why: "not a regular file"}
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return weightsFile{f, st.Size()}, nil
}
