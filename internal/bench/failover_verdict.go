package bench

import (
	"fmt"
	"io"
	"time"

	"hecate/internal/bench/measure"
)

// shortPrompt is up to how many prompt tokens the promise about gaps holds:
// rescues compute the prompt again, so the gap grows with it.
const shortPrompt = 128

// conclude holds the outcomes against what is promised.
func (r *FailoverResult) conclude() {
	var marks []measure.Mark
	if r.Context <= shortPrompt && r.Kill.Answers > 0 {
		marks = append(marks,
			seconds("gap when a node is killed, p99", r.Kill.Gaps.P99, new(1.0), nil),
			seconds("gap when a node is killed, median", r.Kill.Gaps.P50, nil, new(0.3)))
	}
	if r.Context <= shortPrompt && r.Silence.Answers > 0 {
		marks = append(marks, seconds("gap when a node goes silent, worst", r.Silence.Gaps.Worst, new(2.5), new(1.5)))
	}
	for _, o := range []struct {
		name string
		Outcome
	}{{"killed", r.Kill}, {"silent", r.Silence}} {
		if o.Answers == 0 { // the run broke off before
			continue
		}
		marks = append(marks,
			measure.Mark{Name: "answers lost, node " + o.name, Value: float64(o.Lost), Floor: new(0.0), Lower: true},
			measure.Mark{Name: "identical text, node " + o.name, Value: 100 * float64(o.Identical) / float64(max(1, o.Answers)), Unit: "%", Floor: new(100.0)})
	}
	r.Judgement = measure.Judged(marks, nil)
}

func seconds(name string, d time.Duration, floor, aim *float64) measure.Mark {
	return measure.Mark{Name: name, Value: d.Seconds(), Unit: "s", Floor: floor, Aim: aim, Lower: true}
}

// Print writes the result for people.
func (r *FailoverResult) Print(w io.Writer) error {
	prompt := fmt.Sprintf("prompts of %d tokens", r.Context)
	if r.Context == 0 {
		prompt = "short questions"
	}
	fmt.Fprintf(w, "%s\n%s, %s, answers of %d tokens; %d nodes, %d copies; seed %d; took %s\n\n",
		r.Machine, r.Model, prompt, r.Tokens, failoverNodes, failoverCopies, r.Seed, r.Took.Round(time.Second))
	t := measure.NewTable("one node of the route is", "answers", "lost", "identical", "gap p50", "p99", "worst", "tokens/s before", "after", "rescues")
	for _, o := range []struct {
		name string
		Outcome
	}{{"killed (-9)", r.Kill}, {"silent (stopped, or cut off)", r.Silence}} {
		t.Row(o.name, fmt.Sprint(o.Answers), fmt.Sprint(o.Lost), fmt.Sprint(o.Identical),
			short(o.Gaps.P50), short(o.Gaps.P99), short(o.Gaps.Worst),
			fmt.Sprintf("%.0f", o.Before), fmt.Sprintf("%.0f", o.After), o.kinds())
	}
	u := r.Undisturbed
	t.Row("left alone", fmt.Sprint(u.Counted), "0", fmt.Sprint(u.Counted), short(u.P50), short(u.P99), short(u.Worst), "", "", "")
	if err := t.Print(w); err != nil {
		return err
	}
	for _, o := range []Outcome{r.Kill, r.Silence} {
		if o.Missed > 0 {
			fmt.Fprintf(w, "%d failures did not strike and are not counted\n", o.Missed)
		}
		for _, s := range o.Stories {
			fmt.Fprintln(w, s)
		}
	}
	fmt.Fprintln(w)
	if err := r.Judgement.Print(w); err != nil {
		return err
	}
	if len(r.Price.Sittings) == 0 {
		return nil // it was not asked for
	}
	fmt.Fprintf(w, "\nprice of being ready: %.1f tokens/s with boundary states kept, %.1f without\n", r.Price.With, r.Price.Without)
	return r.Price.Judgement.Print(w)
}

func short(d time.Duration) string { return measure.Short(d).String() }
