package sampling_test

import (
	"fmt"
	"log"

	"hecate/internal/sampling"
)

// A session is resumed by another sampler, which draws what the first one would
// have drawn.
func Example() {
	params := sampling.Params{Temperature: 0.8, TopP: 0.95, PresencePenalty: 0.5, Seed: 7}
	logits := []float32{1.2, 0.3, 2.0, 1.9, -1}
	draw := func(s *sampling.Sampler, tokens []int32, n int) []int32 {
		for range n {
			choice, err := s.Sample(logits, sampling.History{Tokens: tokens, Prompt: 2}, len(tokens))
			if err != nil {
				log.Fatal(err)
			}
			tokens = append(tokens, choice.Token)
		}
		return tokens
	}
	newSampler := func() *sampling.Sampler {
		s, err := sampling.New(params, len(logits))
		if err != nil {
			log.Fatal(err)
		}
		return s
	}
	prompt := []int32{4, 0}
	undisturbed := draw(newSampler(), prompt, 8)
	begun := draw(newSampler(), prompt, 3)
	resumed := draw(newSampler(), begun, 5)
	fmt.Println(fmt.Sprint(undisturbed) == fmt.Sprint(resumed))
	// Output: true
}
