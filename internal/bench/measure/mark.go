package measure

import (
	"fmt"
	"slices"
	"strconv"
)

// Mark is a measured value beside what it should be.
type Mark struct {
	Name  string   `json:"name"`
	Value float64  `json:"value"`
	Unit  string   `json:"unit,omitempty"`  // empty for ratios and counts
	Floor *float64 `json:"floor,omitempty"` // what must be reached; nil: nothing must
	Aim   *float64 `json:"aim,omitempty"`   // what is wanted; nil: nothing more than the floor
	Lower bool     `json:"lower_is_better,omitempty"`
}

// A Verdict says what a value reached.
type Verdict string

const (
	AimReached   Verdict = "aim reached"
	FloorReached Verdict = "floor reached"
	BelowFloor   Verdict = "below the floor"
	BelowAim     Verdict = "below the aim" // and there is no floor
	NoVerdict    Verdict = "no verdict"    // the machine was too busy to tell
)

// Judge compares a value with its floor and aim.
func (m Mark) Judge() Verdict {
	switch {
	case m.Floor != nil && !m.reached(*m.Floor):
		return BelowFloor
	case m.Aim != nil && m.reached(*m.Aim):
		return AimReached
	case m.Floor != nil:
		return FloorReached
	case m.Aim != nil:
		return BelowAim
	}
	return NoVerdict
}

func (m Mark) reached(mark float64) bool {
	if m.Lower {
		return m.Value <= mark
	}
	return m.Value >= mark
}

// wanted says what the value is held against.
func (m Mark) wanted() string {
	var s string
	if m.Floor != nil {
		s = "floor " + m.quantity(*m.Floor)
	}
	if m.Aim != nil {
		if s != "" {
			s += ", "
		}
		s += "aim " + m.quantity(*m.Aim)
	}
	return s
}

func (m Mark) quantity(v float64) string {
	s := strconv.FormatFloat(v, 'g', 3, 64)
	if m.Unit != "" {
		s += " " + m.Unit
	}
	return s
}

// loud is the quotient of the baseline's fastest and slowest round from which a
// run says nothing.
const loud = 2

// Noise is how far the baseline, measured the same way in every round, disagrees
// with itself.
type Noise struct {
	Baseline string  `json:"baseline"`
	Rounds   int     `json:"rounds"`
	Quotient float64 `json:"fastest_to_slowest"` // 1: perfectly quiet
}

// NoiseOf compares a baseline's rounds.
func NoiseOf(baseline string, rounds []float64) Noise {
	n := Noise{Baseline: baseline, Rounds: len(rounds)}
	if len(rounds) > 0 && slices.Min(rounds) > 0 {
		n.Quotient = slices.Max(rounds) / slices.Min(rounds)
	}
	return n
}

// Louder is the noise of two baselines together.
func Louder(a, b Noise) Noise {
	if a.Loud() || b.Quotient <= a.Quotient && !b.Loud() {
		return a
	}
	return b
}

// Loud reports that no verdict can be given. So does a baseline of fewer than
// two rounds: nobody knows.
func (n Noise) Loud() bool { return n.Rounds < 2 || n.Quotient == 0 || n.Quotient > loud }

func (n Noise) String() string {
	switch {
	case n.Rounds < 2 || n.Quotient == 0:
		return fmt.Sprintf("noise: unknown, %s ran %d times; no verdict", n.Baseline, n.Rounds)
	case n.Loud():
		return fmt.Sprintf("noise: %s disagrees with itself by a factor of %.2f: the machine is too busy for a verdict", n.Baseline, n.Quotient)
	}
	return fmt.Sprintf("noise: fastest to slowest round of %s %.2f", n.Baseline, n.Quotient)
}

// Judgement is a run's marks with its noise.
type Judgement struct {
	Marks []Mark `json:"marks"`
	Noise *Noise `json:"noise,omitempty"` // nil: the marks are times or counts that stand for themselves
	// Verdicts are the marks' verdicts, in order.
	Verdicts []Verdict `json:"verdicts"`
}

// Judged judges marks; with too much noise there is no verdict on any.
func Judged(marks []Mark, noise *Noise) Judgement {
	j := Judgement{Marks: marks, Noise: noise}
	for _, m := range marks {
		v := m.Judge()
		if noise != nil && noise.Loud() {
			v = NoVerdict
		}
		j.Verdicts = append(j.Verdicts, v)
	}
	return j
}

// Held reports that every value is known to be at its floor at least.
func (j Judgement) Held() bool {
	return !slices.Contains(j.Verdicts, BelowFloor) && !slices.Contains(j.Verdicts, NoVerdict)
}
