package wire

import (
	"fmt"
	"io"
)

// Writer encodes frames for one direction of a connection and gathers them, so
// that many small frames leave in one call of the destination: one TLS record, one
// system call. It is not safe for concurrent use. The first error is final: every
// later call returns it again.
//
// A small payload is copied and sent when the buffer is full or Flush is called;
// the front of a frame may then leave before its rest, so a caller must end every
// burst with Flush. A payload of 8 KiB and more is sent at once, behind what was
// gathered: to copy it would cost more than the call. A destination for which calls
// are dear gathers by itself.
type Writer struct {
	dst  io.Writer
	buf  []byte // fixed size
	n    int    // 0 <= n <= len(buf); buf[:n] waits to be sent
	next uint32 // sequence of the next frame
	err  error

	// control is scratch: the checksum is called through a function variable, so an
	// array on the stack would escape.
	control [openSize + MaxOpenMeta]byte
}

// NewWriter returns a Writer on dst with a buffer of 64 KiB.
func NewWriter(dst io.Writer) *Writer {
	return &Writer{dst: dst, buf: make([]byte, writerBufferSize)}
}

// Reset makes w write to dst as if new, keeping its buffer.
func (w *Writer) Reset(dst io.Writer) { *w = Writer{dst: dst, buf: w.buf} }

// Buffered returns how many bytes wait for Flush.
func (w *Writer) Buffered() int { return w.n }

// Available returns how many bytes can still be appended without sending anything.
func (w *Writer) Available() int { return len(w.buf) - w.n }

// Append encodes one frame. The payload may be reused at once. A
// payload or conn_id that the type does not allow is refused with a *FrameError
// and leaves the stream as it was; this is the caller's bug and not final.
func (w *Writer) Append(t Type, flags Flags, id uint64, payload []byte) error {
	if w.err != nil {
		return w.err
	}
	h := Header{Length: uint32(min(len(payload), 1<<32-1)), Type: t, Flags: flags, ConnID: id, Sequence: w.next}
	if lo, hi := t.lengths(); h.Length < lo || h.Length > hi {
		return &FrameError{Kind: ErrLength, Header: h, Want: uint64(hi), Got: uint64(len(payload))}
	}
	if !t.legalID(id) {
		return &FrameError{Kind: ErrConnID, Header: h}
	}
	if len(w.buf)-w.n < HeaderSize {
		if err := w.Flush(); err != nil {
			return err
		}
	}
	b := (*[HeaderSize]byte)(w.buf[w.n:])
	putHeader(b, h)
	seal(b, payload)
	w.n += HeaderSize
	w.next++
	if len(payload) >= directPayload {
		return w.direct(payload)
	}
	return w.put(payload)
}

// direct sends the buffer and then the payload as it is: a copy of a large payload costs
// more than the short record in front of it.
func (w *Writer) direct(payload []byte) error {
	if err := w.Flush(); err != nil {
		return err
	}
	return w.send(payload)
}

// put copies p into the buffer and sends the buffer whenever it is full.
func (w *Writer) put(p []byte) error {
	for {
		k := copy(w.buf[w.n:], p)
		w.n += k
		p = p[k:]
		if len(p) == 0 {
			return nil
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
}

// Flush sends everything that was appended in one call of the destination.
func (w *Writer) Flush() error {
	if w.err != nil || w.n == 0 {
		return w.err
	}
	n := w.n
	w.n = 0
	return w.send(w.buf[:n])
}

func (w *Writer) send(p []byte) error {
	k, err := w.dst.Write(p)
	if err == nil && k < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		w.err = fmt.Errorf("wire: sending %d bytes: %w", len(p), err)
	}
	return w.err
}
