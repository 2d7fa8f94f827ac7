package cli

import (
	"context"

	"hecate/internal/bench/gatewaybench"
)

type benchGatewayCmd struct {
	Rounds   int  `help:"Rounds in which each takes its turn." default:"7"`
	Requests int  `help:"Small requests per round." default:"2000"`
	JSON     bool `help:"Print the result as JSON."`
}

// Run measures what passing a request on costs.
func (b *benchGatewayCmd) Run(ctx context.Context, c console) error {
	if err := inRange("--rounds", float64(b.Rounds), 3, 1000); err != nil {
		return err
	}
	if err := inRange("--requests", float64(b.Requests), 100, 1_000_000); err != nil {
		return err
	}
	p := newProgress(c.err)
	defer p.clear()
	r, err := gatewaybench.Run(ctx, gatewaybench.Options{Rounds: b.Rounds, Requests: b.Requests, Progress: p.say})
	if err != nil {
		return err
	}
	p.clear()
	return showBench(c.out, b.JSON, r)
}

// benchGatewayPartCmd is a process of the benchmark.
type benchGatewayPartCmd struct {
	Upstream benchUpstreamCmd `cmd:"" help:"The fake upstream."`
	Proxy    benchProxyCmd    `cmd:"" help:"A bare httputil.ReverseProxy."`
}

type benchUpstreamCmd struct{}

// Run serves until it is told to stop.
func (*benchUpstreamCmd) Run(ctx context.Context, c console) error {
	return gatewaybench.Serve(ctx, gatewaybench.Upstream(), c.out)
}

type benchProxyCmd struct {
	To string `arg:"" help:"Where to pass requests on to."`
}

// Run serves until it is told to stop.
func (b *benchProxyCmd) Run(ctx context.Context, c console) error {
	h, err := gatewaybench.Proxy(b.To)
	if err != nil {
		return &UsageError{err}
	}
	return gatewaybench.Serve(ctx, h, c.out)
}
