package jsonschema

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"

	"hecate/internal/sampling/grammar"
)

// limit is one end of a range of numbers; nil is none.
type limit struct {
	at        *big.Rat
	exclusive bool
}

// isWhole says whether a JSON number is an integer, however it is written.
func isWhole(v json.RawMessage) bool {
	x, ok := rational(v)
	return ok && x.IsInt()
}

// rational reads a JSON number exactly. Exponents are bounded: they cost memory.
func rational(raw json.RawMessage) (*big.Rat, bool) {
	var n json.Number
	if json.Unmarshal(raw, &n) != nil || len(n) > 64 || n == "" || bytes.ContainsRune(raw, '"') {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f != 0 && (f < 1e-300 && f > -1e-300) {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

func (r *reader) number(path, kind string, o *object) (grammar.Expr, error) {
	lo, err := limitOf(path, o, "minimum", "exclusiveMinimum", 1)
	if err != nil {
		return grammar.Expr{}, err
	}
	hi, err := limitOf(path, o, "maximum", "exclusiveMaximum", -1)
	if err != nil {
		return grammar.Expr{}, err
	}
	switch {
	case lo == nil && hi == nil && kind == "integer":
		return grammar.Call(ruleInt), nil
	case lo == nil && hi == nil:
		return grammar.Call(ruleNumber), nil
	}
	alt := numbers(lo, hi, kind == "integer")
	if alt == nil {
		return grammar.Expr{}, fault(path, "no number of up to %d digits lies between these bounds", maxDigits)
	}
	return r.rule(grammar.Alt(alt...)), nil
}

// limitOf reads the stricter one of two keywords. sign is 1 for a lower end.
func limitOf(path string, o *object, inclusive, exclusive string, sign int) (*limit, error) {
	var out *limit
	for _, name := range []string{inclusive, exclusive} {
		raw, ok := o.values[name]
		if !ok {
			continue
		}
		at, ok := rational(raw)
		if !ok {
			return nil, fault(step(path, name), "must be a number")
		}
		l := &limit{at, name == exclusive}
		if out == nil || l.at.Cmp(out.at)*sign > 0 || l.at.Cmp(out.at) == 0 && l.exclusive {
			out = l
		}
	}
	return out, nil
}

// numbers lists what writes the numbers between two limits: those without and
// those with a minus.
func numbers(lo, hi *limit, whole bool) (alt []grammar.Expr) {
	zero := &limit{at: new(big.Rat)}
	if hi == nil || hi.at.Sign() > 0 || hi.at.Sign() == 0 && !hi.exclusive {
		from := lo
		if lo == nil || lo.at.Sign() < 0 {
			from = zero
		}
		if s, ok := spanOf(from, hi, whole); ok {
			alt = append(alt, s.expr())
		}
	}
	if lo == nil || lo.at.Sign() < 0 {
		from := &limit{at: new(big.Rat), exclusive: true} // there is no -0
		if hi != nil && hi.at.Sign() < 0 {
			from = &limit{new(big.Rat).Neg(hi.at), hi.exclusive}
		}
		var to *limit
		if lo != nil {
			to = &limit{new(big.Rat).Neg(lo.at), lo.exclusive}
		}
		if s, ok := spanOf(from, to, whole); ok {
			alt = append(alt, grammar.Seq(grammar.Text("-"), s.expr()))
		}
	}
	return alt
}

// span is decimals from lo to hi, neither negative, as digits. Fractions have
// one length.
type span struct {
	whole          bool
	lo, hi         string // in front of the point
	loFrac, hiFrac string // behind it
	above, below   bool   // lo, or hi, is not one of them itself
}

// fineDigits is how many digits behind the point a bound is compared with, more
// than bounds that people write have.
const fineDigits = 9

// spanOf cuts limits to what is written: maxDigits in front of the point. It
// fails when nothing is left.
func spanOf(lo, hi *limit, whole bool) (span, bool) {
	largest := new(big.Rat).SetInt(new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(maxDigits+1), nil), big.NewInt(1)))
	if hi == nil || hi.at.Cmp(largest) > 0 {
		hi = &limit{at: largest}
	}
	if whole {
		lo, hi = wholeAbove(lo), wholeBelow(hi)
	}
	if c := lo.at.Cmp(hi.at); c > 0 || c == 0 && (lo.exclusive || hi.exclusive) {
		return span{}, false
	}
	s := span{whole: whole, above: lo.exclusive, below: hi.exclusive}
	var exact bool
	if s.lo, s.loFrac, exact = decimal(lo.at, true); !exact {
		s.above = false // rounded up, and so inside
	}
	if s.hi, s.hiFrac, exact = decimal(hi.at, false); !exact {
		s.below = false
	}
	return s, len(s.lo) < len(s.hi) || len(s.lo) == len(s.hi) && s.lo+s.loFrac <= s.hi+s.hiFrac
}

// wholeAbove is the smallest integer within a lower limit.
func wholeAbove(l *limit) *limit {
	n := new(big.Int).Div(l.at.Num(), l.at.Denom()) // rounds down
	if !l.at.IsInt() || l.exclusive {
		n.Add(n, big.NewInt(1))
	}
	return &limit{at: new(big.Rat).SetInt(n)}
}

// wholeBelow is the largest integer within an upper limit.
func wholeBelow(l *limit) *limit {
	n := new(big.Int).Div(l.at.Num(), l.at.Denom())
	if l.at.IsInt() && l.exclusive {
		n.Sub(n, big.NewInt(1))
	}
	return &limit{at: new(big.Rat).SetInt(n)}
}

// decimal writes a number that is not negative with fineDigits behind the point,
// rounded up or down.
func decimal(x *big.Rat, up bool) (front, back string, exact bool) {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(fineDigits), nil)
	n := new(big.Rat).Mul(x, new(big.Rat).SetInt(scale))
	q := new(big.Int).Div(n.Num(), n.Denom())
	if !n.IsInt() && up {
		q.Add(q, big.NewInt(1))
	}
	s := q.String()
	if len(s) <= fineDigits {
		s = strings.Repeat("0", fineDigits+1-len(s)) + s
	}
	cut := len(s) - fineDigits
	return s[:cut], s[cut:], n.IsInt()
}

