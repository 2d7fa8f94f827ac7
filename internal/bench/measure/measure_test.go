package measure

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = i + 1
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(100, func(i, j int) { hundred[i], hundred[j] = hundred[j], hundred[i] })
	for _, c := range []struct {
		values []int
		q      float64
		want   int
	}{
		{nil, 0.5, 0},
		{[]int{7}, 0, 7},
		{[]int{7}, 1, 7},
		{[]int{2, 1}, 0.5, 1},
		{[]int{3, 1, 2}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred, 0.991, 100},
		{hundred, 1, 100},
		{hundred, 0, 1},
	} {
		if got := Percentile(c.values, c.q); got != c.want {
			t.Errorf("Percentile of %d values, %g: %d, want %d", len(c.values), c.q, got, c.want)
		}
	}
}

// At least the share q of all values does not exceed the percentile, and no
// smaller value has that property.
func TestPercentileIsTheSmallestThatCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		values := make([]int, 1+r.IntN(40))
		for i := range values {
			values[i] = r.IntN(20)
		}
		q := float64(r.IntN(101)) / 100
		got := Percentile(values, q)
		covers := func(v int) bool {
			n := 0
			for _, x := range values {
				if x <= v {
					n++
				}
			}
			return float64(n) >= q*float64(len(values))-1e-9
		}
		if !slices.Contains(values, got) || !covers(got) {
			t.Fatalf("%v, %g: %d", values, q, got)
		}
		for _, v := range values {
			if v < got && covers(v) {
				t.Fatalf("%v, %g: %d, but %d is enough", values, q, got, v)
			}
		}
	}
}

func TestPercentileLeavesItsValuesAlone(t *testing.T) {
	v := []time.Duration{3, 1, 2}
	Percentile(v, 0.5)
	Median([]float64{})
	if v[0] != 3 || v[1] != 1 || v[2] != 2 {
		t.Errorf("now %v", v)
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{4}, 4}, {[]float64{4, 1}, 2.5}, {[]float64{9, 1, 4}, 4}, {[]float64{8, 1, 4, 2}, 3}} {
		if got := Median(c.values); got != c.want {
			t.Errorf("Median(%v) is %g, want %g", c.values, got, c.want)
		}
	}
}

func TestQuotients(t *testing.T) {
	got := Quotients([]float64{1, 4, 5, 6}, []float64{2, 0, 10})
	if !slices.Equal(got, []float64{0.5, 0.5}) {
		t.Errorf("%v", got)
	}
}

func TestMarksAreJudged(t *testing.T) {
	for _, c := range []struct {
		m    Mark
		want Verdict
	}{
		{Mark{Value: 0.98, Floor: new(0.95), Aim: new(0.97)}, AimReached},
		{Mark{Value: 0.97, Floor: new(0.95), Aim: new(0.97)}, AimReached},
		{Mark{Value: 0.96, Floor: new(0.95), Aim: new(0.97)}, FloorReached},
		{Mark{Value: 0.95, Floor: new(0.95), Aim: new(0.97)}, FloorReached},
		{Mark{Value: 0.94, Floor: new(0.95), Aim: new(0.97)}, BelowFloor},
		{Mark{Value: 1.2, Floor: new(1.0), Lower: true}, BelowFloor},
		{Mark{Value: 1.0, Floor: new(1.0), Lower: true}, FloorReached},
		{Mark{Value: 0, Floor: new(0.0), Lower: true}, FloorReached},
		{Mark{Value: 1, Floor: new(0.0), Lower: true}, BelowFloor},
		{Mark{Value: 0.4, Aim: new(0.3), Lower: true}, BelowAim},
		{Mark{Value: 0.2, Aim: new(0.3), Lower: true}, AimReached},
		{Mark{Value: math.NaN(), Floor: new(0.5)}, BelowFloor},
		{Mark{Value: math.NaN(), Floor: new(0.5), Lower: true}, BelowFloor},
		{Mark{Value: 1}, NoVerdict},
	} {
		if got := c.m.Judge(); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.m.quantity(c.m.Value), c.m.wanted(), got, c.want)
		}
	}
}

