package sim

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"hecate/swarm"
)

func TestBadScenarios(t *testing.T) {
	good := func() Scenario { return Scenario{Plan: whole(4, 2), Arrivals: []Arrival{at(0, 1, 1), at(5, 1, 1)}} }
	for name, c := range map[string]struct {
		spoil func(*Scenario)
		want  string
	}{
		"no plan":        {func(s *Scenario) { s.Plan = nil }, "no copy"},
		"empty plan":     {func(s *Scenario) { s.Plan = &swarm.Plan{} }, "no copy"},
		"no requests":    {func(s *Scenario) { s.Arrivals = nil }, "no requests"},
		"out of order":   {func(s *Scenario) { s.Arrivals[0].At = time.Second }, "request 1"},
		"no answer":      {func(s *Scenario) { s.Arrivals[1].Output = 0 }, "request 1"},
		"unknown model":  {func(s *Scenario) { s.Arrivals[1].Model = 1 }, "model number 1"},
		"negative delay": {func(s *Scenario) { s.Telemetry.Delay = -1 }, "telemetry"},
		"gateways":       {func(s *Scenario) { s.Gateways = -1 }, "gateways"},
		"slots":          {func(s *Scenario) { s.Hardware.Slots = -1 }, "slots"},
		"jitter":         {func(s *Scenario) { s.Hardware.Jitter = 1 }, "jitter"},
		"batch cost":     {func(s *Scenario) { s.Hardware.BatchCost = math.NaN() }, "batch cost"},
		"layer time":     {func(s *Scenario) { s.Hardware.LayerTime = -1 }, "time per layer"},
		"slow prompts":   {func(s *Scenario) { s.Hardware.PromptSpeedup = 0.5 }, "prompts"},
		"stranger dies":  {func(s *Scenario) { s.Outages = []Outage{{Node: "ghost"}} }, "ghost"},
		"too brief":      {func(s *Scenario) { s.Outages = []Outage{{Node: "n0", For: time.Millisecond}} }, "n0"},
		"dies twice": {func(s *Scenario) {
			s.Outages = []Outage{{Node: "n0", At: time.Second}, {Node: "n0", At: 2 * time.Second}}
		}, "another one"},
		"policy": {func(s *Scenario) { s.Policy.Margin = 2 }, "margin"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			c.spoil(&s)
			_, err := Run(context.Background(), s, Policies()[0])
			if !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an invalid input that names %q", err, c.want)
			}
		})
	}
	if _, err := Run(context.Background(), good(), Policies()[0]); err != nil {
		t.Errorf("the good one: %v", err)
	}
}

func TestArrivals(t *testing.T) {
	steady := Poisson(20_000, 50, Lengths{Prompt: 100, Output: 40}, []int32{3, 5}, 1)
	near(t, "time of 20,000 requests at 50 per second", steady[len(steady)-1].At.Seconds(), 400, 0.03)
	var prompt, output float64
	models := map[int32]int{}
	for i, a := range steady {
		if i > 0 && a.At < steady[i-1].At || a.Prompt < 1 || a.Output < 1 || a.Prompt > 800 || a.Output > 320 {
			t.Fatalf("request %d: %+v", i, a)
		}
		prompt, output = prompt+float64(a.Prompt), output+float64(a.Output)
		models[a.Model]++
	}
	near(t, "mean prompt", prompt/20_000, 100, 0.08) // clipping takes a little
	near(t, "mean answer", output/20_000, 40, 0.03)
	if len(models) != 2 || models[3] < 9500 || models[5] < 9500 {
		t.Errorf("models drawn: %v", models)
	}
	burst := Burst(1000, 10*time.Second, time.Second, Lengths{}, []int32{0}, 1)
	if first, last := burst[0].At, burst[999].At; first < 10*time.Second || last > 11*time.Second || last-first < 900*time.Millisecond {
		t.Errorf("the burst lasts from %v to %v", first, last)
	}
	both := Merge(steady, burst)
	for i := range both[1:] {
		if both[i+1].At < both[i].At {
			t.Fatal("merged out of order")
		}
	}
	if len(both) != 21_000 {
		t.Errorf("%d merged", len(both))
	}
}

func TestReadTrace(t *testing.T) {
	models := []swarm.ModelSpec{{ID: "base"}, {ID: "coder"}}
	got, err := ReadTrace(strings.NewReader("# a day\n2.5 10 20 coder\n\n0.25 7 1 # first\n"), models)
	want := []Arrival{{250 * time.Millisecond, 7, 1, 0}, {2500 * time.Millisecond, 10, 20, 1}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("got %v, %v", got, err)
	}
	for text, fault := range map[string]string{
		"":               "no requests",
		"1 2":            "line 1",
		"1 2 3\n1 2 3 4": `line 2: unknown model "4"`,
		"x 2 3":          `time "x"`,
		"NaN 2 3":        `time "NaN"`,
		"-1 2 3":         `time "-1"`,
		"1 -2 3":         `prompt "-2"`,
		"1 2 0":          `answer "0"`,
		"1 2 3 base 5":   "line 1",
	} {
		if _, err := ReadTrace(strings.NewReader(text), models); !errors.Is(err, swarm.ErrInvalid) || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: got %v, want an invalid input that says %q", text, err, fault)
		}
	}
}

func TestGenerate(t *testing.T) {
	a, err := Generate(Size{Nodes: 50, Models: 3}, 9)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Validate(); err != nil {
		t.Error(err)
	}
	b, _ := Generate(Size{Nodes: 50, Models: 3}, 9)
	for i := range a.Nodes {
		if a.Nodes[i].ID != b.Nodes[i].ID {
			t.Fatal("the same seed gives another swarm")
		}
	}
	plan := generated(t, Size{Nodes: 50, Models: 3})
	if err := plan.Sound(); err != nil {
		t.Error(err)
	}
	for _, m := range a.Models {
		if len(plan.PipelinesOf(m.ID)) < 5 {
			t.Errorf("%d copies of %s on 50 nodes", len(plan.PipelinesOf(m.ID)), m.ID)
		}
	}
	if _, err := Generate(Size{}, 1); !errors.Is(err, swarm.ErrInvalid) {
		t.Errorf("no nodes: %v", err)
	}
}

func TestQuantiles(t *testing.T) {
	var times []int64
	for i := range int64(200) {
		times = append(times, (200-i)*1e6)
	}
	if got, want := quantiles(times), (Quantiles{Mean: 100.5, P50: 100, P90: 180, P99: 198, Max: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := quantiles([]int64{7e6}); got != (Quantiles{7, 7, 7, 7, 7}) {
		t.Errorf("of one: %+v", got)
	}
	if got := quantiles(nil); got != (Quantiles{}) {
		t.Errorf("of none: %+v", got)
	}
}

// The chart is a well-formed document that shows every number, and names that
// look like markup do no harm.
func TestChart(t *testing.T) {
	c := Comparison("a <b> & c", "note", []Result{
		{Policy: "adaptive", Load: Spread{MaxOverMean: 1.25}, Latency: Quantiles{P99: 2500}},
		{Policy: "<x>", Load: Spread{MaxOverMean: 8}},
	})
	var b strings.Builder
	if err := c.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	var words []string
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := token.(xml.CharData); ok {
			words = append(words, strings.TrimSpace(string(s)))
		}
	}
	all := strings.Join(words, "|")
	for _, want := range []string{"a <b> & c", "note", "adaptive", "<x>", "1.25", "8.00", "2.50 s", "0.00 s"} {
		if !strings.Contains(all, want) {
			t.Errorf("the chart does not show %q: %s", want, all)
		}
	}
}
