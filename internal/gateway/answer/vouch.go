package answer

import (
	"errors"
	"fmt"
	"math"

	"hecate/internal/stage"
)

// errNonsense: a node lives and said what no node says that works, whether it is
// broken, hostile or of another version. It is left like one that refuses: the same
// question would bring the same answer.
var errNonsense = errors.New("the node's answer makes no sense")

func nonsense(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errNonsense, fmt.Sprintf(format, args...))
}

// unreadable is nonsense, unless it is a refusal that was well put.
func unreadable(err error) error {
	var refusal *stage.Error
	if err == nil || errors.As(err, &refusal) {
		return err
	}
	return nonsense("%v", err)
}

// believe checks what a node says of a stage that it opened. What is not known of
// the model, the first node tells.
func (a *Answer) believe(o stage.Opened) error {
	switch {
	case o.Held < 0:
		return nonsense("it holds %d positions", o.Held)
	case o.MaxRows < 1:
		return nonsense("it takes steps of %d rows", o.MaxRows)
	case o.Width < 1 || o.Width > stage.MaxWidth:
		return nonsense("its rows have %d values", o.Width)
	}
	if !a.width.CompareAndSwap(0, int64(o.Width)) && a.width.Load() != int64(o.Width) {
		return nonsense("its rows have %d values, those of the model %d", o.Width, a.width.Load())
	}
	return nil
}

// fits checks that a result answers the step.
func (a *Answer) fits(s stage.Step, r stage.Result) error {
	want := map[stage.Want]stage.Kind{stage.WantNothing: stage.KindDone, stage.WantHidden: stage.KindHidden, stage.WantToken: stage.KindToken}[s.Want]
	if r.Kind != want || r.Position != s.Position || r.Rows != s.Rows() {
		return nonsense("answered a step at %d of %d rows with %s at %d of %d rows", s.Position, s.Rows(), r.Kind, r.Position, r.Rows)
	}
	switch r.Kind {
	case stage.KindHidden:
		if int64(r.Width) != a.width.Load() {
			return nonsense("rows of %d values, of %d were promised", r.Width, a.width.Load())
		}
		if !finite(r.Hidden) {
			return nonsense("rows with values that are not finite")
		}
	case stage.KindToken:
		return sensible(r.Token)
	}
	return nil
}

func sensible(t stage.Token) error {
	all := append([]stage.Alternative{{ID: t.ID, Logprob: t.Logprob}}, t.Top...)
	for _, x := range all {
		switch {
		case x.ID < 0:
			return nonsense("token %d", x.ID)
		case !(x.Logprob <= 0) || math.IsInf(float64(x.Logprob), 0):
			return nonsense("token %d with a log-probability of %v", x.ID, x.Logprob)
		}
	}
	return nil
}

func finite(v []float32) bool {
	const exponent = 0x7f800000
	for _, x := range v {
		if math.Float32bits(x)&exponent == exponent {
			return false
		}
	}
	return true
}
