package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// FuzzReader feeds the decoder any bytes. Whatever comes: it ends, it says why in
// its own words, all ways of reading agree, no payload exceeds its limit, and what it
// accepts is exactly what the encoder would have produced.
func FuzzReader(f *testing.F) {
	f.Add(encode(f, frames()[:2]))
	f.Add(encode(f, frames()[4:11]))
	f.Add(append(encode(f, frames()[1:2]), raw(Header{Length: 1, Type: TypeData, ConnID: 1, Sequence: 5}, []byte("x"))...))
	f.Add(raw(Header{Length: 1<<32 - 1, Type: TypeData, ConnID: 1}, nil))
	f.Add(encode(f, frames()[1:2])[:HeaderSize+2])
	f.Add([]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		first, firstErr := decode(t, (*Reader).Next, in)
		for way, next := range ways {
			got, err := decode(t, next, in)
			if len(got) != len(first) || err.Error() != firstErr.Error() {
				t.Fatalf("%s: %d frames and %v, Next: %d and %v", way, len(got), err, len(first), firstErr)
			}
		}
		var fe *FrameError
		if firstErr != io.EOF && !errors.As(firstErr, &fe) {
			t.Fatalf("untyped error: %v", firstErr)
		}
		// Re-encoding gives back the consumed bytes, but for reserved ones.
		again := encode(t, first)
		for i := 0; i+HeaderSize <= len(again); {
			h := parseHeader(again[i:])
			if want := parseHeader(in[i:]); in[i+6]|in[i+7] == 0 && h != want {
				t.Fatalf("at byte %d: %v, came as %v", i, h, want)
			}
			i += HeaderSize + int(h.Length)
		}
	})
}

// decode reads frames until the first error.
func decode(t *testing.T, next func(*Reader, *Frame) error, in []byte) ([]Frame, error) {
	r := NewReader(bytes.NewReader(in))
	var out []Frame
	for {
		var f Frame
		if err := next(r, &f); err != nil {
			return out, err
		}
		if int(f.Length) != len(f.Payload) || len(f.Payload) > MaxPayload {
			t.Fatalf("%v with %d bytes", f.Header, len(f.Payload))
		}
		f.Payload = bytes.Clone(f.Payload)
		out = append(out, f)
	}
}

// FuzzDamage breaks a good stream of interleaved chunks at one place. No
// damage may go unnoticed: either the stream fails with a typed error, or, when it was only
// cut between two frames, what was read is a prefix of what was sent.
func FuzzDamage(f *testing.F) {
	f.Add(uint8(3), uint32(40), uint8(1), false)
	f.Add(uint8(7), uint32(4), uint8(0x80), false)
	f.Add(uint8(7), uint32(66000), uint8(0), true)
	f.Add(uint8(1), uint32(100), uint8(0), true)
	f.Fuzz(func(t *testing.T, n uint8, at uint32, flip uint8, truncate bool) {
		sent := interleaved(int(n%8) + 1)
		stream := encode(t, sent)
		pos := int(at) % len(stream)
		switch {
		case truncate:
			stream = stream[:pos]
		case flip == 0:
			return
		default:
			stream[pos] ^= flip
		}
		got, err := decode(t, (*Reader).Next, stream)
		var fe *FrameError
		if !errors.As(err, &fe) && !(truncate && err == io.EOF) {
			t.Fatalf("damage at %d went unnoticed: %v", pos, err)
		}
		if len(got) >= len(sent) {
			t.Fatalf("all %d frames came through damage at %d", len(sent), pos)
		}
		for i, g := range got {
			if g.ConnID != sent[i].ConnID || !bytes.Equal(g.Payload, sent[i].Payload) {
				t.Fatalf("frame %d is %v, sent was %v", i, g.Header, sent[i].Header)
			}
		}
	})
}

// interleaved gives the chunks of n sessions' messages in turns.
func interleaved(n int) []Frame {
	message := bytes.Repeat([]byte{0xa5}, 2*MaxPayload+100)
	rest := make([][]byte, n)
	for i := range rest {
		rest[i] = message[:len(message)-i]
	}
	var out []Frame
	for range Chunks(len(message)) {
		for i := range rest {
			chunk, after, flags := NextChunk(rest[i])
			rest[i] = after
			out = append(out, Frame{Header{Type: TypeData, Flags: flags, ConnID: uint64(i + 1)}, chunk})
		}
	}
	return out
}

// FuzzControl feeds payload decoders any bytes. The second argument is that of the
// corpus, of which nothing is asked any more.
func FuzzControl(f *testing.F) {
	f.Add([]byte("12345678meta"), uint8(0))
	f.Add([]byte("\x00\x02slow\nline"), uint8(1))
	f.Add([]byte{}, uint8(1))
	f.Fuzz(func(t *testing.T, in []byte, _ uint8) {
		if r, err := ParseReason(in); err == nil && len(r.Text) > 3*MaxReason {
			t.Errorf("reason of %d bytes", len(r.Text))
		}
		_, _ = ParseAck(in)
		_, _ = ParseOpen(in)
		_, _ = ParsePing(in)
	})
}
