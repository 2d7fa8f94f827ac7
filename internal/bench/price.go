package bench

import (
	"context"
	"fmt"

	"hecate/internal/bench/measure"
)

// priceRounds is how often the two swarms take turns.
const priceRounds = 12

// demoPace is how many tokens the demo model is timed over: a few would be over
// before a clock could tell.
const demoPace = 256

// measurePrice compares the swarm, which keeps boundary states, with another one
// that keeps none, on undisturbed answers. Only decoding is compared, so prompts
// are short: long ones would take all the time.
func measurePrice(ctx context.Context, t *theatre) (Price, error) {
	options := t.options
	options.Context = min(options.Context, shortPrompt)
	if t.chats() {
		options.Tokens = max(options.Tokens, demoPace)
	}
	careful := &theatre{local: t.local, subject: t.subject, options: options}
	t.options.Progress("starting a swarm that keeps no boundary states")
	l, err := startLocal(ctx, t.subject, failoverArgs("--boundary-memory", "1")...)
	if err != nil {
		return Price{}, err
	}
	defer l.stop()
	careless := &theatre{local: l, subject: t.subject, options: options}
	var with, without []float64
	for n := range priceRounds {
		t.options.Progress(fmt.Sprintf("price of being ready: round %d of %d", n+1, priceRounds))
		s := scene{question: n % careful.questions()}
		sides := []func() error{
			func() error { return careful.pace(ctx, s, &with) },
			func() error { return careless.pace(ctx, s, &without) },
		}
		for i := range sides {
			if err := sides[(i+n)%len(sides)](); err != nil {
				return Price{}, fmt.Errorf("price of being ready: %w", err)
			}
		}
	}
	noise := measure.NoiseOf("the swarm without boundary states", without)
	mark := ratio("tokens per second, keeping boundary states / not", with, without, nil, new(0.98))
	return Price{With: measure.Median(with), Without: measure.Median(without), Judgement: measure.Judged([]measure.Mark{mark}, &noise)}, nil
}

// pace has one answer and adds its speed.
func (t *theatre) pace(ctx context.Context, s scene, into *[]float64) error {
	r, err := t.ask(ctx, s)
	if err != nil {
		return err
	}
	if r.flaw != "" {
		return fmt.Errorf("an undisturbed answer broke: %s", r.flaw)
	}
	*into = append(*into, rate([]timeline{{r.at, r.tokens}}))
	return nil
}
