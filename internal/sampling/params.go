package sampling

import (
	"errors"
	"fmt"
	"math"

	"hecate/internal/sampling/grammar"
)

// Limits of the parameters. Each keeps one request from costing more than its
// share or from leaving the range in which the arithmetic is sound.
const (
	MaxTemperature       = 2.0   // OpenAI's range; beyond it text is noise
	MaxPenalty           = 2.0   // OpenAI's range for presence and frequency
	MaxRepetitionPenalty = 10.0  // keeps scaled logits finite
	MaxLogitBias         = 100.0 // OpenAI's range: enough to ban or to force a token
	MaxLogitBiasEntries  = 1024  // each entry costs time at every token
	MaxTopLogprobs       = 20    // OpenAI's range

	// DefaultRepetitionWindow is llama.cpp's default for the number of latest
	// tokens that the repetition penalty looks at.
	DefaultRepetitionWindow = 64
)

// Params says how to choose the next token. The zero value is greedy: the most
// probable token, no penalties, no log-probabilities.
type Params struct {
	// Temperature, 0 to 2. 0 is greedy; 1 samples from the model's own distribution.
	Temperature float64 `json:"temperature,omitempty"`
	// TopK keeps the k most probable tokens. 0 keeps all.
	TopK int `json:"top_k,omitempty"`
	// TopP, 0 to 1, keeps the fewest most probable tokens whose probabilities
	// (after TopK, renormalised) reach p. 0 and 1 keep all.
	TopP float64 `json:"top_p,omitempty"`
	// MinP, 0 to 1, keeps tokens at least this probable relative to the most
	// probable one. 0 keeps all.
	MinP float64 `json:"min_p,omitempty"`
	// PresencePenalty, -2 to 2, is subtracted once from the logit of every token
	// that was generated before (prompt tokens do not count).
	PresencePenalty float64 `json:"presence_penalty,omitempty"`
	// FrequencyPenalty, -2 to 2, is subtracted from a token's logit once for
	// each time it was generated before (prompt tokens do not count).
	FrequencyPenalty float64 `json:"frequency_penalty,omitempty"`
	// RepetitionPenalty, above 0 to 10, divides positive and multiplies other
	// logits of the tokens within the window, prompt included, as llama.cpp's
	// repeat_penalty does. 0 and 1 are off.
	RepetitionPenalty float64 `json:"repetition_penalty,omitempty"`
	// RepetitionWindow is how many of the latest tokens RepetitionPenalty looks
	// at. 0 means DefaultRepetitionWindow, -1 all.
	RepetitionWindow int `json:"repetition_window,omitempty"`
	// LogitBias is added to the logits of single tokens, -100 to 100 each.
	LogitBias map[int32]float32 `json:"logit_bias,omitempty"`
	// Seed selects the random numbers. Equal seeds draw equally; 0 is a seed
	// like any other. Alternatives of one request (n > 1) need different seeds.
	Seed uint64 `json:"seed,omitempty"`
	// Logprobs asks for the chosen token's log-probability.
	Logprobs bool `json:"logprobs,omitempty"`
	// TopLogprobs, 0 to 20, asks for that many most probable tokens at each
	// position; it needs Logprobs.
	TopLogprobs int `json:"top_logprobs,omitempty"`
	// Grammar is the texts that may be generated; nil: any.
	Grammar *grammar.Grammar `json:"grammar,omitempty"`
}

// ParamError is one value outside its range.
type ParamError struct {
	Field string // JSON name of the field
	Value any
	Want  string // the permitted range in words
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("%s is %v, must be %s", e.Field, e.Value, e.Want)
}

// Validate reports every value outside its range, each as a *ParamError joined
// into one error. Token ids in LogitBias are checked against the vocabulary by
// New.
func (p *Params) Validate() error {
	var errs []error
	within := func(field string, v, lo, hi float64) {
		if !(v >= lo && v <= hi) { // written so that NaN fails
			errs = append(errs, &ParamError{field, v, fmt.Sprintf("between %g and %g", lo, hi)})
		}
	}
	within("temperature", p.Temperature, 0, MaxTemperature)
	within("top_p", p.TopP, 0, 1)
	within("min_p", p.MinP, 0, 1)
	within("presence_penalty", p.PresencePenalty, -MaxPenalty, MaxPenalty)
	within("frequency_penalty", p.FrequencyPenalty, -MaxPenalty, MaxPenalty)
	within("repetition_penalty", p.RepetitionPenalty, 0, MaxRepetitionPenalty)
	if p.TopK < 0 {
		errs = append(errs, &ParamError{"top_k", p.TopK, "0 (off) or more"})
	}
	if p.RepetitionWindow < -1 {
		errs = append(errs, &ParamError{"repetition_window", p.RepetitionWindow, "-1 (all), 0 (default) or more"})
	}
	if p.TopLogprobs < 0 || p.TopLogprobs > MaxTopLogprobs {
		errs = append(errs, &ParamError{"top_logprobs", p.TopLogprobs, fmt.Sprintf("between 0 and %d", MaxTopLogprobs)})
	} else if p.TopLogprobs > 0 && !p.Logprobs {
		errs = append(errs, &ParamError{"top_logprobs", p.TopLogprobs, "0 unless logprobs is true"})
	}
	return errors.Join(append(errs, p.validateBias()...)...)
}

func (p *Params) validateBias() []error {
	if n := len(p.LogitBias); n > MaxLogitBiasEntries {
		return []error{&ParamError{"logit_bias", fmt.Sprintf("%d entries", n), fmt.Sprintf("at most %d entries", MaxLogitBiasEntries)}}
	}
	var errs []error
	for _, b := range sortedBias(p.LogitBias) {
		if !(math.Abs(float64(b.add)) <= MaxLogitBias) {
			errs = append(errs, &ParamError{fmt.Sprintf("logit_bias[%d]", b.token), b.add, fmt.Sprintf("between %g and %g", -MaxLogitBias, MaxLogitBias)})
		}
	}
	return errs
}

// penaliseRepetition says whether the repetition penalty changes anything.
func (p *Params) penaliseRepetition() bool {
	return p.RepetitionPenalty != 0 && p.RepetitionPenalty != 1
}

// penaliseGenerated says whether presence or frequency penalties change anything.
func (p *Params) penaliseGenerated() bool {
	return p.PresencePenalty != 0 || p.FrequencyPenalty != 0
}

// window is the number of latest tokens under the repetition penalty.
func (p *Params) window() int {
	switch p.RepetitionWindow {
	case 0:
		return DefaultRepetitionWindow
	case -1:
		return math.MaxInt
	}
	return p.RepetitionWindow
}
