package sampling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"hecate/internal/sampling/grammar"
)

// ErrNotFinite is what errors.Is finds when a logit was NaN or infinite: the
// computation that produced it went wrong, and nothing may be chosen from it.
var ErrNotFinite = errors.New("logit is not finite")

// NotFiniteError tells which logit was not finite.
type NotFiniteError struct {
	Token int32
	Value float32
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("logit of token %d is %v, not finite", e.Token, e.Value)
}

// Is makes errors.Is(err, ErrNotFinite) true.
func (e *NotFiniteError) Is(target error) bool { return target == ErrNotFinite }

// History is all tokens of a session so far.
type History struct {
	Tokens []int32 // the prompt, then what was generated
	Prompt int     // how many of Tokens, from the start, are the prompt
}

// Logprob is a token with its natural log-probability, at most 0.
type Logprob struct {
	Token   int32   `json:"token"`
	Logprob float64 `json:"logprob"`
}

// Choice is the token chosen for one position.
type Choice struct {
	Token int32 `json:"token"`
	// Logprob is the token's log-probability under the raw logits; only set
	// when Params.Logprobs asks for it.
	Logprob float64 `json:"logprob,omitempty"`
	// Top lists the most probable tokens, best first, as many as
	// Params.TopLogprobs asks for. The chosen token need not be among them.
	Top []Logprob `json:"top,omitempty"`
}

// Sampler chooses the tokens of one session. Apart from caches it has no state:
// what it chooses depends on the arguments only. It is not safe for concurrent
// use.
type Sampler struct {
	params Params
	vocab  int
	bias   []tokenBias
	counts counts
	undo   []tokenBias // logits before bias and penalties, in the order of change
	ties   []candidate // scratch of the filters
	shape  *shape      // nil: any text
}

type tokenBias struct {
	token int32
	add   float32
}

func sortedBias(m map[int32]float32) []tokenBias {
	s := make([]tokenBias, 0, len(m))
	for t, b := range m {
		s = append(s, tokenBias{t, b})
	}
	slices.SortFunc(s, func(a, b tokenBias) int { return cmp.Compare(a.token, b.token) })
	return s
}

// New returns a sampler for a vocabulary of the given size. It fails when the
// parameters are out of range, name tokens that do not exist, or hold a grammar,
// which needs more than the vocabulary's size: see NewShaped.
func New(p Params, vocab int) (*Sampler, error) {
	if p.Grammar != nil {
		return nil, errors.New("sampling parameters: a grammar needs the vocabulary")
	}
	if err := p.Validate(); err != nil {
		return nil, fmt.Errorf("sampling parameters: %w", err)
	}
	if vocab < 1 || vocab > math.MaxInt32 {
		return nil, fmt.Errorf("sampling: vocabulary of %d tokens", vocab)
	}
	bias := sortedBias(p.LogitBias)
	for _, b := range bias {
		if b.token < 0 || int(b.token) >= vocab {
			return nil, fmt.Errorf("sampling parameters: %w", &ParamError{"logit_bias", b.token, fmt.Sprintf("a token id below %d", vocab)})
		}
	}
	return &Sampler{params: p, vocab: vocab, bias: bias, counts: newCounts(&p)}, nil
}

// NewShaped returns a sampler that keeps to the parameters' grammar, if they hold
// one. logits is how many there are for each token: at least as many as the
// vocabulary has tokens; the rest are never chosen.
func NewShaped(p Params, v *grammar.Vocabulary, logits int) (*Sampler, error) {
	g := p.Grammar
	p.Grammar = nil
	s, err := New(p, logits)
	if err != nil || g == nil {
		return s, err
	}
	if v.Size() > logits {
		return nil, fmt.Errorf("sampling: a vocabulary of %d tokens, but logits of %d", v.Size(), logits)
	}
	a, err := v.Automaton(g)
	if err != nil {
		return nil, fmt.Errorf("sampling parameters: %w", err)
	}
	s.params.Grammar, s.shape = g, &shape{automaton: a}
	return s, nil
}

