package bench

import (
	"fmt"
	"io"
	"time"

	"hecate/internal/bench/measure"
)

// conclude computes medians, hops and marks from the rounds.
func (r *StagesResult) conclude() {
	for _, d := range []*Decoding{&r.Alone, &r.OneStage, &r.TwoStages} {
		d.One, d.Many = measure.Median(d.Rounds), measure.Median(d.Parallel)
		d.CPUOne, d.CPUMany = inSeconds(measure.Median(d.cpuRounds[0])), inSeconds(measure.Median(d.cpuRounds[1]))
	}
	r.Hops.First = dearer(r.OneStage.Rounds, r.Alone.Rounds)
	r.Hops.Further = dearer(r.TwoStages.Rounds, r.OneStage.Rounds)
	noise := measure.NoiseOf("the engine alone", r.Alone.Rounds)
	parallel := fmt.Sprintf("%d parallel streams / 1, ", r.Streams)
	marks := []measure.Mark{
		ratio("decode, one stage / engine alone", r.OneStage.Rounds, r.Alone.Rounds, new(0.95), new(0.97)),
		ratio("decode, two stages / engine alone", r.TwoStages.Rounds, r.Alone.Rounds, new(0.85), new(0.92)),
		ratio(parallel+"one stage", r.OneStage.Parallel, r.OneStage.Rounds, new(1.8), nil),
		ratio(parallel+"two stages", r.TwoStages.Parallel, r.TwoStages.Rounds, new(1.8), nil),
	}
	r.Judgement = measure.Judged(marks, &noise)
}

// ratio is the median of the rounds' own ratios.
func ratio(name string, above, below []float64, floor, aim *float64) measure.Mark {
	return measure.Mark{Name: name, Value: measure.Median(measure.Quotients(above, below)), Floor: floor, Aim: aim}
}

// dearer is how much longer a token takes at one rate than at another, the
// median over the rounds.
func dearer(slow, fast []float64) time.Duration {
	var each []float64
	for i := range min(len(slow), len(fast)) {
		if slow[i] > 0 && fast[i] > 0 {
			each = append(each, 1/slow[i]-1/fast[i])
		}
	}
	return inSeconds(measure.Median(each))
}

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Print writes the result for people.
func (r *StagesResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s\n%s, answers of %d tokens, %d rounds in %s\n\n", r.Machine, r.Model, r.Tokens, len(r.Alone.Rounds), r.Took.Round(time.Second))
	t := measure.NewTable("tokens per second", "1 stream", fmt.Sprintf("%d streams", r.Streams), "many / 1", "CPU per token", "of many")
	for _, c := range []struct {
		name string
		d    Decoding
	}{{"engine alone", r.Alone}, {"through one stage", r.OneStage}, {"through two stages", r.TwoStages}} {
		t.Row(c.name, fmt.Sprintf("%.1f", c.d.One), fmt.Sprintf("%.1f", c.d.Many),
			fmt.Sprintf("%.2f", measure.Median(measure.Quotients(c.d.Parallel, c.d.Rounds))), short(c.d.CPUOne), short(c.d.CPUMany))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nper token: the first hop with gateway and HTTP %d µs, a further hop %d µs; the gateway's own average of one way there and back %d µs\n\n",
		r.Hops.First.Microseconds(), r.Hops.Further.Microseconds(), r.Hops.Link.Microseconds())
	return r.Judgement.Print(w)
}
