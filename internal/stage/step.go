package stage

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// What a step wants back.
type Want byte

const (
	WantNothing Want = 0 // a replay: fill the cache, send Done
	WantHidden  Want = 1 // the hidden state of every row
	WantToken   Want = 2 // a token drawn from the last row's logits
)

// Limits of one step; they bound what a hostile peer can make us allocate.
const (
	MaxRows  = 4096    // rows of one step
	MaxWidth = 1 << 16 // floats of one row
	maxTop   = 64      // alternatives of one token
	stepHead = 12      // bytes before the rows
	backHead = 20      // bytes before the rows of an answer
)

// Step computes rows at positions Position, Position+1, ... Exactly one of
// Tokens (first stage) and Hidden (rows x width, row-major) is set.
type Step struct {
	Position int
	Want     Want
	Tokens   []int32
	Hidden   []float32
	Width    int // floats per row of Hidden
}

// Rows is how many positions the step covers.
func (s Step) Rows() int {
	if s.Tokens != nil {
		return len(s.Tokens)
	}
	if s.Width == 0 {
		return 0
	}
	return len(s.Hidden) / s.Width
}

// Append adds the step's bytes to b:
//
//	kind u8, want u8, width u16 (0: tokens), position u32, rows u32, then rows x (i32 | width x f32)
func (s Step) Append(b []byte) []byte {
	width := s.Width
	if s.Tokens != nil {
		width = 0
	}
	b = append(b, byte(KindStep), byte(s.Want))
	b = binary.LittleEndian.AppendUint16(b, uint16(width))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Position))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Rows()))
	if width == 0 {
		return appendInts(b, s.Tokens)
	}
	return appendFloats(b, s.Hidden)
}

// DecodeStep reads a step. Its slices are fresh; b may be reused.
func DecodeStep(b []byte) (Step, error) {
	if KindOf(b) != KindStep || len(b) < stepHead {
		return Step{}, fmt.Errorf("want a step, got %s of %d bytes", KindOf(b), len(b))
	}
	s := Step{
		Want:     Want(b[1]),
		Width:    int(binary.LittleEndian.Uint16(b[2:])),
		Position: int(binary.LittleEndian.Uint32(b[4:])),
	}
	rows, body := int(binary.LittleEndian.Uint32(b[8:])), b[stepHead:]
	if s.Want > WantToken {
		return Step{}, fmt.Errorf("step wants %d, want 0 to %d", s.Want, WantToken)
	}
	if rows < 1 || rows > MaxRows {
		return Step{}, fmt.Errorf("step of %d rows, want 1 to %d", rows, MaxRows)
	}
	if s.Position > math.MaxInt32-rows {
		return Step{}, fmt.Errorf("step at position %d is out of range", s.Position)
	}
	if want := 4 * rows * max(s.Width, 1); len(body) != want {
		return Step{}, fmt.Errorf("step of %d rows of width %d has %d bytes, want %d", rows, s.Width, len(body), want)
	}
	if s.Width == 0 {
		s.Tokens = decodeInts(body)
	} else {
		s.Hidden = decodeFloats(body)
	}
	return s, nil
}

// Truncate asks to forget positions >= Position.
type Truncate struct{ Position int }

// Append adds the message's bytes to b: kind u8, 3 zero bytes, position u32.
func (t Truncate) Append(b []byte) []byte {
	b = append(b, byte(KindTruncate), 0, 0, 0)
	return binary.LittleEndian.AppendUint32(b, uint32(t.Position))
}

// DecodeTruncate reads a Truncate.
func DecodeTruncate(b []byte) (Truncate, error) {
	if KindOf(b) != KindTruncate || len(b) != 8 {
		return Truncate{}, fmt.Errorf("want a truncate, got %s of %d bytes", KindOf(b), len(b))
	}
	return Truncate{Position: int(binary.LittleEndian.Uint32(b[4:]))}, nil
}

// Timing is how long a step waited and computed at the node.
type Timing struct{ Queue, Compute time.Duration }

// Result is a node's answer to a step or a truncate.
type Result struct {
	Kind     Kind // KindHidden, KindToken or KindDone
	Position int  // of the step's first row
	Rows     int  // rows computed
	Timing   Timing
	Hidden   []float32 // KindHidden: Rows x Width
	Width    int
	Token    Token // KindToken
}

// Token is one drawn token. Log-probabilities are natural logarithms of the
// model's own distribution, before temperature and filters.
type Token struct {
	ID      int32
	Logprob float32
	Top     []Alternative // most likely first; only when asked for
}

// Alternative is a token that could have been drawn.
type Alternative struct {
	ID      int32
	Logprob float32
}

// Append adds the result's bytes to b:
//
//	kind u8, top u8, width u16, position u32, rows u32, queue us u32, compute us u32,
//	then rows x width f32 | (id i32, logprob f32) x (1 + top)
func (r Result) Append(b []byte) []byte {
	b = append(b, byte(r.Kind), byte(len(r.Token.Top)))
	b = binary.LittleEndian.AppendUint16(b, uint16(r.Width))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Position))
	b = binary.LittleEndian.AppendUint32(b, uint32(r.Rows))
	b = appendMicros(b, r.Timing.Queue)
	b = appendMicros(b, r.Timing.Compute)
	switch r.Kind {
	case KindHidden:
		b = appendFloats(b, r.Hidden)
	case KindToken:
		b = appendScored(b, r.Token.ID, r.Token.Logprob)
		for _, a := range r.Token.Top {
			b = appendScored(b, a.ID, a.Logprob)
		}
	}
	return b
}

// DecodeResult reads a result, or gives the *Error that came instead.
func DecodeResult(b []byte) (Result, error) {
	k := KindOf(b)
	if k == KindError {
		return Result{}, DecodeError(b)
	}
	if (k != KindHidden && k != KindToken && k != KindDone) || len(b) < backHead {
		return Result{}, fmt.Errorf("want a result, got %s of %d bytes", k, len(b))
	}
	r := Result{
		Kind:     k,
		Width:    int(binary.LittleEndian.Uint16(b[2:])),
		Position: int(binary.LittleEndian.Uint32(b[4:])),
		Rows:     int(binary.LittleEndian.Uint32(b[8:])),
		Timing: Timing{
			Queue:   time.Duration(binary.LittleEndian.Uint32(b[12:])) * time.Microsecond,
			Compute: time.Duration(binary.LittleEndian.Uint32(b[16:])) * time.Microsecond,
		},
	}
	return r, r.decodeBody(int(b[1]), b[backHead:])
}

func (r *Result) decodeBody(top int, body []byte) error {
	if r.Rows > MaxRows || top > maxTop {
		return fmt.Errorf("result of %d rows and %d alternatives is over the limits %d and %d", r.Rows, top, MaxRows, maxTop)
	}
	want := map[Kind]int{KindHidden: 4 * r.Rows * r.Width, KindToken: 8 * (1 + top)}[r.Kind]
	if len(body) != want {
		return fmt.Errorf("%s of %d rows of width %d has %d bytes, want %d", r.Kind, r.Rows, r.Width, len(body), want)
	}
	switch r.Kind {
	case KindHidden:
		r.Hidden = decodeFloats(body)
	case KindToken:
		r.Token.ID, r.Token.Logprob = decodeScored(body)
		for i := range top {
			id, lp := decodeScored(body[8*(1+i):])
			r.Token.Top = append(r.Token.Top, Alternative{id, lp})
		}
	}
	return nil
}
