package bench

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// A runner decodes some answers at once.
type runner interface {
	// decode computes the prompts, then so many tokens of each, and tells when
	// they came.
	decode(ctx context.Context, prompts [][]int32, tokens int) ([]timeline, error)
	// route says over which stages the last answer went.
	route() string
	// processes are all that compute for it.
	processes() []int
	close()
}

// swarmRunner is a swarm of processes, asked over HTTP.
type swarmRunner struct {
	*local
	subject *subject
	pids    []int
	last    string
}

func (r *swarmRunner) close() { r.stop() }

func (r *swarmRunner) processes() []int { return r.pids }

func (r *swarmRunner) route() string { return r.last }

func (r *swarmRunner) decode(ctx context.Context, prompts [][]int32, tokens int) ([]timeline, error) {
	lines := make([]timeline, len(prompts))
	routes := make([]string, len(prompts))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range prompts {
		g.Go(func() error {
			a, err := r.ask(ctx, r.subject, question{prompt: p, tokens: tokens})
			if err != nil {
				return err
			}
			if a.flaw != "" {
				return fmt.Errorf("an answer broke: %s", a.flaw)
			}
			lines[i], routes[i] = timeline{a.at, a.tokens}, a.route
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("decode through the swarm: %w", err)
	}
	r.last = routes[0]
	return lines, nil
}
