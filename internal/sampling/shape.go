package sampling

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"hecate/internal/sampling/grammar"
)

// ErrNoToken is what errors.Is finds when the grammar leaves no token to choose:
// the vocabulary cannot write what it asks for.
var ErrNoToken = errors.New("no token of the vocabulary fits the grammar here")

// shape keeps the answer within a grammar. Its state is that of the tokens
// generated so far; a history that goes on costs one step per new token, any
// other is followed anew.
type shape struct {
	automaton *grammar.Automaton
	machine   *grammar.Machine
	tokens    []int32 // generated, and followed
	mask      grammar.Mask
	allowed   int       // tokens in mask
	fresh     bool      // mask is that of tokens
	scores    []float32 // logits of what is allowed, the rest at bottom
}

// follow brings machine and mask up to date with h.
func (s *shape) follow(h History) error {
	if h.Prompt < 0 || h.Prompt > len(h.Tokens) {
		return fmt.Errorf("history of %d tokens with %d prompt tokens", len(h.Tokens), h.Prompt)
	}
	generated := h.Tokens[h.Prompt:]
	n := len(s.tokens)
	if s.machine == nil || n > len(generated) || !slices.Equal(s.tokens, generated[:n]) {
		s.machine, s.tokens, s.fresh = s.automaton.Start(), s.tokens[:0], false
	}
	for i, t := range generated[len(s.tokens):] {
		if err := s.machine.Take(t); err != nil {
			s.machine = nil
			return fmt.Errorf("generated token %d: %w", i, err)
		}
		s.tokens, s.fresh = append(s.tokens, t), false
	}
	if !s.fresh {
		s.mask = s.machine.Allowed(s.mask)
		s.allowed, s.fresh = s.mask.Count(), true
	}
	if s.allowed == 0 {
		return ErrNoToken
	}
	return nil
}

// bottom is below every logit that can be chosen, and finite: arithmetic with it
// stays sound.
const bottom = -math.MaxFloat32

// masked gives the logits of what is allowed. The rest is so unlikely that no
// noise lifts it; it lasts until the next call.
func (s *shape) masked(logits []float32) ([]float32, error) {
	s.scores = slices.Grow(s.scores[:0], len(logits))[:len(logits)]
	for i, l := range logits {
		if l-l != 0 {
			return nil, &NotFiniteError{Token: int32(i), Value: l}
		}
		if !s.mask.Has(int32(i)) {
			l = bottom
		}
		s.scores[i] = l
	}
	return s.scores, nil
}
