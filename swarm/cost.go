package swarm

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const (
	// Infinite is the price of a route with no stages. Sums stop there.
	Infinite Cost = math.MaxInt64

	// Millisecond is one millisecond-equivalent.
	Millisecond Cost = 1_000_000

	// UnmeasuredCost is what a node without telemetry costs: more than any
	// plausible healthy node, so that traffic does not run blindly to it, yet
	// finite, so that it is used when nothing else is there.
	UnmeasuredCost = 1000 * Millisecond
)

// CostOf turns milliseconds into a Cost, rounding once to the nanosecond, half
// away from zero. Not-a-number and anything too large become Infinite; a
// negative price does not exist and becomes 0.
func CostOf(milliseconds float64) Cost {
	ns := milliseconds * 1e6
	switch {
	case !(ns < math.MaxInt64): // also not-a-number
		return Infinite
	case ns <= 0:
		return 0
	}
	// Twice the rest, cut off, is 1 from a half on and 0 below. Unlike adding a
	// half first this is exact, and it has no branch to mispredict.
	whole := Cost(ns)
	return whole + Cost(2*(ns-float64(whole)))
}

// Add returns c + d, stopping at Infinite.
func (c Cost) Add(d Cost) Cost {
	if sum := c + d; sum >= 0 {
		return sum
	}
	return Infinite
}

// Times returns n times c, stopping at Infinite; n below zero counts as zero.
func (c Cost) Times(n int) Cost {
	switch {
	case n <= 0 || c <= 0:
		return 0
	case c > Infinite/Cost(n):
		return Infinite
	}
	return c * Cost(n)
}

// Milliseconds is the price as a float64, +Inf for Infinite.
func (c Cost) Milliseconds() float64 {
	if c == Infinite {
		return math.Inf(1)
	}
	return float64(c) / 1e6
}

// decimal prints exact milliseconds with as few digits as needed.
func (c Cost) decimal() string {
	sign := ""
	u := uint64(c)
	if c < 0 {
		sign, u = "-", -u
	}
	s := sign + strconv.FormatUint(u/1e6, 10)
	if rest := u % 1e6; rest != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%06d", rest), "0")
	}
	return s
}

// String prints milliseconds: "71.5ms", "+Inf" for Infinite.
func (c Cost) String() string {
	if c == Infinite {
		return "+Inf"
	}
	return c.decimal() + "ms"
}

// round keeps hundredths of a millisecond, for people; what is less stays.
func (c Cost) round() Cost {
	const hundredth = 1e4
	switch {
	case c == Infinite:
		return c
	case c >= hundredth:
		return (c + hundredth/2) / hundredth * hundredth
	case c <= -hundredth:
		return (c - hundredth/2) / hundredth * hundredth
	}
	return c
}

// MarshalJSON writes exact milliseconds as a number; Infinite, which JSON has
// no number for, as the string "+Inf".
func (c Cost) MarshalJSON() ([]byte, error) {
	if c == Infinite {
		return []byte(`"+Inf"`), nil
	}
	return []byte(c.decimal()), nil
}

// UnmarshalJSON reads what MarshalJSON writes, exactly, and any other number
// of milliseconds that is not negative, rounded to the nanosecond.
func (c *Cost) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == `"+Inf"` {
		*c = Infinite
		return nil
	}
	if exact, ok := parseDecimal(text); ok {
		*c = exact
		return nil
	}
	ms, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(ms) || ms < 0 {
		return fmt.Errorf("cost %s: want milliseconds, a number that is not negative", clipText(data))
	}
	*c = CostOf(ms)
	return nil
}

// parseDecimal reads "12.345678" without passing through a float64, whose 53
// bits would lose nanoseconds of large prices.
func parseDecimal(text string) (Cost, bool) {
	whole, frac, _ := strings.Cut(text, ".")
	if len(whole) > 13 || len(frac) > 6 {
		return 0, false
	}
	ms, err := strconv.ParseUint(whole, 10, 64)
	if err != nil {
		return 0, false
	}
	rest, err := strconv.ParseUint(frac+strings.Repeat("0", 6-len(frac)), 10, 64)
	if err != nil {
		return 0, false
	}
	return Cost(min(ms*1e6+rest, math.MaxInt64)), true
}
