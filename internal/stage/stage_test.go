package stage

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hecate/internal/sampling"
)

func TestStepRoundTrip(t *testing.T) {
	for name, s := range map[string]Step{
		"tokens": {Position: 7, Want: WantToken, Tokens: []int32{1, -2, 2047}},
		"hidden": {Position: 0, Want: WantHidden, Width: 2, Hidden: []float32{1, -2, 3.5, 0}},
		"replay": {Position: 1 << 20, Want: WantNothing, Width: 1, Hidden: []float32{1}},
	} {
		got, err := DecodeStep(s.Append(nil))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(s, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestResultRoundTrip(t *testing.T) {
	timing := Timing{Queue: 3 * time.Microsecond, Compute: 2 * time.Millisecond}
	for name, r := range map[string]Result{
		"hidden": {Kind: KindHidden, Position: 4, Rows: 2, Timing: timing, Width: 2, Hidden: []float32{1, 2, 3, 4}},
		"token":  {Kind: KindToken, Position: 4, Rows: 1, Timing: timing, Token: Token{ID: 9, Logprob: -0.5, Top: []Alternative{{9, -0.5}, {3, -2}}}},
		"done":   {Kind: KindDone, Position: 4, Rows: 64, Timing: timing},
	} {
		got, err := DecodeResult(r.Append(nil))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d := cmp.Diff(r, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestOpenRoundTrip(t *testing.T) {
	o := Open{Session: "a1", Model: "m", First: 0, Last: 11, Cells: 512, Rescue: true,
		Sampler: &Sampler{Params: sampling.Params{Temperature: 0.8}, Prompt: 1, Tokens: []int32{1, 2}}}
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeOpen(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(o, got); d != "" {
		t.Error(d)
	}
}

func TestAnErrorStandsWhereAnAnswerWasExpected(t *testing.T) {
	b, err := (&Error{Code: CodeNoCells, Message: "3 of 512 cells are free"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	_, opened := DecodeOpened(b)
	_, result := DecodeResult(b)
	for _, err := range []error{opened, result} {
		var e *Error
		if !errors.As(err, &e) || e.Code != CodeNoCells {
			t.Errorf("got %v, want the error with code %s", err, CodeNoCells)
		}
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	good := Open{Session: "a", Model: "m", Last: 3, Cells: 1}
	for name, spoil := range map[string]func(*Open){
		"no session":           func(o *Open) { o.Session = "" },
		"no model":             func(o *Open) { o.Model = "" },
		"inverted range":       func(o *Open) { o.First = 4 },
		"negative layer":       func(o *Open) { o.First = -1 },
		"no cells":             func(o *Open) { o.Cells = 0 },
		"prompt beyond tokens": func(o *Open) { o.Sampler = &Sampler{Prompt: 2, Tokens: []int32{1}} },
	} {
		o := good
		spoil(&o)
		if o.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := good.Validate(); err != nil {
		t.Errorf("good one refused: %v", err)
	}
}

// Whatever bytes come, decoding neither panics nor allocates more than the
// input justifies; what decodes encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	f.Add(Step{Want: WantToken, Tokens: []int32{1}}.Append(nil))
	f.Add(Step{Want: WantHidden, Width: 2, Hidden: []float32{1, 2}}.Append(nil))
	f.Add(Result{Kind: KindToken, Rows: 1, Token: Token{ID: 1}}.Append(nil))
	f.Add(Truncate{Position: 3}.Append(nil))
	f.Add([]byte{byte(KindOpen), '{', '}'})
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := DecodeStep(b); err == nil && len(s.Append(nil)) != len(b) {
			t.Errorf("step of %d bytes encodes to %d", len(b), len(s.Append(nil)))
		}
		if r, err := DecodeResult(b); err == nil && len(r.Append(nil)) != len(b) {
			t.Errorf("result of %d bytes encodes to %d", len(b), len(r.Append(nil)))
		}
		_, _ = DecodeTruncate(b)
		_, _ = DecodeOpen(b)
		_, _ = DecodeOpened(b)
	})
}

func TestGrowRoundTrip(t *testing.T) {
	if g, err := DecodeGrow(Grow{512}.Append(nil)); err != nil || g.Cells != 512 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := DecodeGrown(Grown{256}.Append(nil)); err != nil || g.Cells != 256 {
		t.Errorf("%+v, %v", g, err)
	}
	no, _ := (&Error{Code: CodeBad, Message: "an unexpected message: kind 4"}).Encode()
	var refusal *Error
	if _, err := DecodeGrown(no); !errors.As(err, &refusal) || refusal.Code != CodeBad {
		t.Errorf("an older node's answer: %v", err)
	}
	for _, bad := range [][]byte{nil, {4}, {4, 0, 0, 0, 0, 0, 0, 0}, {4, 0, 0, 0, 255, 255, 255, 255}, {21, 0, 0, 0, 1, 0, 0, 0}} {
		if _, err := DecodeGrow(bad); err == nil {
			t.Errorf("%v was read", bad)
		}
	}
}
