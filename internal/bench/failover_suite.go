package bench

import (
	"context"
	"fmt"
	"io"
	"slices"

	"hecate/internal/bench/measure"
)

// SuiteOptions say how long the whole comparison may take; zero values mean the
// defaults.
type SuiteOptions struct {
	Share    float64      // of the default numbers of runs; default 1
	Tokens   int          // of each answer; default 64
	Seed     uint64       // of the choice of stages and tokens
	Progress func(string) // told what goes on; nil: nobody is
}

// scenes of the suite: prompts get long, and with them all that a run takes, so
// there are fewer.
var suiteRuns = []struct {
	model   string
	context int
	runs    int
}{
	{ModelDemo, 0, 200},
	{Model135M, 100, 60},
	{Model135M, 1000, 20},
	{Model135M, 8000, 3},
}

// SuiteResult is the whole comparison.
type SuiteResult struct {
	Machine measure.Machine   `json:"machine"`
	Results []*FailoverResult `json:"results"`
}

// FailoverSuite measures failures with the demo model and with the larger one at
// contexts of 100, 1,000 and 8,000 tokens, one after the other. On an error it gives
// what was measured until then.
func FailoverSuite(ctx context.Context, o SuiteOptions) (*SuiteResult, error) {
	if o.Share <= 0 {
		o.Share = 1
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	s := &SuiteResult{}
	for _, p := range suiteRuns {
		name := fmt.Sprintf("%s, %s", p.model, promptOf(p.context))
		r, err := Failover(ctx, FailoverOptions{
			Runs: max(2, int(float64(p.runs)*o.Share)), Model: p.model, Context: p.context, Tokens: o.Tokens, Seed: o.Seed,
			NoPrice: p.context > shortPrompt, Progress: func(text string) { o.Progress(name + ": " + text) },
		})
		if r != nil {
			s.Machine = r.Machine
			s.Results = append(s.Results, r)
		}
		if err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

func promptOf(context int) string {
	if context == 0 {
		return "short questions"
	}
	return fmt.Sprintf("%d tokens", context)
}

// Held says that every part held.
func (s *SuiteResult) Held() bool {
	return !slices.ContainsFunc(s.Results, func(r *FailoverResult) bool { return !r.Held() })
}

// Print writes each part, and at the end all of them as a table of Markdown.
func (s *SuiteResult) Print(w io.Writer) error {
	for _, r := range s.Results {
		if err := r.Print(w); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "| model, prompt | failure | answers | lost | identical | gap p50 | p99 | worst | tokens/s before | after | rescues |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range s.Results {
		for _, o := range []struct {
			name string
			Outcome
		}{{"killed", r.Kill}, {"silent", r.Silence}} {
			fmt.Fprintf(w, "| %s, %s | %s | %d | %d | %d | %s | %s | %s | %.0f | %.0f | %s |\n",
				r.Model, promptOf(r.Context), o.name, o.Answers, o.Lost, o.Identical,
				short(o.Gaps.P50), short(o.Gaps.P99), short(o.Gaps.Worst), o.Before, o.After, o.kinds())
		}
	}
	return nil
}
