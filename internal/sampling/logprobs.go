package sampling

import "math"

// logprobs returns the log-softmax of the chosen token and the n most probable
// tokens with theirs, best first. All logits are finite.
func logprobs(logits []float32, chosen, n int) (float64, []Logprob) {
	n = min(n, len(logits))
	max := logits[0]
	for _, l := range logits {
		if l > max {
			max = l
		}
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - float64(max))
	}
	norm := float64(max) + math.Log(sum)
	of := func(token int) float64 { return math.Min(0, float64(logits[token])-norm) }
	if n == 0 {
		return of(chosen), nil
	}
	top := make([]Logprob, 0, n)
	for _, token := range topN(logits, n) {
		top = append(top, Logprob{Token: int32(token), Logprob: of(token)})
	}
	return of(chosen), top
}

// topN returns the n first candidates in order; n is small, so insertion into a
// sorted list beats a heap.
func topN(logits []float32, n int) []int {
	list := make([]int, 0, n)
	for i, l := range logits {
		if len(list) == n {
			if !(l > logits[list[n-1]]) {
				continue
			}
			list = list[:n-1]
		}
		list = append(list, i)
		for j := len(list) - 1; j > 0 && l > logits[list[j-1]]; j-- {
			list[j], list[j-1] = list[j-1], list[j]
		}
	}
	return list
}
