package poolbench

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "data plane, %s %s, %d cores, took %v\n\n", r.Go, r.Platform, r.Cores, r.Took.Round(time.Second/10))
	r.printContestants(&b)
	r.printOwn(&b)
	r.printRatios(&b)
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "FAILED  %s\n", strings.ReplaceAll(f, "\n", "; "))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// row is one line of the table; cell is empty where a contestant has no number.
type row struct {
	name string
	cell func(*Contestant) string
}

var rows = []row{
	{"throughput, 32 KiB messages, MB/s", func(c *Contestant) string { return number(c.Throughput/1e6, "%.0f") }},
	{"  CPU per message", func(c *Contestant) string { return duration(c.CPUPerLarge) }},
	{"  allocations per message", func(c *Contestant) string { return known(c.Throughput, c.AllocsLarge) }},
	{"64 B messages per second", func(c *Contestant) string { return number(c.SmallRate, "%.0f") }},
	{"  CPU per message", func(c *Contestant) string { return duration(c.CPUPerSmall) }},
	{"  allocations per message", func(c *Contestant) string { return known(c.SmallRate, c.AllocsSmall) }},
	{"round trip, 64 B, p50", func(c *Contestant) string { return duration(c.P50) }},
	{"  p99", func(c *Contestant) string { return duration(c.P99) }},
	{"neighbours' p99, nobody stalls", func(c *Contestant) string { return duration(c.StallBefore) }},
	{"  one session never reads", func(c *Contestant) string { return duration(c.StallAfter) }},
	{"bytes per idle session", func(c *Contestant) string { return number(c.IdleBytes, "%.0f") }},
}

func (r *Result) printContestants(b *strings.Builder) {
	if len(r.Contestants) == 0 {
		return
	}
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "\t"
	for i := range r.Contestants {
		head += r.Contestants[i].Name + "\t"
	}
	fmt.Fprintln(t, head)
	for _, row := range rows {
		line, any := fmt.Sprintf("%-36s\t", row.name), false
		for i := range r.Contestants {
			cell := row.cell(&r.Contestants[i])
			any = any || cell != ""
			line += cell + "\t"
		}
		if any {
			fmt.Fprintln(t, line)
		}
	}
	_ = t.Flush() // into memory
	b.WriteString("\n")
}

func (r *Result) printOwn(b *strings.Builder) {
	if x := r.Restore; x != nil {
		fmt.Fprintf(b, "floor of %d restored after one loss in %v (worst %v), after losing all in %v (worst %v), %d times; sessions not told: %d\n",
			x.Floor, short(x.OneP50), short(x.OneWorst), short(x.AllP50), short(x.AllWorst), x.Losses, x.Untold)
	}
	if x := r.Silence; x != nil {
		fmt.Fprintf(b, "silent peer: the first of %d connections given up after %v, the last after %v\n",
			x.Writers, short(x.First), short(x.Last))
	}
	if x := r.Swap; x != nil {
		fmt.Fprintf(b, "generation swap under load in %v: %d of %d sessions lost, round trip p99 %v before, %v during\n",
			short(x.Took), x.Lost, x.Sessions, short(x.P99Before), short(x.P99During))
	}
}

func (r *Result) printRatios(b *strings.Builder) {
	if len(r.Ratios) == 0 {
		return
	}
	b.WriteString("\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, x := range r.Ratios {
		fmt.Fprintf(t, "%s\t%.2f\tfloor %.2g, aim %.2g\t%s\n", x.Name, x.Value, x.Floor, x.Aim, x.Verdict())
	}
	_ = t.Flush()
	if r.CPULarge > 0 {
		fmt.Fprintf(b, "processor time per 32 KiB message, bare TLS / pool: %.2f\n", r.CPULarge)
	}
	note := "quiet enough"
	if r.Noise > noisy {
		note = "the machine was busy: repeat before believing a close call"
	}
	fmt.Fprintf(b, "noise of the baseline %.2f: %s\n", r.Noise, note)
}

// noisy is the baseline's spread above which ratios are doubtful.
const noisy = 0.25

func number(v float64, format string) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprintf(format, v)
}

// known prints v, which may well be 0, if its measurement was made.
func known(measured, v float64) string {
	if measured == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v)
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return short(d).String()
}

// short rounds to three digits.
func short(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= unit {
			return d.Round(unit / 100)
		}
	}
	return d
}
