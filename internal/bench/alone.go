package bench

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"hecate/internal/engine"
	"hecate/internal/gguf"
)

// alone is the engine in this process, with nothing around it.
type alone struct {
	engine engine.Engine
	model  string
	layers engine.Range
}

// newAlone loads a whole model with room for so many answers.
func newAlone(ctx context.Context, s *subject, answers, tokens int) (*alone, error) {
	// Cells for the answers and for the share that is kept for rescues.
	e, err := engine.New(engine.Options{Threads: 1, Cells: 2 * answers * tokens, ContextTokens: tokens})
	if err != nil {
		return nil, fmt.Errorf("start the engine alone: %w", err)
	}
	a := &alone{engine: e, model: s.name}
	if a.layers, err = layersOf(s); err == nil {
		err = e.LoadLayers(ctx, engine.LoadRequest{Model: s.name, Path: s.path, Layers: a.layers}, nil)
	}
	if err != nil {
		a.close()
		return nil, fmt.Errorf("load %s into the engine alone: %w", s.name, err)
	}
	return a, nil
}

func (a *alone) close() { _ = a.engine.Close() }

func (a *alone) route() string {
	return fmt.Sprintf("layers %d to %d in this process", a.layers.First, a.layers.Last)
}

func (a *alone) processes() []int { return []int{os.Getpid()} }

func (a *alone) decode(ctx context.Context, prompts [][]int32, tokens int) ([]timeline, error) {
	lines := make([]timeline, len(prompts))
	g, ctx := errgroup.WithContext(ctx)
	for i, p := range prompts {
		g.Go(func() (err error) {
			lines[i], err = a.one(ctx, p, tokens)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, fmt.Errorf("decode with the engine alone: %w", err)
	}
	return lines, nil
}

func layersOf(s *subject) (engine.Range, error) {
	info, err := gguf.Inspect(s.path)
	if err != nil {
		return engine.Range{}, err
	}
	return engine.Range{First: 0, Last: info.Layers - 1}, nil
}

// one answers greedily.
func (a *alone) one(ctx context.Context, prompt []int32, tokens int) (timeline, error) {
	s, err := a.engine.Open(ctx, engine.SessionOptions{Model: a.model, Layers: a.layers, Cells: len(prompt) + tokens})
	if err != nil {
		return timeline{}, err
	}
	defer s.Close()
	line := timeline{tokens: tokens}
	input := prompt
	for range tokens {
		out, err := s.Step(ctx, engine.Input{Position: s.Held(), Tokens: input, Want: engine.WantLast})
		if err != nil {
			return timeline{}, err
		}
		input = []int32{likeliest(out.Logits)}
		line.at = append(line.at, time.Now())
	}
	return line, nil
}

func likeliest(logits []float32) int32 {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	return int32(best)
}
