package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/iotest"
)

// frames are one of each type, with payloads from nothing to the largest.
func frames() []Frame {
	big := bytes.Repeat([]byte("0123456789abcdef"), MaxPayload/16)
	f := func(t Type, fl Flags, id uint64, p []byte) Frame {
		return Frame{Header{Length: uint32(len(p)), Type: t, Flags: fl, ConnID: id}, p}
	}
	return []Frame{
		f(TypeOpen, 0, 1, append(make([]byte, openSize), "model=demo"...)),
		f(TypeData, 0, 1, []byte("hello")), f(TypeData, FlagMore, 1<<63, big), f(TypeData, 0, 1<<63, big[:20000]),
		f(TypeData, 0, 2, nil), f(TypePing, 0, 0, []byte("12345678")), f(TypePong, 0, 0, []byte("12345678")),
		f(TypeAck, 0, 2, []byte("12345678")), f(TypeCancel, 0, 2, []byte("\x00\x01")),
		f(TypeClose, 0, 2, []byte("\x00\x02too slow")), f(TypeGoAway, 0, 0, []byte("\x00\x06")),
		f(Type(200), 0xff, 9, big[:100]), f(TypeData, 0, 3, big),
	}
}

// encode puts frames on a byte stream.
func encode(t testing.TB, fs []Frame) []byte {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, f := range fs {
		if err := w.Append(f.Type, f.Flags, f.ConnID, f.Payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ways are the manners of reading a frame; all must agree.
var ways = map[string]func(*Reader, *Frame) error{
	"Next": (*Reader).Next,
	"NextInto": func(r *Reader, f *Frame) error {
		return r.NextInto(f, func(n int) []byte { return make([]byte, n+7) })
	},
	"NextInto without memory": func(r *Reader, f *Frame) error {
		return r.NextInto(f, func(int) []byte { return nil })
	},
}

func TestRoundTrip(t *testing.T) {
	var many []Frame
	for range 20 {
		many = append(many, frames()...)
	}
	stream := encode(t, many)
	sources := map[string]func(io.Reader) io.Reader{
		"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader,
		"halves": iotest.HalfReader, "error with data": iotest.DataErrReader,
	}
	for way, next := range ways {
		for source, wrap := range sources {
			t.Run(way+" "+source, func(t *testing.T) {
				r := NewReader(wrap(bytes.NewReader(stream)))
				for i, want := range many {
					var f Frame
					if err := next(r, &f); err != nil {
						t.Fatalf("frame %d: %v", i, err)
					}
					want.Sequence, want.Checksum = uint32(i), f.Checksum
					if f.Header != want.Header || !bytes.Equal(f.Payload, want.Payload) {
						t.Fatalf("frame %d: got %v, want %v", i, f.Header, want.Header)
					}
				}
				var f Frame
				for range 2 {
					if err := next(r, &f); err != io.EOF {
						t.Fatalf("after the last frame: %v", err)
					}
				}
			})
		}
	}
}

// Every single flipped bit must be noticed: as a bad length, a bad checksum, or, in
// the length's low bits, as a stream that ends inside a frame. The two reserved
// bytes are under the checksum as well.
func TestEveryFlippedBitIsNoticed(t *testing.T) {
	stream := encode(t, []Frame{{Header{Type: TypeData, ConnID: 5}, []byte("payload of a small frame")}})
	for bit := range len(stream) * 8 {
		bad := bytes.Clone(stream)
		bad[bit/8] ^= 1 << (bit % 8)
		for way, next := range ways {
			var f Frame
			err := next(NewReader(bytes.NewReader(bad)), &f)
			var fe *FrameError
			if !errors.As(err, &fe) {
				t.Errorf("%s, bit %d: %v", way, bit, err)
			}
		}
	}
}

// raw encodes one frame without any checks, with a correct checksum.
func raw(h Header, payload []byte) []byte {
	var b [HeaderSize]byte
	putHeader(&b, h)
	seal(&b, payload)
	return append(b[:], payload...)
}

func TestBrokenStreams(t *testing.T) {
	data := func(seq uint32) []byte {
		return raw(Header{Length: 3, Type: TypeData, ConnID: 1, Sequence: seq}, []byte("abc"))
	}
	for _, c := range []struct {
		name   string
		stream []byte
		good   int // frames before the error
		want   error
	}{
		{"gap", append(data(0), data(2)...), 1, ErrSequence},
		{"repeat", append(data(0), data(0)...), 1, ErrSequence},
		{"first not zero", data(1), 0, ErrSequence},
		{"giant", raw(Header{Length: 1<<32 - 1, Type: TypeData, ConnID: 1}, nil), 0, ErrLength},
		{"one too long", raw(Header{Length: MaxPayload + 1, Type: TypeData, ConnID: 1}, make([]byte, MaxPayload+1)), 0, ErrLength},
		{"giant of unknown type", raw(Header{Length: MaxPayload + 1, Type: 99, ConnID: 1}, nil), 0, ErrLength},
		{"long ping", raw(Header{Length: 9, Type: TypePing}, make([]byte, 9)), 0, ErrLength},
		{"short ack", raw(Header{Length: 7, Type: TypeAck, ConnID: 1}, make([]byte, 7)), 0, ErrLength},
		{"close without code", raw(Header{Length: 1, Type: TypeClose, ConnID: 1}, make([]byte, 1)), 0, ErrLength},
		{"long open", raw(Header{Length: openSize + MaxOpenMeta + 1, Type: TypeOpen, ConnID: 1}, nil), 0, ErrLength},
		{"data without session", raw(Header{Type: TypeData}, nil), 0, ErrConnID},
		{"ping on a session", raw(Header{Length: 8, Type: TypePing, ConnID: 1}, make([]byte, 8)), 0, ErrConnID},
		{"ends in header", append(data(0), data(1)[:HeaderSize-1]...), 1, ErrTruncated},
		{"ends in payload", append(data(0), data(1)[:HeaderSize+1]...), 1, ErrTruncated},
		{"ends behind header", data(0)[:HeaderSize], 0, io.ErrUnexpectedEOF},
		{"nothing", nil, 0, io.EOF},
	} {
		for way, next := range ways {
			t.Run(c.name+" "+way, func(t *testing.T) {
				r := NewReader(bytes.NewReader(c.stream))
				var f Frame
				for i := range c.good {
					if err := next(r, &f); err != nil {
						t.Fatalf("frame %d: %v", i, err)
					}
				}
				first := next(r, &f)
				if !errors.Is(first, c.want) {
					t.Fatalf("got %v, want %v", first, c.want)
				}
				if again := next(r, &f); again != first {
					t.Errorf("the second time: %v", again)
				}
			})
		}
	}
}

func TestSequenceWraps(t *testing.T) {
	var b bytes.Buffer
	w, r := NewWriter(&b), NewReader(&b)
	w.next, r.next = 1<<32-2, 1<<32-2
	for i := range 4 {
		if err := w.AppendAck(1, Ack{}); err != nil {
			t.Fatal(err)
		}
		w.Flush()
		var f Frame
		if err := r.Next(&f); err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
	}
	if w.next != 2 {
		t.Errorf("sequence is %d", w.next)
	}
}

func TestSourceErrorIsKept(t *testing.T) {
	boom := errors.New("connection reset")
	stream := encode(t, frames()[:2])
	r := NewReader(io.MultiReader(bytes.NewReader(stream), iotest.ErrReader(boom)))
	var f Frame
	for range 2 {
		if err := r.Next(&f); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Next(&f); err != boom {
		t.Errorf("between frames: %v", err)
	}
	r.Reset(io.MultiReader(bytes.NewReader(stream[:30]), iotest.ErrReader(boom)))
	if err := r.Next(&f); !errors.Is(err, boom) || !errors.Is(err, ErrTruncated) {
		t.Errorf("inside a frame: %v", err)
	}
	r.Reset(stuck{})
	if err := r.Next(&f); err != io.ErrNoProgress {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

func TestWriterRefusesAndGoesOn(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, c := range []struct {
		t    Type
		id   uint64
		n    int
		want error
	}{
		{TypeData, 1, MaxPayload + 1, ErrLength}, {TypeAck, 1, 7, ErrLength}, {TypePing, 0, 0, ErrLength},
		{TypeData, 0, 1, ErrConnID}, {TypeGoAway, 1, 2, ErrConnID}, {TypeWant, 1, pingSize, ErrConnID},
	} {
		if err := w.Append(c.t, 0, c.id, make([]byte, c.n)); !errors.Is(err, c.want) {
			t.Errorf("%v of %d bytes on %d: %v", c.t, c.n, c.id, err)
		}
	}
	if err := w.AppendOpen(1, Open{Meta: make([]byte, MaxOpenMeta+1)}); !errors.Is(err, ErrLength) {
		t.Errorf("OPEN: %v", err)
	}
	if err := w.AppendAck(1, Ack{Bytes: 7}); err != nil {
		t.Fatal(err)
	}
	w.Flush()
	var f Frame
	if err := NewReader(&b).Next(&f); err != nil || f.Type != TypeAck {
		t.Errorf("after refusals: %v, %v", f.Header, err)
	}
}

// limited accepts so many bytes and then fails.
type limited struct{ left, calls int }

func (l *limited) Write(b []byte) (int, error) {
	l.calls++
	if len(b) > l.left {
		return l.left, errors.New("broken pipe")
	}
	l.left -= len(b)
	return len(b), nil
}

func TestWriterErrorIsFinal(t *testing.T) {
	w := NewWriter(&limited{left: 10})
	if err := w.AppendAck(1, Ack{}); err != nil {
		t.Fatal(err)
	}
	first := w.Flush()
	if first == nil {
		t.Fatal("no error")
	}
	if err := w.Flush(); err != first {
		t.Errorf("flush: %v", err)
	}
	if err := w.AppendAck(1, Ack{}); err != first {
		t.Errorf("append: %v", err)
	}
}

func TestWriterGathers(t *testing.T) {
	sink := &limited{left: 1 << 30}
	w := NewWriter(sink)
	for range 500 {
		w.Append(TypeData, 0, 1, make([]byte, 64))
	}
	if w.Buffered() != 500*(HeaderSize+64) || sink.calls != 0 {
		t.Fatalf("%d bytes wait, %d calls", w.Buffered(), sink.calls)
	}
	w.Flush()
	if sink.calls != 1 || w.Buffered() != 0 {
		t.Errorf("%d calls, %d bytes wait", sink.calls, w.Buffered())
	}
	sink.calls = 0
	for range 3000 { // more than the buffer holds
		w.Append(TypeData, 0, 1, make([]byte, 64))
	}
	if want := 3000 * (HeaderSize + 64) / writerBufferSize; sink.calls > want+1 {
		t.Errorf("%d calls, want %d", sink.calls, want)
	}
}

// A large payload follows what was gathered, in a call of its own.
func TestWriterDoesNotGatherLargePayloads(t *testing.T) {
	var calls recorder
	w := NewWriter(&calls)
	big := make([]byte, directPayload)
	w.AppendAck(1, Ack{})
	w.Append(TypeData, 0, 1, big)
	w.Append(TypeData, 0, 1, big[:directPayload-1])
	w.Flush()
	want := []int{2*HeaderSize + ackSize, directPayload, HeaderSize + directPayload - 1}
	if !slices.Equal(calls, want) {
		t.Errorf("calls of %d bytes, want %d", calls, want)
	}
	if w.Buffered() != 0 {
		t.Errorf("%d bytes wait", w.Buffered())
	}
}

// recorder notes the size of each call.
type recorder []int

func (r *recorder) Write(b []byte) (int, error) {
	*r = append(*r, len(b))
	return len(b), nil
}

func TestControlPayloads(t *testing.T) {
	var b bytes.Buffer
	w, r := NewWriter(&b), NewReader(&b)
	open := Open{WindowBytes: 1 << 31, WindowMessages: 768, Meta: []byte("meta")}
	long := Reason{CodeOverloaded, string(bytes.Repeat([]byte("ä"), MaxReason))}
	w.AppendOpen(1, open)
	w.AppendAck(1, Ack{Bytes: 1 << 30, Messages: 3})
	w.AppendReason(TypeClose, 1, long)
	w.AppendReason(TypeGoAway, 0, Reason{Code: CodeDraining, Text: "a\x1b[31m\nb"})
	w.AppendPing(TypePing, 1<<63+1)
	w.Flush()
	var f Frame
	next := func() []byte {
		t.Helper()
		if err := r.Next(&f); err != nil {
			t.Fatal(err)
		}
		return f.Payload
	}
	if got, err := ParseOpen(next()); err != nil || fmt.Sprint(got) != fmt.Sprint(open) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseAck(next()); err != nil || got != (Ack{1 << 30, 3}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := ParseReason(next()); err != nil || got.Code != CodeOverloaded || got.Text != long.Text[:MaxReason] {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParseReason(next()); err != nil || got.String() != "draining: a?[31m?b" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := ParsePing(next()); err != nil || got != 1<<63+1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMalformedPayloads(t *testing.T) {
	for n := range openSize {
		if _, err := ParseOpen(make([]byte, n)); !errors.Is(err, ErrPayload) {
			t.Errorf("OPEN of %d: %v", n, err)
		}
		if _, err := ParseAck(make([]byte, n)); !errors.Is(err, ErrPayload) {
			t.Errorf("ACK of %d: %v", n, err)
		}
		if _, err := ParsePing(make([]byte, n)); !errors.Is(err, ErrPayload) {
			t.Errorf("PING of %d: %v", n, err)
		}
	}
	for n := range reasonSize {
		if _, err := ParseReason(make([]byte, n)); !errors.Is(err, ErrPayload) {
			t.Errorf("reason of %d: %v", n, err)
		}
	}
}

func TestChunksInterleaved(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	const sessions = 5
	var b bytes.Buffer
	w := NewWriter(&b)
	var want, rest [sessions][]byte
	var left [sessions]bool
	for i := range want {
		want[i] = make([]byte, rng.IntN(10*MaxPayload))
		for j := range want[i] {
			want[i][j] = byte(rng.Uint32())
		}
		rest[i], left[i] = want[i], true
	}
	for open := sessions; open > 0; {
		i := rng.IntN(sessions)
		if !left[i] {
			continue
		}
		var chunk []byte
		var flags Flags
		chunk, rest[i], flags = NextChunk(rest[i])
		if err := w.Append(TypeData, flags, uint64(i+1), chunk); err != nil {
			t.Fatal(err)
		}
		if flags&FlagMore == 0 {
			left[i] = false
			open--
		}
	}
	w.Flush()
	var got [sessions][]byte
	r := NewReader(&b)
	for {
		var f Frame
		if err := r.Next(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[f.ConnID-1] = append(got[f.ConnID-1], f.Payload...)
		if more := f.Flags&FlagMore != 0; more == (len(got[f.ConnID-1]) == len(want[f.ConnID-1])) {
			t.Fatalf("session %d: more is %v after %d of %d bytes", f.ConnID, more, len(got[f.ConnID-1]), len(want[f.ConnID-1]))
		}
	}
	for i := range want {
		if !bytes.Equal(got[i], want[i]) {
			t.Errorf("session %d: %d bytes, want %d", i, len(got[i]), len(want[i]))
		}
	}
}

func TestChunks(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, MaxPayload: 1, MaxPayload + 1: 2, 3 * MaxPayload: 3} {
		got := 0
		for rest, flags := make([]byte, n), FlagMore; flags&FlagMore != 0; got++ {
			_, rest, flags = NextChunk(rest)
		}
		if got != want || Chunks(n) != want {
			t.Errorf("%d bytes: %d chunks, Chunks says %d, want %d", n, got, Chunks(n), want)
		}
	}
}

func TestNamesForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{TypeGoAway.String(), "GOAWAY"}, {TypeWant.String(), "WANT"}, {Type(0).String(), "type(0)"}, {Type(77).String(), "type(77)"},
		{CodeTimeout.String(), "timeout"}, {Code(100).String(), "code(100)"}, {Code(1030).String(), "application(6)"},
		{Reason{Code: CodeOK}.String(), "ok"}, {RoleNode.String(), "node"}, {Role(9).String(), "role(9)"},
		{RefuseBusy.String(), "busy"}, {RefusalReason(0).String(), "reason(0)"},
		{Header{Length: 5, Type: TypeData, Flags: FlagMore, ConnID: 3, Sequence: 1}.String(), "DATA conn=3 seq=1 len=5 more"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
