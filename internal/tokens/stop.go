package tokens

import (
	"errors"
	"fmt"
)

// ErrStops is what errors.Is finds when stop strings are not acceptable.
var ErrStops = errors.New("invalid stop strings")

// StopMatcher finds the first of up to MaxStops strings in a stream of text and
// never lets a part of it through: what could be the start of one is held back
// until it is not.
type StopMatcher struct {
	stops []kmp
	held  []byte
	done  bool
}

// kmp finds one string (Knuth, Morris and Pratt 1977).
type kmp struct {
	s     string
	fail  []int // length of the longest proper border of s[:i+1]
	match int   // how much of s the text ends with
}

func newKMP(s string) kmp {
	k := kmp{s: s, fail: make([]int, len(s))}
	for i, n := 1, 0; i < len(s); i++ {
		for n > 0 && s[i] != s[n] {
			n = k.fail[n-1]
		}
		if s[i] == s[n] {
			n++
		}
		k.fail[i] = n
	}
	return k
}

// step takes one byte and reports whether s ends here.
func (k *kmp) step(b byte) bool {
	for k.match > 0 && (k.match == len(k.s) || k.s[k.match] != b) {
		k.match = k.fail[k.match-1]
	}
	if k.s[k.match] == b {
		k.match++
	}
	return k.match == len(k.s)
}

// NewStopMatcher returns a matcher of the given strings; none is fine. Each must
// have 1 to MaxStopBytes bytes.
func NewStopMatcher(stops []string) (*StopMatcher, error) {
	if len(stops) > MaxStops {
		return nil, fmt.Errorf("%w: %d of them, at most %d", ErrStops, len(stops), MaxStops)
	}
	m := &StopMatcher{}
	for i, s := range stops {
		if s == "" || len(s) > MaxStopBytes {
			return nil, fmt.Errorf("%w: number %d has %d bytes, must be 1 to %d", ErrStops, i, len(s), MaxStopBytes)
		}
		m.stops = append(m.stops, newKMP(s))
	}
	return m, nil
}

// Push takes the next text and returns what may be shown. Once a stop string is
// complete, stop is that string, the text ends before it, and everything after
// is swallowed. Of several strings the one that is complete first counts; of
// those that end at the same byte, the longest. How the text is cut into pushes
// makes no difference.
func (m *StopMatcher) Push(text string) (show, stop string) {
	if m.done {
		return "", ""
	}
	if len(m.stops) == 0 {
		return text, ""
	}
	all := append(m.held, text...)
	for i := len(m.held); i < len(all); i++ {
		for j := range m.stops {
			if k := &m.stops[j]; k.step(all[i]) && len(k.s) > len(stop) {
				stop = k.s
			}
		}
		if stop != "" {
			m.done, m.held = true, nil
			return string(all[:i+1-len(stop)]), stop
		}
	}
	keep := 0
	for j := range m.stops {
		keep = max(keep, m.stops[j].match)
	}
	show = string(all[:len(all)-keep])
	m.held = append(m.held[:0], all[len(all)-keep:]...)
	return show, ""
}

// Flush returns what was held back, at the end of a text without a stop string.
func (m *StopMatcher) Flush() string {
	s := string(m.held)
	m.held = nil
	return s
}
