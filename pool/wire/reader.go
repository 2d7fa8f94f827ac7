package wire

import (
	"errors"
	"io"
)

// Reader decodes frames from one direction of a connection. It is not safe for
// concurrent use. The first error is final: every later call returns it again.
type Reader struct {
	src   io.Reader
	buf   []byte // len(buf) >= MaxFrame
	r, w  int    // 0 <= r <= w <= len(buf); buf[r:w] is read but not consumed
	ahead int    // how much to ask for when a header is due; HeaderSize < ahead <= len(buf)
	next  uint32 // sequence that the next frame must carry
	err   error

	head [HeaderSize]byte // a header that must outlive a refill of buf
}

// NewReader returns a Reader on src with a buffer of 64 KiB.
func NewReader(src io.Reader) *Reader {
	return &Reader{src: src, buf: make([]byte, readerBufferSize), ahead: readerBufferSize}
}

// Reset makes r read from src as if new, keeping its buffer.
func (r *Reader) Reset(src io.Reader) { *r = Reader{src: src, buf: r.buf, ahead: len(r.buf)} }

// Buffered returns how many bytes are read from the source but not yet consumed:
// when it is 0, the next call will wait for the network.
func (r *Reader) Buffered() int { return r.w - r.r }

// Next reads the next frame into f. The payload lies in the reader's own buffer
// and is valid until the next call.
//
// Next returns io.EOF when the source ended between two frames, a *FrameError when
// the stream is broken, and otherwise the source's own error.
func (r *Reader) Next(f *Frame) error {
	if err := r.header(f); err != nil {
		return err
	}
	return r.inPlace(f)
}

// inPlace completes f, whose header stands unconsumed at the front of the buffer,
// within the buffer.
func (r *Reader) inPlace(f *Frame) error {
	r.ahead = len(r.buf)
	total := HeaderSize + int(f.Length)
	if err := r.fill(total, len(r.buf), f.Header); err != nil {
		return err
	}
	header, payload := r.buf[r.r:r.r+HeaderSize], r.buf[r.r+HeaderSize:r.r+total]
	if err := r.verify(f.Header, header, payload); err != nil {
		return err
	}
	r.r += total
	f.Payload = payload
	return nil
}

// NextInto is Next for callers that keep the payload. Once the header is known to
// be within limits, get is asked for n = f.Length bytes of memory (f is already
// filled but for Payload and is not yet verified, so its fields may only serve to choose the
// memory). When get returns at least n bytes, the payload is read straight into
// the first n and belongs to the caller, also when NextInto fails. When it returns
// less, the payload lies in the reader's own buffer as after Next. Empty payloads
// do not ask.
func (r *Reader) NextInto(f *Frame, get func(n int) []byte) error {
	if err := r.header(f); err != nil {
		return err
	}
	n := int(f.Length)
	if n == 0 {
		return r.inPlace(f)
	}
	dst := get(n)
	if len(dst) < n {
		return r.inPlace(f)
	}
	return r.apart(f, dst[:n])
}

// apart completes f, whose header stands unconsumed at the front of the buffer,
// outside the buffer.
func (r *Reader) apart(f *Frame, dst []byte) error {
	// The header is copied out, because reading the payload may refill the buffer.
	copy(r.head[:], r.buf[r.r:])
	r.r += HeaderSize
	n := copy(dst, r.buf[r.r:r.w])
	r.r += n
	// Behind a large payload comes another one, as a rule: then what is read ahead
	// would only be copied once more.
	direct := len(dst) >= directPayload
	r.ahead = len(r.buf)
	if direct {
		r.ahead = directAhead
	}
	for n < len(dst) {
		k, err := r.read(dst[n:], direct)
		n += k
		if err != nil && n < len(dst) {
			return r.truncated(f.Header, err)
		}
	}
	if err := r.verify(f.Header, r.head[:], dst); err != nil {
		return err
	}
	f.Payload = dst
	return nil
}

// read puts at least one byte into dst: straight, or through the empty buffer, so
// that what follows comes with the same call.
func (r *Reader) read(dst []byte, direct bool) (int, error) {
	if direct {
		return r.readSome(dst)
	}
	n, err := r.readSome(r.buf)
	r.w = n
	r.r = copy(dst, r.buf[:n])
	return r.r, err
}

// header waits for the next header, decodes it into f and checks its length. It
// consumes nothing.
func (r *Reader) header(f *Frame) error {
	if r.err != nil {
		return r.err
	}
	f.Payload = nil
	if err := r.fill(HeaderSize, r.ahead, Header{}); err != nil {
		return err
	}
	f.Header = parseHeader(r.buf[r.r:])
	lo, hi := f.Type.lengths()
	if f.Length > hi {
		return r.fail(&FrameError{Kind: ErrLength, Header: f.Header, Want: uint64(hi), Got: uint64(f.Length)})
	}
	if f.Length < lo {
		return r.fail(&FrameError{Kind: ErrLength, Header: f.Header, Want: uint64(lo), Got: uint64(f.Length)})
	}
	return nil
}

// verify checks what the header claims against what arrived.
func (r *Reader) verify(h Header, header, payload []byte) error {
	if sum := checksum(header, payload); sum != h.Checksum {
		return r.fail(&FrameError{Kind: ErrChecksum, Header: h, Want: uint64(sum), Got: uint64(h.Checksum)})
	}
	if h.Sequence != r.next {
		return r.fail(&FrameError{Kind: ErrSequence, Header: h, Want: uint64(r.next), Got: uint64(h.Sequence)})
	}
	if !h.Type.legalID(h.ConnID) {
		return r.fail(&FrameError{Kind: ErrConnID, Header: h})
	}
	r.next++
	return nil
}

// fill makes at least n bytes stand unconsumed in the buffer, n <= MaxFrame, and at most
// n + ahead.
func (r *Reader) fill(n, ahead int, h Header) error {
	if r.w-r.r >= n {
		return nil
	}
	if r.r == r.w {
		r.r, r.w = 0, 0
	} else if len(r.buf)-r.r < n {
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	}
	for r.w-r.r < n {
		k, err := r.readSome(r.buf[r.w:min(len(r.buf), r.w+ahead)])
		r.w += k
		if err != nil && r.w-r.r < n {
			if r.w == r.r {
				return r.fail(err)
			}
			return r.truncated(h, err)
		}
	}
	return nil
}

// maxEmptyReads bounds how often a source may return nothing without an error.
const maxEmptyReads = 100

// readSome reads at least one byte or returns an error.
func (r *Reader) readSome(dst []byte) (int, error) {
	for range maxEmptyReads {
		if n, err := r.src.Read(dst); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, io.ErrNoProgress
}

// truncated records the end of the stream inside a frame.
func (r *Reader) truncated(h Header, cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = io.ErrUnexpectedEOF
	}
	return r.fail(&FrameError{Kind: ErrTruncated, Header: h, Cause: cause})
}

func (r *Reader) fail(err error) error {
	r.err = err
	return err
}
