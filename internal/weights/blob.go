package weights

import (
	"io"
	"os"
)

// A Blob is the content of one piece, open for reading.
type Blob struct {
	*io.SectionReader
	file *os.File
}

// Close gives the file back.
func (b *Blob) Close() error { return b.file.Close() }

// blobOf is a piece that is a file of its own.
func blobOf(f *os.File) (*Blob, error) {
	st, err := f.Stat()
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return &Blob{io.NewSectionReader(f, 0, st.Size()), f}, nil
}

// gathered reads spans of a file as if they followed each other.
type gathered struct {
	file  io.ReaderAt
	spans []Span
}

func (g gathered) size() (n int64) {
	for _, s := range g.spans {
		n += s.Bytes
	}
	return n
}

// ReadAt implements io.ReaderAt.
func (g gathered) ReadAt(p []byte, at int64) (n int, err error) {
	for _, s := range g.spans {
		if at >= s.Bytes {
			at -= s.Bytes
			continue
		}
		k := min(int64(len(p)-n), s.Bytes-at)
		got, err := g.file.ReadAt(p[n:n+int(k)], s.Offset+at)
		n += got
		if err != nil && int64(got) < k || n == len(p) {
			return n, err
		}
		at = 0
	}
	return n, io.EOF
}