// expr is all decimals of the span, by the number of digits in front.
func (s span) expr() grammar.Expr {
	var alt []grammar.Expr
	for n := len(s.lo); n <= len(s.hi); n++ {
		d := digits{s, n, s.lo, s.hi}
		if n > len(s.lo) {
			d.lo = "1" + strings.Repeat("0", n-1)
		}
		if n < len(s.hi) {
			d.hi = strings.Repeat("9", n)
		}
		alt = append(alt, d.front(0, n == len(s.lo), n == len(s.hi)))
	}
	return grammar.Alt(alt...)
}

// digits is the decimals of a span that have n digits in front of the point, lo
// to hi. A text is at the lower end while it equals lo so far, at the upper end
// while it equals hi.
type digits struct {
	span
	n      int
	lo, hi string
}

func (d digits) front(i int, low, high bool) grammar.Expr {
	if i == d.n {
		return d.behind(low, high)
	}
	first, last := byte('0'), byte('9')
	if low || i == 0 {
		first = d.lo[i]
	}
	if high || i == 0 {
		last = d.hi[i]
	}
	if !low && !high && i > 0 {
		return grammar.Seq(grammar.Times(digit, d.n-i, d.n-i), d.behind(false, false))
	}
	return choose(first, last, low, high, func(low, high bool) grammar.Expr { return d.front(i+1, low, high) })
}

// choose is a digit from first to last and what follows it, which depends on
// whether the digit is at an end.
func choose(first, last byte, low, high bool, then func(low, high bool) grammar.Expr) grammar.Expr {
	one := func(lo, hi byte, low, high bool) grammar.Expr {
		return grammar.Seq(grammar.Class(rune(lo), rune(hi)), then(low, high))
	}
	if first > last {
		return grammar.Alt() // nothing
	}
	if first == last {
		return one(first, first, low, high)
	}
	var alt []grammar.Expr
	if low {
		alt = append(alt, one(first, first, true, false))
		first++
	}
	if high {
		alt = append(alt, one(last, last, false, true))
		last--
	}
	if first <= last {
		alt = append(alt, one(first, last, false, false))
	}
	return grammar.Alt(alt...)
}

// behind is what may follow the digits in front of the point.
func (d digits) behind(low, high bool) grammar.Expr {
	var alt []grammar.Expr
	if d.mayEnd(0, low, high) {
		alt = append(alt, grammar.Expr{})
	}
	if !d.whole {
		alt = append(alt, grammar.Seq(grammar.Text("."), d.fraction(0, low, high)))
	}
	return grammar.Alt(alt...)
}

// fraction is the digits from the i-th behind the point on, at least one.
func (d digits) fraction(i int, low, high bool) grammar.Expr {
	if !low && !high {
		return grammar.Times(digit, 1, max(1, maxDigits-i))
	}
	if i == fineDigits {
		return grammar.Alt() // nothing
	}
	first, last := byte('0'), byte('9')
	if low {
		first = d.loFrac[i]
	}
	if high {
		last = d.hiFrac[i]
	}
	return choose(first, last, low, high, func(low, high bool) grammar.Expr {
		var alt []grammar.Expr
		if d.mayEnd(i+1, low, high) {
			alt = append(alt, grammar.Expr{})
		}
		return grammar.Alt(append(alt, d.fraction(i+1, low, high))...)
	})
}

// mayEnd says whether a text with i digits behind the point lies in the span.
func (d digits) mayEnd(i int, low, high bool) bool {
	rest := func(frac string) bool { return d.whole || strings.Trim(frac[i:], "0") == "" }
	if low && (!rest(d.loFrac) || d.above) {
		return false
	}
	return !high || !rest(d.hiFrac) || !d.below
}
