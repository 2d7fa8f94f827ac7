package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"hecate/internal/bench"
	"hecate/internal/bench/poolbench"
)

// benchCmd measures; each part prints ratios against named alternatives measured
// in the same run, and fails when one is below its floor.
type benchCmd struct {
	Stages   benchStagesCmd   `cmd:"" help:"Decode with the engine alone, through one stage and through two; one stream and eight."`
	Failover benchFailoverCmd `cmd:"" help:"Kill and silence nodes in the middle of answers; what a client sees."`
	Gateway  benchGatewayCmd  `cmd:"" help:"What passing a request on costs, beside a bare ReverseProxy, nginx and HAProxy."`
	Cluster  benchClusterCmd  `cmd:"" help:"Machines that join, leave and die: how long it takes, and what is lost."`
	Pool     benchPoolCmd     `cmd:"" help:"The data plane beside bare TLS, yamux and gRPC."`
	Engine   benchEngineCmd   `cmd:"" help:"The engine beside llama.cpp: prefill and decode, one sequence and eight."`

	GatewayPart benchGatewayPartCmd `cmd:"" hidden:"" help:"A process of the benchmark of the gateway."`
}

// maxBenchSeconds bounds a run that was mistyped.
const maxBenchSeconds = 3600

type benchStagesCmd struct {
	Model   string  `help:"GGUF file; a random-weight model of 135 million parameters when absent." type:"path" placeholder:"FILE"`
	Seconds float64 `help:"How long to measure; three rounds are made in any case." default:"60"`
	Streams int     `help:"Parallel streams." default:"8"`
	Tokens  int     `help:"Tokens of each answer." default:"48"`
	JSON    bool    `help:"Print the result as JSON."`
}

// Run measures what stages cost.
func (b *benchStagesCmd) Run(ctx context.Context, c console) error {
	if err := inRange("--seconds", b.Seconds, 0, maxBenchSeconds); err != nil {
		return err
	}
	if err := inRange("--streams", float64(b.Streams), 1, 64); err != nil {
		return err
	}
	if err := inRange("--tokens", float64(b.Tokens), 8, 1024); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	r, err := bench.Stages(ctx, bench.StagesOptions{
		Model: b.Model, Time: benchTime(b.Seconds), Streams: b.Streams, Tokens: b.Tokens, Progress: p.say,
	})
	if err != nil {
		return err
	}
	p.clear()
	return showBench(c.out, b.JSON, r)
}

type benchPoolCmd struct {
	Seconds float64 `help:"Roughly how long to measure." default:"60"`
	JSON    bool    `help:"Print the result as JSON."`
}

// poolShare is how long one measurement of one contestant is, for every second
// of the whole run.
const poolShare = 1.0 / 150

// Run measures the data plane.
func (b *benchPoolCmd) Run(ctx context.Context, c console) error {
	if err := inRange("--seconds", b.Seconds, 5, maxBenchSeconds); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	r, err := poolbench.Run(ctx, poolbench.Options{Part: benchTime(b.Seconds * poolShare), Progress: p.say})
	if err != nil {
		return err
	}
	p.clear()
	return showBench(c.out, b.JSON, r)
}

// benchResult is what every benchmark gives.
type benchResult interface {
	Print(io.Writer) error
	Held() bool
}

// showBench prints a result; one that does not hold fails.
func showBench(w io.Writer, asJSON bool, r benchResult) error {
	show := func() error { return r.Print(w) }
	if asJSON {
		show = func() error { return printJSON(w, r) }
	}
	if err := show(); err != nil {
		return err
	}
	if !r.Held() {
		return errQuiet
	}
	return nil
}

func benchTime(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func inRange(flag string, v, least, most float64) error {
	if !(v >= least && v <= most) {
		return usage("%s is %g, want %g to %g", flag, v, least, most)
	}
	return nil
}

// progress is one line on a terminal that says what goes on, and nothing elsewhere.
type progress struct {
	w     io.Writer
	wrote int
}

func newProgress(w io.Writer) *progress {
	if !isTerminal(w) {
		w = nil
	}
	return &progress{w: w}
}

func (p *progress) say(what string) {
	if p.w == nil {
		return
	}
	pad := max(0, p.wrote-len(what))
	fmt.Fprintf(p.w, "\r%s%s", what, strings.Repeat(" ", pad))
	p.wrote = len(what)
}

func (p *progress) clear() {
	if p.w != nil && p.wrote > 0 {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", p.wrote))
		p.wrote = 0
	}
}
