package bench

import (
	"context"
	"fmt"
	"slices"

	"hecate/internal/bench/measure"
)

// Two swarms are compared that are started for it, several times, and each is the
// first to be started half of the times: a process is a little faster or slower
// for all its life, and the first of two more often the slower one.
const (
	priceSittings = 4
	priceRounds   = 4 // per sitting
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
	var all, without []float64
	var p Price
	for k := range priceSittings {
		with, bare, err := t.compare(ctx, k%2 == 0)
		if err != nil {
			return Price{}, fmt.Errorf("price of being ready: %w", err)
		}
		all, without = append(all, with...), append(without, bare...)
		p.Sittings = append(p.Sittings, measure.Median(measure.Quotients(with, bare)))
	}
	p.With, p.Without = measure.Median(all), measure.Median(without)
	noise := measure.NoiseOf("the swarm without boundary states", without)
	mark := measure.Mark{Name: "tokens per second, keeping boundary states / not", Value: measure.Median(p.Sittings), Aim: new(0.98)}
	p.Judgement = measure.Judged([]measure.Mark{mark}, &noise)
	return p, nil
}

// side is one of the two swarms and its speeds.
type side struct {
	more  []string // arguments
	swarm *theatre
	rates []float64
}

// compare starts two swarms like t, of which one keeps nothing, and lets them
// take turns.
func (t *theatre) compare(ctx context.Context, carefulFirst bool) (with, without []float64, err error) {
	careful, careless := &side{}, &side{more: []string{"--boundary-memory", "1"}}
	sides := []*side{careful, careless}
	if !carefulFirst {
		slices.Reverse(sides)
	}
	for _, s := range sides {
		t.options.Progress("price of being ready: starting a swarm")
		if s.swarm, err = t.another(ctx, s.more...); err != nil {
			return nil, nil, err
		}
		defer s.swarm.stop()
	}
	for n := range priceRounds {
		t.options.Progress(fmt.Sprintf("price of being ready: answer %d of %d", n+1, priceRounds))
		for i := range sides {
			if err := sides[(i+n)%len(sides)].pace(ctx, scene{question: n % t.questions()}); err != nil {
				return nil, nil, err
			}
		}
	}
	return careful.rates, careless.rates, nil
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
func (s *side) pace(ctx context.Context, sc scene) error {
	r, err := s.swarm.ask(ctx, sc)
	if err != nil {
		return err
	}
	if r.flaw != "" {
		return fmt.Errorf("an undisturbed answer broke: %s", r.flaw)
	}
	s.rates = append(s.rates, rate([]timeline{{r.at, r.tokens}}))
	return nil
}