// Sample chooses the token at the given position of the sequence (normally
// len(h.Tokens)). There must be one logit per token of the vocabulary. The
// logits may change during the call and are as before when it returns.
//
// It fails with ErrNotFinite when any logit is NaN or infinite, when the history
// holds tokens outside the vocabulary while penalties need them, and when what
// was generated does not fit the grammar. Log-probabilities know nothing of the
// grammar: a token that it forced may have been unlikely.
func (s *Sampler) Sample(logits []float32, h History, position int) (Choice, error) {
	if len(logits) != s.vocab {
		return Choice{}, fmt.Errorf("sampling: %d logits for a vocabulary of %d tokens", len(logits), s.vocab)
	}
	if position < 0 {
		return Choice{}, fmt.Errorf("sampling: position %d", position)
	}
	if err := s.counts.follow(h, s.vocab); err != nil {
		return Choice{}, fmt.Errorf("sampling: %w", err)
	}
	if s.shape != nil {
		if err := s.shape.follow(h); err != nil {
			return Choice{}, fmt.Errorf("sampling at position %d: %w", position, err)
		}
	}
	s.adjust(logits)
	best, err := s.choose(logits, position)
	s.restore(logits)
	if err != nil {
		return Choice{}, fmt.Errorf("sampling at position %d: %w", position, err)
	}
	c := Choice{Token: int32(best)}
	if s.params.Logprobs {
		c.Logprob, c.Top = logprobs(logits, best, s.params.TopLogprobs)
	}
	return c, nil
}

// choose takes or draws a token of adjusted logits.
func (s *Sampler) choose(logits []float32, position int) (best int, err error) {
	if s.shape != nil {
		if logits, err = s.shape.masked(logits); err != nil {
			return 0, err
		}
	}
	if best, err = largest(logits); err != nil {
		return 0, err
	}
	if s.params.Temperature > 0 {
		best = s.draw(logits, best, position)
	}
	if s.shape != nil && !s.shape.mask.Has(int32(best)) {
		return 0, ErrNoToken // all that is allowed has the lowest logit there is
	}
	return best, nil
}

// adjust applies bias and penalties in place and remembers what was there.
func (s *Sampler) adjust(logits []float32) {
	s.undo = s.undo[:0]
	for _, b := range s.bias {
		s.undo = append(s.undo, tokenBias{b.token, logits[b.token]})
		logits[b.token] += b.add
	}
	for i := range s.counts.entries {
		e := &s.counts.entries[i]
		if e.generated == 0 && e.window == 0 {
			continue
		}
		s.undo = append(s.undo, tokenBias{e.token, logits[e.token]})
		logits[e.token] = s.params.penalise(logits[e.token], e)
	}
}

// restore undoes adjust, last change first because a token may have two.
func (s *Sampler) restore(logits []float32) {
	for _, u := range slices.Backward(s.undo) {
		logits[u.token] = u.add
	}
}

// mostPenalised bounds what penalties make of a logit: finite, and above what stands
// for a token that is not allowed.
const mostPenalised = math.MaxFloat32 / 2

// penalise applies the penalties to one logit, in llama.cpp's order.
func (p *Params) penalise(logit float32, e *countEntry) float32 {
	l := float64(logit)
	if e.window > 0 {
		if l > 0 {
			l /= p.RepetitionPenalty
		} else {
			l *= p.RepetitionPenalty
		}
	}
	if e.generated > 0 {
		l -= float64(float64(e.generated)*p.FrequencyPenalty) + p.PresencePenalty
	}
	return float32(max(-mostPenalised, min(l, mostPenalised)))
}

// largest returns the index of the largest logit, the smallest among equals, or
// an error when any is not finite.
func largest(logits []float32) (int, error) {
	best, max := 0, logits[0]
	for i, l := range logits {
		if l-l != 0 {
			return 0, &NotFiniteError{Token: int32(i), Value: l}
		}
		if l > max {
			best, max = i, l
		}
	}
	return best, nil
}

// draw samples among the tokens that pass the filters; best is the index of the
// largest logit, which always passes.
func (s *Sampler) draw(logits []float32, best, position int) int {
	cut := s.cutoff(logits, best)
	n := newNoise(s.params.Seed, position)
	scale := 1 / s.params.Temperature
	top := float64(logits[best])
	winner, lead := best, gumbel(n.uniform(best)) // scores are relative to best's logit
	for i, l := range logits {
		score := (float64(l) - top) * scale
		if lead-score >= maxGumbel || i == best || !cut.passes(l, i) {
			continue
		}
		u := n.uniform(i)
		if cannotReach(u, lead-score) {
			continue
		}
		score += gumbel(u)
		if score > lead || score == lead && i < winner {
			winner, lead = i, score
		}
	}
	return winner
}
