package sampling

import (
	"math/rand/v2"
	"testing"
)

// The vocabulary of Llama 3 with logits spread like a trained model's.
const benchVocab = 128_256

func benchLogits() []float32 { return randomLogits(rand.New(rand.NewPCG(1, 1)), benchVocab, 3) }

func benchmarkSample(b *testing.B, p Params, history int) {
	logits := benchLogits()
	h := History{Tokens: make([]int32, history, history+1), Prompt: history / 2}
	for i := range h.Tokens {
		h.Tokens[i] = int32(i * 7 % benchVocab)
	}
	s := newSampler(b, p, benchVocab)
	sample(b, s, logits, h, history)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		sample(b, s, logits, h, history+i)
	}
}

func BenchmarkGreedy(b *testing.B)      { benchmarkSample(b, Params{}, 0) }
func BenchmarkTemperature(b *testing.B) { benchmarkSample(b, Params{Temperature: 0.8}, 0) }
func BenchmarkTopK(b *testing.B)        { benchmarkSample(b, Params{Temperature: 0.8, TopK: 40}, 0) }
func BenchmarkTopP(b *testing.B)        { benchmarkSample(b, Params{Temperature: 0.8, TopP: 0.95}, 0) }
func BenchmarkAllFilters(b *testing.B) {
	benchmarkSample(b, Params{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}, 0)
}
func BenchmarkPenalties8kTokens(b *testing.B) {
	benchmarkSample(b, Params{PresencePenalty: 0.5, FrequencyPenalty: 0.5, RepetitionPenalty: 1.1}, 8192)
}
func BenchmarkTop20Logprobs(b *testing.B) {
	benchmarkSample(b, Params{Logprobs: true, TopLogprobs: 20}, 0)
}

func TestGreedyDoesNotAllocate(t *testing.T) {
	logits := randomLogits(rand.New(rand.NewPCG(1, 1)), 1000, 3)
	h := History{Tokens: make([]int32, 100, 4096)}
	for name, p := range map[string]Params{
		"greedy": {}, "temperature": {Temperature: 1}, "filters": {Temperature: 1, TopK: 40, TopP: 0.9, MinP: 0.01},
		"penalties": {PresencePenalty: 1, RepetitionPenalty: 1.1, LogitBias: map[int32]float32{4: 1}},
	} {
		s := newSampler(t, p, len(logits))
		sample(t, s, logits, h, 100)
		if n := testing.AllocsPerRun(50, func() { sample(t, s, logits, h, 100) }); n != 0 {
			t.Errorf("%s: %g allocations per token", name, n)
		}
	}
}
