package poolbench

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"
)

var (
	partFlag  = flag.Duration("part", 0, "measure in earnest: the length of each part, such as 400ms")
	partsFlag = flag.String("parts", "", "comma-separated parts, all if empty")
)

// TestMeasure prints a table when asked for one.
func TestMeasure(t *testing.T) {
	if *partFlag == 0 {
		t.Skip("no -part given")
	}
	o := Options{Part: *partFlag}
	if *partsFlag != "" {
		o.Only = strings.Split(*partsFlag, ",")
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Print(os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// quick is long enough to see that everything works, and says nothing about speed.
func quick(only ...string) Options {
	return Options{Part: 20 * time.Millisecond, Rounds: 1, Sessions: 4, IdleSessions: 50, Losses: 1, Only: only}
}

func TestRun(t *testing.T) {
	var said []string
	o := quick()
	o.Progress = func(s string) { said = append(said, s) }
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Faults {
		t.Error(f)
	}
	for _, c := range r.Contestants {
		if c.Throughput <= 0 || c.SmallRate <= 0 || c.P50 <= 0 || c.P99 < c.P50 || c.StallEffect <= 0 {
			t.Errorf("%s: not everything was measured: %+v", c.Name, c)
		}
	}
	if len(r.Ratios) != 4 {
		t.Errorf("%d ratios: %+v", len(r.Ratios), r.Ratios)
	}
	if r.Restore == nil || r.Silence == nil || r.Swap == nil {
		t.Errorf("restore %v, silence %v, swap %v", r.Restore, r.Silence, r.Swap)
	}
	if len(said) < 20 {
		t.Errorf("progress: %q", said)
	}
	var out strings.Builder
	if err := r.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"yamux", "gRPC", "bytes per idle session", "generation swap", "floor of 3 restored", "noise"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
	t.Log("\n" + out.String())
}

func TestOnlySomeParts(t *testing.T) {
	r, err := Run(context.Background(), quick(PartRoundTrip))
	if err != nil {
		t.Fatal(err)
	}
	if p := r.contestant(namePool); p == nil || p.P50 == 0 || p.Throughput != 0 || r.Swap != nil || len(r.Faults) != 0 {
		t.Errorf("%+v, %+v", p, r)
	}
}

func TestBadOptions(t *testing.T) {
	for _, o := range []Options{{Only: []string{"everything"}}, {Part: -1}, {Rounds: -1}, {Sessions: 1}, {IdleSessions: -1}} {
		if _, err := Run(context.Background(), o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	o := quick()
	o.Progress = func(string) { cancel() }
	if _, err := Run(ctx, o); err == nil {
		t.Error("a cancelled run gives a result")
	}
}

func TestBaselines(t *testing.T) {
	id, err := newIdentities()
	if err != nil {
		t.Fatal(err)
	}
	for name, start := range map[string]func(identities) (transport, error){
		nameTLS: newBareTLS, nameYamux: newYamux, nameGRPC: newGRPC,
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := start(id)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := tr.close(); err != nil {
					t.Error(err)
				}
			}()
			e := entry{name, tr, &Contestant{Name: name}}
			for _, p := range common {
				if err := p.measure(context.Background(), e, must(quick().filled())); err != nil {
					t.Errorf("%s: %v", p.name, err)
				}
			}
		})
	}
}

func must(o Options, err error) Options {
	if err != nil {
		panic(err)
	}
	return o
}

func TestStatistics(t *testing.T) {
	ms := func(v ...int) (out []time.Duration) {
		for _, x := range v {
			out = append(out, time.Duration(x)*time.Millisecond)
		}
		return out
	}
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i
	}
	for _, c := range []struct {
		v    []time.Duration
		q    float64
		want time.Duration
	}{
		{ms(), 0.5, 0}, {ms(7), 0.99, 7 * time.Millisecond}, {ms(1, 2, 3, 4), 0.5, 2 * time.Millisecond},
		{ms(hundred...), 0.99, 99 * time.Millisecond}, {ms(hundred...), 1, 100 * time.Millisecond},
	} {
		if got := percentile(c.v, c.q); got != c.want {
			t.Errorf("percentile %v of %d values: %v, want %v", c.q, len(c.v), got, c.want)
		}
	}
	for _, c := range []struct {
		v              []float64
		median, spread float64
	}{{nil, 0, 0}, {[]float64{3}, 3, 0}, {[]float64{4, 2}, 3, 2. / 3}, {[]float64{5, 1, 2}, 2, 2}} {
		if median(c.v) != c.median || spread(c.v) != c.spread {
			t.Errorf("%v: median %v, spread %v", c.v, median(c.v), spread(c.v))
		}
	}
	for _, c := range []struct {
		r    Ratio
		want string
	}{
		{Ratio{Value: 0.95, Floor: 0.8, Aim: 0.9}, "aim"}, {Ratio{Value: 0.8, Floor: 0.8, Aim: 0.9}, "floor"},
		{Ratio{Value: 0.79, Floor: 0.8, Aim: 0.9}, "below floor"}, {Ratio{Value: 1.3, Floor: 1.5, Aim: 1.2, Lower: true}, "floor"},
		{Ratio{Value: 1.6, Floor: 1.5, Aim: 1.2, Lower: true}, "below floor"},
	} {
		if got := c.r.Verdict(); got != c.want {
			t.Errorf("%+v: %s", c.r, got)
		}
		if held := (&Result{Ratios: []Ratio{c.r}}).Held(); held != (c.want != "below floor") {
			t.Errorf("%+v: held %v", c.r, held)
		}
	}
}
