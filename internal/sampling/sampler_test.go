package sampling

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func newSampler(t testing.TB, p Params, vocab int) *Sampler {
	t.Helper()
	s, err := New(p, vocab)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sample(t testing.TB, s *Sampler, logits []float32, h History, position int) Choice {
	t.Helper()
	c, err := s.Sample(logits, h, position)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGreedyTakesTheLargestAndTheSmallerIdAmongEquals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		logits []float32
		params Params
		h      History
		want   int32
	}{
		{"largest", []float32{1, 3, 2}, Params{}, History{}, 1},
		{"tie", []float32{1, 3, 3, 3}, Params{}, History{}, 1},
		{"all negative", []float32{-5, -4, -6}, Params{}, History{}, 1},
		{"first", []float32{0, 0, 0}, Params{}, History{}, 0},
		{"banned by bias", []float32{1, 3, 2}, Params{LogitBias: map[int32]float32{1: -100}}, History{}, 2},
		{"forced by bias", []float32{1, 3, 2}, Params{LogitBias: map[int32]float32{0: 100}}, History{}, 0},
		{"presence counts once", []float32{0, 3, 2.1}, Params{PresencePenalty: 0.8}, History{Tokens: []int32{1, 1, 1}}, 1},
		{"frequency counts each time", []float32{0, 3, 2.1}, Params{FrequencyPenalty: 0.4}, History{Tokens: []int32{1, 1, 1}}, 2},
		{"prompt is not penalised by presence", []float32{0, 3, 2.9}, Params{PresencePenalty: 2}, History{Tokens: []int32{1, 1}, Prompt: 2}, 1},
		{"negative presence favours", []float32{0, 3, 2.5}, Params{PresencePenalty: -1}, History{Tokens: []int32{2}}, 2},
		{"repetition counts the prompt", []float32{0, 3, 2}, Params{RepetitionPenalty: 2}, History{Tokens: []int32{1}, Prompt: 1}, 2},
		{"repetition on negative logits", []float32{-9, -1, -1.5}, Params{RepetitionPenalty: 2}, History{Tokens: []int32{1}, Prompt: 1}, 2},
		{"repetition window has moved on", []float32{0, 3, 2}, Params{RepetitionPenalty: 2, RepetitionWindow: 2}, History{Tokens: []int32{1, 0, 0}}, 1},
		{"repetition over everything", []float32{0, 3, 2}, Params{RepetitionPenalty: 2, RepetitionWindow: -1}, History{Tokens: append([]int32{1}, make([]int32, 500)...)}, 2},
		{"default window is 64", []float32{0, 3, 2}, Params{RepetitionPenalty: 2}, History{Tokens: append([]int32{1}, make([]int32, 64)...)}, 1},
		{"default window holds 64", []float32{0, 3, 2}, Params{RepetitionPenalty: 2}, History{Tokens: append([]int32{1}, make([]int32, 63)...)}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := slices.Clone(tc.logits)
			got := sample(t, newSampler(t, tc.params, len(tc.logits)), tc.logits, tc.h, len(tc.h.Tokens))
			if got.Token != tc.want {
				t.Errorf("chose %d, want %d", got.Token, tc.want)
			}
			if diff := cmp.Diff(before, tc.logits); diff != "" {
				t.Errorf("logits changed:\n%s", diff)
			}
		})
	}
}

func TestNotFiniteLogitsAreAnError(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, p := range []Params{{}, {Temperature: 1}, {Temperature: 1, TopP: 0.5, LogitBias: map[int32]float32{2: -100}}} {
		for _, bad := range []float32{float32(math.NaN()), inf, -inf} {
			for at := range 3 {
				logits := []float32{1, 2, 3}
				logits[at] = bad
				_, err := newSampler(t, p, 3).Sample(logits, History{}, 0)
				var nf *NotFiniteError
				if !errors.Is(err, ErrNotFinite) || !errors.As(err, &nf) || nf.Token != int32(at) {
					t.Errorf("%v at %d: error %v", bad, at, err)
				}
			}
		}
	}
}

