package answer

import (
	"testing"
	"time"
)

// Shadows rest so long that they slow the answer by 2% on the whole.
func TestShadowsRest(t *testing.T) {
	for name, c := range map[string]struct {
		alone, fed time.Duration // of a token
		rest       time.Duration // after a step of a second
	}{
		"nothing is known yet":       {0, 0, time.Second},
		"machines of their own":      {10 * time.Millisecond, 10 * time.Millisecond, time.Second / 2},
		"a little slower":            {10 * time.Millisecond, 11 * time.Millisecond, 4 * time.Second},
		"half as fast":               {10 * time.Millisecond, 20 * time.Millisecond, 49 * time.Second},
		"hardly anything goes on":    {10 * time.Millisecond, time.Second, 50 * time.Second},
		"faster, which is but noise": {10 * time.Millisecond, 8 * time.Millisecond, time.Second / 2},
	} {
		var p pace
		if c.alone > 0 {
			for range 3 {
				p.observe(c.alone, false)
				p.observe(c.fed, true)
			}
		}
		if got := p.rest(time.Second); (got - c.rest).Abs() > 10*time.Millisecond {
			t.Errorf("%s: %s, want %s", name, got, c.rest)
		}
	}
}
