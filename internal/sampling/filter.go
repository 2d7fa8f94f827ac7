package sampling

import (
	"math"
	"slices"
)

// candidate is a token with its logit. Candidates are ordered by larger logit,
// then smaller id: the order has no ties.
type candidate struct {
	logit float32
	token int
}

func (a candidate) before(b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.token < b.token
}

// cut is the last candidate that passes a filter. Top-k, top-p and min-p each
// keep a prefix of the candidates' order, so one cut describes them all.
type cut candidate

var passAll = cut{logit: float32(math.Inf(-1)), token: math.MaxInt}

func (c cut) passes(logit float32, token int) bool {
	return logit > c.logit || logit == c.logit && token <= c.token
}

// Candidates are sorted into buckets by their distance from the largest logit;
// only the bucket in which a prefix ends is sorted. bucketsPerNat is a matter of
// speed alone.
const (
	bucketsPerNat = 16
	buckets       = 64 * bucketsPerNat // the last one takes all that is farther away
)

func bucketOf(max, logit float32) int {
	d := (float64(max) - float64(logit)) * bucketsPerNat
	if d >= buckets-1 {
		return buckets - 1
	}
	return int(d)
}

// cutoff returns the cut of all filters; best indexes the largest logit.
func (s *Sampler) cutoff(logits []float32, best int) cut {
	c, max := passAll, logits[best]
	if k := s.params.TopK; k > 0 && k < s.candidates() {
		c = s.cutTopK(logits, max, k)
	}
	if p := s.params.TopP; p > 0 && p < 1 {
		c = s.cutTopP(logits, max, p, c)
	}
	if p := s.params.MinP; p > 0 {
		c = tighten(c, cutMinP(max, p))
	}
	return c
}

// candidates is how many tokens there are to choose from.
func (s *Sampler) candidates() int {
	if s.shape != nil {
		return s.shape.allowed
	}
	return s.vocab
}

// tighten returns the cut that keeps fewer.
func tighten(a, b cut) cut {
	if candidate(a).before(candidate(b)) {
		return a
	}
	return b
}

// cutMinP keeps logits whose probability is at least p times the largest one's.
func cutMinP(max float32, p float64) cut {
	least := float64(max) + math.Log(p)
	l := float32(least)
	if float64(l) < least {
		l = math.Nextafter32(l, float32(math.Inf(1)))
	}
	return cut{logit: min(l, max), token: math.MaxInt}
}

// cutTopK keeps the k first candidates.
func (s *Sampler) cutTopK(logits []float32, max float32, k int) cut {
	var count [buckets]int
	for _, l := range logits {
		count[bucketOf(max, l)]++
	}
	b, before := 0, 0
	for ; before+count[b] < k; b++ {
		before += count[b]
	}
	return cut(s.bucket(logits, max, b, passAll)[k-before-1])
}

// cutTopP keeps the fewest first candidates, of those that pass c, whose share
// of the probability reaches p.
func (s *Sampler) cutTopP(logits []float32, max float32, p float64, c cut) cut {
	var mass [buckets]float64
	for i, l := range logits {
		if c.passes(l, i) {
			mass[bucketOf(max, l)] += math.Exp(float64(l) - float64(max))
		}
	}
	total := 0.0
	for _, m := range mass {
		total += m
	}
	b, before, want := 0, 0.0, p*total
	for ; b < buckets-1 && before+mass[b] < want; b++ {
		before += mass[b]
	}
	for _, x := range s.bucket(logits, max, b, c) {
		c = cut(x)
		before += math.Exp(float64(x.logit) - float64(max))
		if before >= want {
			break
		}
	}
	return c
}

// bucket returns the candidates of one bucket that pass c, in order. The result
// is valid until the next call.
func (s *Sampler) bucket(logits []float32, max float32, b int, c cut) []candidate {
	s.ties = s.ties[:0]
	for i, l := range logits {
		if bucketOf(max, l) == b && c.passes(l, i) {
			s.ties = append(s.ties, candidate{l, i})
		}
	}
	slices.SortFunc(s.ties, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	return s.ties
}