func TestSampleRefusesWhatCannotBeMeant(t *testing.T) {
	s := newSampler(t, Params{PresencePenalty: 1}, 3)
	for name, call := range map[string]func() (Choice, error){
		"too few logits":    func() (Choice, error) { return s.Sample([]float32{1}, History{}, 0) },
		"negative position": func() (Choice, error) { return s.Sample([]float32{1, 2, 3}, History{}, -1) },
		"unknown token":     func() (Choice, error) { return s.Sample([]float32{1, 2, 3}, History{Tokens: []int32{3}}, 1) },
		"negative token":    func() (Choice, error) { return s.Sample([]float32{1, 2, 3}, History{Tokens: []int32{-1}}, 1) },
		"long prompt":       func() (Choice, error) { return s.Sample([]float32{1, 2, 3}, History{Tokens: []int32{1}, Prompt: 2}, 1) },
	} {
		if c, err := call(); err == nil {
			t.Errorf("%s: chose %+v without an error", name, c)
		}
	}
	if c := sample(t, s, []float32{1, 2, 3}, History{Tokens: []int32{2, 2}, Prompt: 1}, 2); c.Token != 1 && c.Token != 2 {
		t.Errorf("after refusals the sampler chose %d", c.Token)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	p := Params{Temperature: 2.5, TopP: -0.1, MinP: math.NaN(), PresencePenalty: 3, FrequencyPenalty: -3, RepetitionPenalty: 11,
		TopK: -1, RepetitionWindow: -2, TopLogprobs: 21, LogitBias: map[int32]float32{7: 101}}
	err := p.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"temperature is 2.5, must be between 0 and 2", "top_p", "min_p", "presence_penalty", "frequency_penalty",
		"repetition_penalty", "top_k", "repetition_window", "top_logprobs is 21, must be between 0 and 20", "logit_bias[7] is 101"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error lacks %q:\n%v", want, err)
		}
	}
	var pe *ParamError
	if !errors.As(err, &pe) || pe.Field != "temperature" {
		t.Errorf("first fault is %+v", pe)
	}
	if err := (&Params{TopLogprobs: 3}).Validate(); err == nil {
		t.Error("top_logprobs without logprobs passed")
	}
	if _, err := New(Params{LogitBias: map[int32]float32{5: 1}}, 5); !errors.As(err, &pe) || pe.Field != "logit_bias" {
		t.Errorf("bias on a token beyond the vocabulary: %v", err)
	}
	many := map[int32]float32{}
	for i := range int32(MaxLogitBiasEntries + 1) {
		many[i] = 1
	}
	if err := (&Params{LogitBias: many}).Validate(); err == nil {
		t.Error("too many logit_bias entries passed")
	}
	for _, p := range []Params{{}, {Temperature: 2, TopP: 1, MinP: 1, TopK: 1, PresencePenalty: 2, FrequencyPenalty: -2, RepetitionPenalty: 10, RepetitionWindow: -1, Logprobs: true, TopLogprobs: 20}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
}

func TestParamsSurviveJSON(t *testing.T) {
	want := Params{Temperature: 0.7, TopK: 40, TopP: 0.95, MinP: 0.05, Seed: math.MaxUint64, LogitBias: map[int32]float32{50256: -100}, Logprobs: true, TopLogprobs: 2}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Params
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestLogprobsAreTheRawLogSoftmax(t *testing.T) {
	logits := []float32{0, 2, 1, 2, -3}
	s := newSampler(t, Params{Logprobs: true, TopLogprobs: 3, LogitBias: map[int32]float32{4: 100}}, 5)
	c := sample(t, s, logits, History{}, 0)
	var z float64
	for _, l := range logits {
		z += math.Exp(float64(l))
	}
	lp := func(i int) float64 { return float64(logits[i]) - math.Log(z) }
	if c.Token != 4 || math.Abs(c.Logprob-lp(4)) > 1e-12 {
		t.Errorf("chose %d with %g, want 4 with %g", c.Token, c.Logprob, lp(4))
	}
	for i, want := range []int32{1, 3, 2} { // equal logits: smaller id first
		if got := c.Top[i]; got.Token != want || math.Abs(got.Logprob-lp(int(want))) > 1e-12 {
			t.Errorf("top %d is %+v, want token %d with %g", i, got, want, lp(int(want)))
		}
	}
	if c := sample(t, newSampler(t, Params{Logprobs: true}, 5), logits, History{}, 0); c.Top != nil {
		t.Errorf("top list without being asked: %v", c.Top)
	}
	if c := sample(t, newSampler(t, Params{Logprobs: true, TopLogprobs: 20}, 5), logits, History{}, 0); len(c.Top) != 5 {
		t.Errorf("%d of 5 tokens in a top list of 20", len(c.Top))
	}
}

func randomLogits(r *rand.Rand, n int, spread float64) []float32 {
	l := make([]float32, n)
	for i := range l {
		l[i] = float32(r.NormFloat64() * spread)
		if r.IntN(4) == 0 { // ties must occur
			l[i] = float32(math.Round(float64(l[i])))
		}
	}
	return l
}

// A penalty that is as small as may be asked for lifts logits very high, not out of
// the numbers.
func TestTheSmallestRepetitionPenalty(t *testing.T) {
	for _, p := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-30} {
		for _, temperature := range []float64{0, 1} {
			s, err := New(Params{Temperature: temperature, RepetitionPenalty: p, TopP: 0.9}, 4)
			if err != nil {
				t.Fatal(err)
			}
			c, err := s.Sample([]float32{3, 5, -2, 1}, History{Tokens: []int32{0, 2}, Prompt: 2}, 2)
			if err != nil || c.Token != 0 {
				t.Errorf("%g at temperature %g: token %d, %v", p, temperature, c.Token, err)
			}
		}
	}
}
