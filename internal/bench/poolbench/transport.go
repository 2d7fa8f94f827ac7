package poolbench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// transport is one contestant: a client and a server over loopback.
type transport interface {
	// open makes a channel whose far end behaves as sp says.
	open(ctx context.Context, sp spec) (channel, error)
	close() error
}

// channel carries messages of one size both ways. One goroutine may send while
// another one receives.
type channel interface {
	// send takes p; it may be reused afterwards.
	send(p []byte) error
	// recv returns the next message, valid until the next call.
	recv() ([]byte, error)
	// close ends the channel at once.
	close()
}

// mode is what the far end does.
type mode byte

const (
	modeEcho  mode = 1 // sends every message back
	modeSink  mode = 2 // counts messages, and answers the one marked last
	modeStall mode = 3 // never reads
)

// spec opens a channel.
type spec struct {
	mode mode
	size int // of every message, at least minMessage
}

const (
	specSize   = 5
	minMessage = 16
	lastMark   = 0xff // first byte of the message that a sink answers
)

func (s spec) encode() []byte {
	return binary.BigEndian.AppendUint32([]byte{byte(s.mode)}, uint32(s.size))
}

func decodeSpec(b []byte) (spec, error) {
	if len(b) != specSize {
		return spec{}, fmt.Errorf("spec of %d bytes, want %d", len(b), specSize)
	}
	return spec{mode(b[0]), int(binary.BigEndian.Uint32(b[1:]))}, nil
}

// serve is the far end of a channel, the same for all contestants. It returns when
// the channel ends.
func serve(ctx context.Context, ch channel, sp spec) error {
	switch sp.mode {
	case modeEcho:
		return serveEcho(ch)
	case modeSink:
		return serveSink(ch, sp.size)
	case modeStall:
		<-ctx.Done()
		return nil
	default:
		return fmt.Errorf("unknown mode %d", sp.mode)
	}
}

func serveEcho(ch channel) error {
	for {
		p, err := ch.recv()
		if err != nil {
			return ended(err)
		}
		if err := ch.send(p); err != nil {
			return ended(err)
		}
	}
}

func serveSink(ch channel, size int) error {
	var messages uint64
	answer := make([]byte, size)
	for {
		p, err := ch.recv()
		if err != nil {
			return ended(err)
		}
		messages++
		if p[0] == lastMark {
			binary.BigEndian.PutUint64(answer[1:], messages)
			if err := ch.send(answer); err != nil {
				return ended(err)
			}
		}
	}
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// finish sends the last message to a sink and returns how many it has counted.
func finish(ch channel, p []byte) (uint64, error) {
	p[0] = lastMark
	defer func() { p[0] = 0 }()
	if err := ch.send(p); err != nil {
		return 0, fmt.Errorf("last message: %w", err)
	}
	answer, err := ch.recv()
	if err != nil {
		return 0, fmt.Errorf("the sink's count: %w", err)
	}
	return binary.BigEndian.Uint64(answer[1:]), nil
}

// stream makes a channel of any byte stream: messages need no framing, because
// their size is agreed.
type stream struct {
	io.ReadWriteCloser
	buf []byte
}

func newStream(rw io.ReadWriteCloser, size int) *stream { return &stream{rw, make([]byte, size)} }

func (s *stream) send(p []byte) error {
	_, err := s.Write(p)
	return err
}

func (s *stream) recv() ([]byte, error) {
	_, err := io.ReadFull(s, s.buf)
	return s.buf, err
}

func (s *stream) close() { _ = s.Close() }

// openStream announces the spec on a fresh byte stream.
func openStream(rw io.ReadWriteCloser, sp spec) (channel, error) {
	if _, err := rw.Write(sp.encode()); err != nil {
		_ = rw.Close()
		return nil, fmt.Errorf("opening a channel: %w", err)
	}
	return newStream(rw, sp.size), nil
}

// serveStream reads the spec and serves.
func serveStream(ctx context.Context, rw io.ReadWriteCloser) {
	defer rw.Close()
	var b [specSize]byte
	if _, err := io.ReadFull(rw, b[:]); err != nil {
		return
	}
	if sp, err := decodeSpec(b[:]); err == nil {
		_ = serve(ctx, newStream(rw, sp.size), sp)
	}
}
