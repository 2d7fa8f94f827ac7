package bench

import (
	"fmt"
	"io"
	"slices"
	"time"

	"hecate/internal/bench/measure"
)

// conclude computes medians, hops and marks from the rounds.
func (r *StagesResult) conclude() {
	for _, d := range []*Decoding{&r.Alone, &r.OneStage, &r.TwoStages} {
		d.One.conclude()
		d.Many.conclude()
	}
	r.Hops.First = dearer(r.OneStage.One.Rounds, r.Alone.One.Rounds)
	r.Hops.Further = dearer(r.TwoStages.One.Rounds, r.OneStage.One.Rounds)
	r.Hops.Link = inSeconds(measure.Median(r.links))
	noise := measure.Louder(
		measure.NoiseOf("the engine alone", r.Alone.One.Rounds),
		measure.NoiseOf("the engine alone, several streams,", r.Alone.Many.Rounds))
	parallel := fmt.Sprintf("%d parallel streams / 1, ", r.Streams)
	marks := []measure.Mark{
		ratio("decode, one stage / engine alone", r.OneStage.One.Rounds, r.Alone.One.Rounds, new(0.95), new(0.97)),
		ratio("decode, two stages / engine alone", r.TwoStages.One.Rounds, r.Alone.One.Rounds, new(0.85), new(0.92)),
		r.OneStage.speedup(parallel+"one stage", new(1.8)),
	}
	r.Judgement = measure.Judged(marks, &noise)
}

func (s *Series) conclude() {
	s.Rate, s.CPU = measure.Median(s.Rounds), inSeconds(measure.Median(s.cpuRounds))
}

// speedup is what parallel streams gain over one of the same round.
func (d Decoding) speedup(name string, floor *float64) measure.Mark {
	var alone []float64
	for part := range slices.Chunk(d.One.Rounds, singles) {
		alone = append(alone, measure.Median(part))
	}
	return ratio(name, d.Many.Rounds, alone, floor, nil)
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
	fmt.Fprintf(w, "%s\n%s, answers of %d tokens, %d rounds in %s\n\n", r.Machine, r.Model, r.Tokens, len(r.Alone.Many.Rounds), r.Took.Round(time.Second))
	t := measure.NewTable("tokens per second", "1 stream", fmt.Sprintf("%d streams", r.Streams), "many / 1", "CPU per token", "of many")
	for _, c := range []struct {
		name string
		d    Decoding
	}{{"engine alone", r.Alone}, {"through one stage", r.OneStage}, {"through two stages", r.TwoStages}} {
		t.Row(c.name, fmt.Sprintf("%.1f", c.d.One.Rate), fmt.Sprintf("%.1f", c.d.Many.Rate),
			fmt.Sprintf("%.2f", c.d.speedup("", nil).Value), short(c.d.One.CPU), short(c.d.Many.CPU))
	}
	if err := t.Print(w); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nper token: the first hop with gateway and HTTP %d µs, a further hop %d µs; the gateway's own average of one way there and back %d µs\n\n",
		r.Hops.First.Microseconds(), r.Hops.Further.Microseconds(), r.Hops.Link.Microseconds())
	return r.Judgement.Print(w)
}
