package wire

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

var sizes = []int{0, 64, 1024, MaxPayload}

func BenchmarkWriter(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w, p := NewWriter(io.Discard), make([]byte, n)
			b.SetBytes(int64(n + HeaderSize))
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Append(TypeData, 0, 1, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// loop repeats one stream of frames for ever; sequences are put right by the reader's owner.
type loop struct {
	stream []byte
	at     int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.stream[l.at:])
	l.at = (l.at + n) % len(l.stream)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	for _, n := range sizes {
		const frames = 16
		var fs []Frame
		for range frames {
			fs = append(fs, Frame{Header{Type: TypeData, ConnID: 1}, make([]byte, n)})
		}
		stream := encode(b, fs)
		buf := make([]byte, MaxPayload)
		get := func(n int) []byte { return buf[:n] }
		for _, way := range []struct {
			name string
			next func(*Reader, *Frame) error
		}{
			{"Next", (*Reader).Next},
			{"NextInto", func(r *Reader, f *Frame) error { return r.NextInto(f, get) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				r := NewReader(&loop{stream: stream})
				var f Frame
				b.SetBytes(int64(n + HeaderSize))
				b.ReportAllocs()
				for b.Loop() {
					if err := way.next(r, &f); err != nil {
						b.Fatal(err)
					}
					r.next %= frames
				}
			})
		}
	}
}

// The steady state allocates nothing: also a test, so that it fails where nobody
// reads benchmarks.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	var pipe bytes.Buffer
	w, r := NewWriter(&pipe), NewReader(&pipe)
	buf := make([]byte, MaxPayload)
	get := func(n int) []byte { return buf[:n] }
	none := func(int) []byte { return nil }
	payload := make([]byte, MaxPayload)
	round := func() {
		w.Append(TypeData, FlagMore, 1, payload)
		w.Append(TypeData, 0, 1, payload[:64])
		w.Append(TypeData, 0, 1, payload)
		w.AppendAck(1, Ack{Bytes: 1})
		w.AppendPing(TypePing, 1)
		w.AppendReason(TypeCancel, 1, Reason{Code: CodeCancelled, Text: "gone"})
		w.Flush()
		var f Frame
		for i := range 6 {
			var err error
			switch i % 3 {
			case 0:
				err = r.NextInto(&f, get)
			case 1:
				err = r.Next(&f)
			default:
				err = r.NextInto(&f, none)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(100, round); n != 0 {
		t.Errorf("%v allocations per round of 6 frames", n)
	}
}
