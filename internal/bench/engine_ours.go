package bench

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"hecate/internal/bench/llamacpp"
	"hecate/internal/bench/measure"
	"hecate/internal/engine"
)

// follow computes what llama.cpp computes: prompts, then given tokens one by one,
// each sequence on its own, as nodes do.
func (a *alone) follow(ctx context.Context, t llamacpp.Task) (llamacpp.Times, error) {
	sessions := make([]engine.Session, len(t.Prompts))
	for i := range sessions {
		s, err := a.engine.Open(ctx, engine.SessionOptions{Model: a.model, Layers: a.layers, Cells: len(t.Prompts[i]) + len(t.Answers[i])})
		if err != nil {
			return llamacpp.Times{}, fmt.Errorf("compute with the engine alone: %w", err)
		}
		defer s.Close()
		sessions[i] = s
	}
	var times llamacpp.Times
	var err error
	times.Prefill, err = took(func() error {
		return together(ctx, sessions, func(ctx context.Context, i int) error { return feed(ctx, sessions[i], t.Prompts[i]) })
	})
	if err != nil {
		return times, err
	}
	times.Decode, err = took(func() error {
		return together(ctx, sessions, func(ctx context.Context, i int) error {
			for _, token := range t.Answers[i] {
				if err := feed(ctx, sessions[i], []int32{token}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return times, err
}

// feed computes tokens and the logits of the last one.
func feed(ctx context.Context, s engine.Session, tokens []int32) error {
	_, err := s.Step(ctx, engine.Input{Position: s.Held(), Tokens: tokens, Want: engine.WantLast})
	return err
}

func together(ctx context.Context, sessions []engine.Session, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range sessions {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

func took(do func() error) (llamacpp.Took, error) {
	cpu, began := measure.CPUTime(), time.Now()
	err := do()
	return llamacpp.Took{Wall: time.Since(began), CPU: measure.CPUTime() - cpu}, err
}
