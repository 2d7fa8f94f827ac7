package cli

import (
	"context"
	"io"

	"hecate/internal/bench"
)

type benchFailoverCmd struct {
	Runs    int     `help:"Answers for each kind of failure." default:"20"`
	Model   string  `help:"demo, 135m (random weights, written by the benchmark), or a GGUF file." default:"demo" placeholder:"NAME"`
	Context int     `help:"Tokens of the prompt; 0: a short question." default:"0"`
	Tokens  int     `help:"Tokens of each answer." default:"64"`
	Seed    uint64  `help:"Of the choice of stages and tokens." default:"1"`
	Bare    bool    `help:"Keep no shadows of stages, so that rescues replay the whole context." name:"without-shadows"`
	Full    bool    `help:"All of docs/benchmarks.md: the demo model, then 135m at 100, 1,000 and 8,000 tokens, each with runs that fit it; an hour or two."`
	Share   float64 `help:"With --full: the share of its runs to make." default:"1"`
	JSON    bool    `help:"Print the result as JSON."`
}

// Run makes nodes fail and measures what a client sees of it.
func (b *benchFailoverCmd) Run(ctx context.Context, c console) error {
	for _, f := range []struct {
		flag     string
		value, a int
		b        int
	}{{"--runs", b.Runs, 1, 10_000}, {"--context", b.Context, 0, 1 << 20}, {"--tokens", b.Tokens, 8, 1024}} {
		if err := inRange(f.flag, float64(f.value), float64(f.a), float64(f.b)); err != nil {
			return err
		}
	}
	if err := inRange("--share", b.Share, 0.01, 10); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	if b.Full {
		r, err := bench.FailoverSuite(ctx, bench.SuiteOptions{Share: b.Share, Tokens: b.Tokens, Seed: b.Seed, Progress: p.say})
		p.clear()
		return showPartly(c.out, b.JSON, r, err, len(r.Results) > 0)
	}
	r, err := bench.Failover(ctx, bench.FailoverOptions{
		Runs: b.Runs, Model: b.Model, Context: b.Context, Tokens: b.Tokens, Seed: b.Seed, Bare: b.Bare, Progress: p.say,
	})
	p.clear()
	return showPartly(c.out, b.JSON, r, err, r != nil)
}

// showPartly prints a result also when the run broke off: what took an hour is
// not thrown away.
func showPartly(w io.Writer, asJSON bool, r benchResult, broke error, something bool) error {
	if !something {
		return broke
	}
	if err := showBench(w, asJSON, r); broke == nil {
		return err
	}
	return broke
}
