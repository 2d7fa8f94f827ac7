package bench

import (
	"fmt"
	"io"
	"time"

	"hecate/internal/bench/measure"
)

// conclude computes medians, ratios and marks from the rounds.
func (r *EngineResult) conclude() {
	var marks []measure.Mark
	var noise *measure.Noise
	for _, m := range r.Models {
		for _, t := range m.Tests {
			t.conclude()
			if !m.judged {
				continue
			}
			marks = append(marks, measure.Mark{Name: fmt.Sprintf("%s, %s, ours / llama.cpp", m.Name, t.what()), Value: t.Ratio, Floor: new(0.75), Aim: new(0.9)})
			n := measure.NoiseOf("llama.cpp, "+t.what()+",", t.Theirs.Rounds)
			if noise != nil {
				n = measure.Louder(*noise, n)
			}
			noise = &n
		}
	}
	r.Judgement = measure.Judged(marks, noise)
}

func (t *EngineTest) conclude() {
	t.Ours.Rate, t.Theirs.Rate = measure.Median(t.Ours.Rounds), measure.Median(t.Theirs.Rounds)
	t.Ratio = measure.Median(measure.Quotients(t.Ours.Rounds, t.Theirs.Rounds))
	t.CPURatio = measure.Median(measure.Quotients(t.Ours.CPU, t.Theirs.CPU))
}

func (t *EngineTest) what() string {
	if t.Sequences == 1 {
		return t.Name + " of 1 sequence"
	}
	return fmt.Sprintf("%s of %d sequences", t.Name, t.Sequences)
}

// gain is what decoding several sequences gains over one, ours and theirs.
func (m *EngineModel) gain() (ours, theirs float64) {
	one, many := m.Tests[1], m.Tests[len(m.Tests)-1]
	return measure.Median(measure.Quotients(many.Ours.Rounds, one.Ours.Rounds)), measure.Median(measure.Quotients(many.Theirs.Rounds, one.Theirs.Rounds))
}

// Print writes the result for people.
func (r *EngineResult) Print(w io.Writer) error {
	fmt.Fprintf(w, "%s, products with %s\nbeside %s; one thread each, %s in all\n\n", r.Machine, r.Instructions, r.Peer, r.Took.Round(time.Second))
	t := measure.NewTable("tokens per second", "ours", "llama.cpp", "ratio", "of CPU time")
	for _, m := range r.Models {
		for _, x := range m.Tests {
			t.Row(m.Name+", "+x.what(), fmt.Sprintf("%.1f", x.Ours.Rate), fmt.Sprintf("%.1f", x.Theirs.Rate), fmt.Sprintf("%.2f", x.Ratio), fmt.Sprintf("%.2f", x.CPURatio))
		}
	}
	if err := t.Print(w); err != nil {
		return err
	}
	for _, m := range r.Models {
		ours, theirs := m.gain()
		fmt.Fprintf(w, "\n%s, %d rounds: %d sequences against 1 gain %.2f here, %.2f there",
			m.Name, len(m.Tests[0].Ours.Rounds), m.Tests[len(m.Tests)-1].Sequences, ours, theirs)
	}
	fmt.Fprint(w, "\n\n")
	return r.Judgement.Print(w)
}
