package cli

import (
	"context"

	"hecate/internal/bench"
)

type benchEngineCmd struct {
	Models  []string `name:"model" help:"demo, 135m (random weights, written by the benchmark), or a GGUF file; may be repeated." default:"demo,135m" placeholder:"NAME"`
	Seconds float64  `help:"How long to measure; three rounds for each model are made in any case." default:"60"`
	Best    bool     `help:"Let both use all that the processor has, instead of AVX2 only."`
	JSON    bool     `help:"Print the result as JSON."`
}

// Run measures the engine beside llama.cpp.
func (b *benchEngineCmd) Run(ctx context.Context, c console) error {
	if err := inRange("--seconds", b.Seconds, 0, maxBenchSeconds); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	r, err := bench.Engine(ctx, bench.EngineOptions{Models: b.Models, Time: benchTime(b.Seconds), Best: b.Best, Progress: p.say})
	if err != nil {
		return err
	}
	p.clear()
	return showBench(c.out, b.JSON, r)
}
