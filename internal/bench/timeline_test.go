package bench

import (
	"math"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// line has events at these milliseconds, each with one token.
func line(ms ...int) timeline {
	l := timeline{tokens: len(ms)}
	for _, m := range ms {
		l.at = append(l.at, noon.Add(time.Duration(m)*time.Millisecond))
	}
	return l
}

func TestRate(t *testing.T) {
	double := line(0, 100, 200)
	double.tokens = 6 // two tokens per event
	for _, c := range []struct {
		name  string
		lines []timeline
		want  float64
	}{
		{"nothing", nil, 0},
		{"one event", []timeline{line(5)}, 0},
		{"one stream", []timeline{line(0, 100, 200)}, 10},
		{"the prompt does not count", []timeline{line(5000, 5100, 5200)}, 10},
		{"characters of two tokens", []timeline{double}, 20},
		{"two streams in step", []timeline{line(0, 100, 200), line(0, 100, 200)}, 20},
		{"only while all run", []timeline{line(0, 100, 200, 300, 400), line(150, 250, 350)}, 4 / 0.2},
		{"never all at once", []timeline{line(0, 100), line(200, 300)}, 0},
		{"all at one moment", []timeline{line(7, 7, 7)}, 0},
	} {
		if got := rate(c.lines); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %g, want %g", c.name, got, c.want)
		}
	}
}

func TestGapAndWhatIsAroundIt(t *testing.T) {
	l := line(0, 10, 20, 520, 540, 560)
	gap, i := l.gap()
	if gap != 500*time.Millisecond || i != 3 {
		t.Fatalf("gap %s at %d, want 500ms at 3", gap, i)
	}
	before, after := l.split(i)
	if b, a := rate([]timeline{before}), rate([]timeline{after}); math.Abs(b-100) > 1e-6 || math.Abs(a-50) > 1e-6 {
		t.Errorf("%g before and %g after, want 100 and 50", b, a)
	}
	if gap, i := line(3).gap(); gap != 0 || i != 0 {
		t.Errorf("one event has the gap %s at %d", gap, i)
	}
	if b, a := (timeline{}).split(0); len(b.at)+len(a.at) != 0 {
		t.Error("nothing was split into something")
	}
}
