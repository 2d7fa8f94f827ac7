package engines

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
)

// A buffer is memory that several readers share; the last one gives it back.
type buffer struct {
	data  []byte
	users atomic.Int32
}

// keepUpTo is the largest memory that is kept for the next request: one large body
// must not be paid for by all that follow.
const keepUpTo = 256 << 10

var buffers = sync.Pool{New: func() any { return &buffer{} }}

func newBuffer() *buffer {
	b := buffers.Get().(*buffer)
	b.data = b.data[:0]
	b.users.Store(1)
	return b
}

func (b *buffer) grow(n int) {
	if n > cap(b.data) {
		b.data = append(make([]byte, 0, max(n, 2*cap(b.data))), b.data...)
	}
}

func (b *buffer) release() {
	switch n := b.users.Add(-1); {
	case n < 0:
		panic("BUG: a buffer released twice")
	case n == 0 && cap(b.data) <= keepUpTo:
		buffers.Put(b)
	}
}

// reader reads the buffer for one request to an engine. The transport closes it
// when it will not read any more, which may be after the answer has come.
func (b *buffer) reader() io.ReadCloser {
	b.users.Add(1)
	return &bufferReader{of: b}
}

// bufferReader only copies, under a lock: the transport may close it in the middle
// of a read, and then the memory is somebody else's.
type bufferReader struct {
	of *buffer

	mu     sync.Mutex
	at     int
	closed bool
}

func (r *bufferReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed
	}
	n := copy(p, r.of.data[r.at:])
	r.at += n
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

var errClosed = errors.New("the request was given up")

func (r *bufferReader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		r.of.release()
	}
	return nil
}
