package weights

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A View looks like a whole model file of which only some pieces are there. It
// implements engine.Weights.
type View struct {
	size    int64
	spans   []viewSpan // in the file's order; the first is the header
	closers []io.Closer
}

// viewSpan is a run of the file's bytes and where they really are.
type viewSpan struct {
	offset, bytes int64
	file          io.ReaderAt
	at            int64 // in file
}

func (v *View) sort() {
	slices.SortFunc(v.spans, func(a, b viewSpan) int { return cmp.Compare(a.offset, b.offset) })
}

// Size is that of the whole file.
func (v *View) Size() int64 { return v.size }

// Close gives the files back.
func (v *View) Close() error {
	var errs error
	for _, c := range v.closers {
		errs = errors.Join(errs, c.Close())
	}
	return errs
}

// ReadAt implements io.ReaderAt. Bytes of pieces that are not there are an error,
// except behind the header: who reads that reads ahead, and finds zeros.
func (v *View) ReadAt(p []byte, at int64) (n int, err error) {
	for n < len(p) {
		if at >= v.size {
			return n, io.EOF
		}
		s := v.find(at)
		if s == nil {
			if n == 0 || at-int64(n) >= v.spans[0].bytes {
				return n, fmt.Errorf("byte %d of the model is in no piece that is here", at)
			}
			k := int(min(int64(len(p)-n), v.size-at))
			clear(p[n : n+k])
			return n + k, eofIf(n+k < len(p))
		}
		k := int(min(int64(len(p)-n), s.offset+s.bytes-at))
		got, err := s.file.ReadAt(p[n:n+k], s.at+at-s.offset)
		n, at = n+got, at+int64(got)
		if err != nil && got < k {
			return n, err
		}
	}
	return n, nil
}

func eofIf(short bool) error {
	if short {
		return io.EOF
	}
	return nil
}

// find gives the span that has a byte.
func (v *View) find(at int64) *viewSpan {
	i, exact := slices.BinarySearchFunc(v.spans, at, func(s viewSpan, at int64) int { return cmp.Compare(s.offset, at) })
	if !exact {
		i--
	}
	if i < 0 || at >= v.spans[i].offset+v.spans[i].bytes {
		return nil
	}
	return &v.spans[i]
}