func TestNoiseForbidsVerdicts(t *testing.T) {
	good := []Mark{{Name: "a", Value: 1, Floor: new(0.5)}}
	bad := []Mark{{Name: "a", Value: 1, Floor: new(0.5)}, {Name: "b", Value: 0.4, Floor: new(0.5)}}
	for _, c := range []struct {
		what  string
		marks []Mark
		noise *Noise
		held  bool
	}{
		{"quiet", good, new(NoiseOf("x", []float64{100, 120, 90})), true},
		{"quiet and bad", bad, new(NoiseOf("x", []float64{100, 120, 90})), false},
		{"just quiet", good, new(NoiseOf("x", []float64{100, 50})), true},
		{"loud", good, new(NoiseOf("x", []float64{100, 49})), false},
		{"one round", good, new(NoiseOf("x", []float64{100})), false},
		{"stood still", good, new(NoiseOf("x", []float64{100, 0})), false},
		{"stands for itself", good, nil, true},
		{"stands for itself and is bad", bad, nil, false},
	} {
		j := Judged(c.marks, c.noise)
		if j.Held() != c.held {
			t.Errorf("%s: held %v, want %v (%v)", c.what, j.Held(), c.held, j.Verdicts)
		}
		if c.noise != nil && c.noise.Loud() && slices.ContainsFunc(j.Verdicts, func(v Verdict) bool { return v != NoVerdict }) {
			t.Errorf("%s: a verdict in spite of the noise: %v", c.what, j.Verdicts)
		}
	}
}

func TestTheLouderBaselineCounts(t *testing.T) {
	quiet, louder := NoiseOf("quiet", []float64{10, 11}), NoiseOf("louder", []float64{10, 15})
	loud, unknown := NoiseOf("loud", []float64{10, 30}), NoiseOf("unknown", []float64{10})
	for _, c := range []struct{ a, b, want Noise }{
		{quiet, louder, louder}, {louder, quiet, louder}, {loud, quiet, loud}, {quiet, loud, loud},
		{unknown, louder, unknown}, {louder, unknown, unknown},
	} {
		if got := Louder(c.a, c.b); got != c.want {
			t.Errorf("of %s and %s: %s", c.a.Baseline, c.b.Baseline, got.Baseline)
		}
	}
}

func TestJudgementIsPrinted(t *testing.T) {
	var b bytes.Buffer
	j := Judged([]Mark{{Name: "gap", Value: 0.2512, Unit: "s", Floor: new(1.0), Aim: new(0.3), Lower: true}}, new(NoiseOf("the engine alone", []float64{10, 12})))
	if err := j.Print(&b); err != nil {
		t.Fatal(err)
	}
	want := "gap  0.251 s  floor 1 s, aim 0.3 s  aim reached\nnoise: fastest to slowest round of the engine alone 1.20\n"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestTableIsAligned(t *testing.T) {
	var b bytes.Buffer
	table := NewTable("", "one", "eight")
	table.Row("tokens per second", "100", "1.5")
	table.Row("µs", "7", "12345678")
	if err := table.Print(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	for _, l := range lines {
		if len([]rune(l)) != len([]rune(lines[0])) {
			t.Errorf("lines of different length:\n%s", b.String())
		}
	}
	if !strings.Contains(lines[2], "µs ") {
		t.Errorf("names are to stand on the left:\n%s", b.String())
	}
}

func TestShort(t *testing.T) {
	for in, want := range map[time.Duration]string{
		0: "0s", 12: "12ns", 1234567: "1.23ms", 2345678901: "2.35s", 45678: "45.68µs",
	} {
		if got := Short(in).String(); got != want {
			t.Errorf("%d: %s, want %s", in, got, want)
		}
	}
}
