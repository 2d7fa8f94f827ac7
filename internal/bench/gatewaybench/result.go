package gatewaybench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"hecate/internal/bench/measure"
)

// bare is who the others are compared with.
const bare = "ReverseProxy"

const mebibyte = 1 << 20

func (r *Result) row(name string) *Row {
	i := slices.IndexFunc(r.Rows, func(row *Row) bool { return row.Name == name })
	return r.Rows[i]
}

// conclude computes medians and marks from the rounds.
func (r *Result) conclude() {
	for _, row := range r.Rows {
		for _, k := range kinds() {
			row.Wall[k.name] = time.Duration(measure.Median(row.wall[k.name]))
			if len(row.cpu[k.name]) > 0 && row.Name != "direct" {
				row.CPU[k.name] = time.Duration(measure.Median(row.cpu[k.name]))
			}
		}
		row.P50, row.P99 = measure.Percentile(row.delays, 0.5), measure.Percentile(row.delays, 0.99)
	}
	ours, theirs, direct := r.row("hecate"), r.row(bare), r.row("direct")
	var marks []measure.Mark
	var noise *measure.Noise
	for _, k := range kinds() {
		marks = append(marks, measure.Mark{
			Name:  "CPU per request, " + k.name + ", hecate / bare ReverseProxy",
			Value: measure.Median(measure.Quotients(ours.cpu[k.name], theirs.cpu[k.name])), Floor: new(1.5), Aim: new(1.0), Lower: true,
		})
		n := measure.NoiseOf("direct requests, "+k.name+",", direct.wall[k.name])
		if noise == nil || n.Quotient > noise.Quotient {
			noise = &n
		}
	}
	marks = append(marks,
		measure.Mark{Name: "delay added to an event, p99", Value: float64(ours.P99-direct.P99) / float64(time.Millisecond), Unit: "ms", Aim: new(1.0), Lower: true},
		measure.Mark{Name: "memory after all that, no model", Value: float64(ours.After) / mebibyte, Unit: "MiB", Floor: new(64.0), Lower: true},
	)
	r.Judgement = measure.Judged(marks, noise)
}

// Print writes the result for people.
func (r *Result) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%d rounds of %d small requests (half as many of the others), %d at a time, in %s\n\n", r.Machine, r.Rounds, r.Requests, parallel, r.Took.Round(time.Second))
	head := []string{"CPU per request"}
	for _, k := range kinds() {
		head = append(head, k.name)
	}
	t := measure.NewTable(append(head, "event p50", "event p99", "MiB before", "after")...)
	for _, row := range r.Rows {
		cells := []string{row.Name}
		for _, k := range kinds() {
			cells = append(cells, dash(row.CPU[k.name]))
		}
		cells = append(cells, dash(row.P50), dash(row.P99))
		if row.Name == "direct" {
			cells = append(cells, "-", "-")
		} else {
			cells = append(cells, fmt.Sprintf("%.1f", float64(row.Before)/mebibyte), fmt.Sprintf("%.1f", float64(row.After)/mebibyte))
		}
		t.Row(cells...)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.LeftOut)) {
		fmt.Fprintf(w, "%s is left out: %s\n", name, r.LeftOut[name])
	}
	fmt.Fprintln(w)
	return r.Judgement.Print(w)
}

func dash(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return measure.Short(d).String()
}
