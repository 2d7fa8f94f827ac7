package bench

import (
	"context"
	"fmt"

	"hecate/internal/bench/measure"
)

// Two swarms are compared that are started for it, twice: a process is a little
// faster or slower for all its life.
const (
	priceSittings = 2
	priceRounds   = 8 // per sitting
)

// demoPace is how many tokens the demo model is timed over: a few would be over
// before a clock could tell.
const demoPace = 256

// measurePrice compares a swarm that keeps boundary states with one that keeps
// none, on undisturbed answers. Only decoding is compared, so prompts are short:
// long ones would take all the time.
func measurePrice(ctx context.Context, s *subject, o FailoverOptions) (Price, error) {
	o.Context = min(o.Context, shortPrompt)
	t := &theatre{subject: s, options: o}
	if t.chats() {
		t.options.Tokens = max(o.Tokens, demoPace)
	}
	var with, without []float64
	for range priceSittings {
		if err := t.compare(ctx, &with, &without); err != nil {
			return Price{}, fmt.Errorf("price of being ready: %w", err)
		}
	}
	noise := measure.NoiseOf("the swarm without boundary states", without)
	mark := ratio("tokens per second, keeping boundary states / not", with, without, nil, new(0.98))
	return Price{With: measure.Median(with), Without: measure.Median(without), Judgement: measure.Judged([]measure.Mark{mark}, &noise)}, nil
}

// compare starts two swarms like t, of which one keeps nothing, and lets them
// take turns.
func (t *theatre) compare(ctx context.Context, with, without *[]float64) error {
	t.options.Progress("starting two swarms for the price of being ready")
	careful, err := t.another(ctx)
	if err != nil {
		return err
	}
	defer careful.stop()
	careless, err := t.another(ctx, "--boundary-memory", "1")
	if err != nil {
		return err
	}
	defer careless.stop()
	for n := range priceRounds {
		t.options.Progress(fmt.Sprintf("price of being ready: answer %d", len(*with)+1))
		s := scene{question: n % t.questions()}
		sides := []func() error{
			func() error { return careful.pace(ctx, s, with) },
			func() error { return careless.pace(ctx, s, without) },
		}
		for i := range sides {
			if err := sides[(i+n)%len(sides)](); err != nil {
				return err
			}
		}
	}
	return nil
}

// another is a swarm of its own with the same questions.
func (t *theatre) another(ctx context.Context, more ...string) (*theatre, error) {
	l, err := startLocal(ctx, t.subject, failoverArgs(more...)...)
	if err != nil {
		return nil, err
	}
	other := *t
	other.local = l
	return &other, nil
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
