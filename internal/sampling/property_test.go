package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"
)

// naive is the chain written down as plainly as possible: full sort, full
// history, no shortcuts.
func naive(p Params, logits []float32, h History, position int) (token int, survivors map[int]bool) {
	adjusted := naiveAdjust(p, logits, h)
	order := make([]int, len(adjusted))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return adjusted[order[a]] > adjusted[order[b]] })
	if p.Temperature == 0 {
		return order[0], nil
	}
	order = naiveFilter(p, adjusted, order)
	n := newNoise(p.Seed, position)
	survivors = map[int]bool{}
	best := math.Inf(-1)
	slices.Sort(order)
	max := slices.Max(adjusted)
	for _, i := range order {
		survivors[i] = true
		if s := (float64(adjusted[i])-float64(max))/p.Temperature + gumbel(n.uniform(i)); s > best {
			token, best = i, s
		}
	}
	return token, survivors
}

func naiveAdjust(p Params, logits []float32, h History) []float32 {
	out := slices.Clone(logits)
	for t, b := range p.LogitBias {
		out[t] += b
	}
	recent := h.Tokens[max(0, len(h.Tokens)-min(p.window(), len(h.Tokens))):]
	for i := range out {
		l := float64(out[i])
		if p.penaliseRepetition() && slices.Contains(recent, int32(i)) {
			if l > 0 {
				l /= p.RepetitionPenalty
			} else {
				l *= p.RepetitionPenalty
			}
		}
		times := 0
		for _, t := range h.Tokens[h.Prompt:] {
			if int(t) == i {
				times++
			}
		}
		if times > 0 {
			l -= float64(times)*p.FrequencyPenalty + p.PresencePenalty
		}
		out[i] = float32(l)
	}
	return out
}

func naiveFilter(p Params, logits []float32, order []int) []int {
	max := float64(logits[order[0]])
	if p.TopK > 0 && p.TopK < len(order) {
		order = order[:p.TopK]
	}
	if p.TopP > 0 && p.TopP < 1 {
		total, sum := 0.0, 0.0
		for _, i := range order {
			total += math.Exp(float64(logits[i]) - max)
		}
		for n, i := range order {
			sum += math.Exp(float64(logits[i]) - max)
			if sum >= p.TopP*total {
				order = order[:n+1]
				break
			}
		}
	}
	if p.MinP > 0 {
		order = slices.DeleteFunc(slices.Clone(order), func(i int) bool {
			return float64(logits[i]) < max+math.Log(p.MinP)
		})
	}
	return order
}

func randomParams(r *rand.Rand, vocab int) Params {
	maybe := func(v float64) float64 {
		if r.IntN(2) == 0 {
			return 0
		}
		return v
	}
	p := Params{
		Temperature: maybe(0.05 + 1.9*r.Float64()), TopP: maybe(r.Float64()), MinP: maybe(r.Float64() * 0.3), TopK: int(maybe(float64(1 + r.IntN(vocab)))),
		PresencePenalty: maybe(4*r.Float64() - 2), FrequencyPenalty: maybe(4*r.Float64() - 2), RepetitionPenalty: maybe(0.5 + 1.5*r.Float64()),
		RepetitionWindow: r.IntN(6) - 1, Seed: r.Uint64(),
	}
	if r.IntN(3) == 0 {
		p.LogitBias = map[int32]float32{int32(r.IntN(vocab)): float32(20*r.Float64() - 10), int32(r.IntN(vocab)): 3}
	}
	return p
}

// The fast sampler and the naive one agree in every token of random sessions,
// including sessions that are cut back and continued differently.
func TestSamplerEqualsTheNaiveReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		vocab := 2 + r.IntN(120)
		p := randomParams(r, vocab)
		s := newSampler(t, p, vocab)
		h := History{}
		for range r.IntN(8) {
			h.Tokens = append(h.Tokens, int32(r.IntN(vocab)))
		}
		h.Prompt = len(h.Tokens)
		for range 25 {
			if r.IntN(8) == 0 {
				h.Tokens = h.Tokens[:h.Prompt+r.IntN(len(h.Tokens)-h.Prompt+1)]
			}
			logits := randomLogits(r, vocab, 0.2+4*r.Float64())
			want, _ := naive(p, logits, h, len(h.Tokens))
			got := sample(t, s, logits, h, len(h.Tokens))
			if int(got.Token) != want {
				t.Fatalf("%+v, history %v: chose %d, reference %d", p, h, got.Token, want)
			}
			h.Tokens = append(h.Tokens, got.Token)
		}
	}
}

// Every filter keeps exactly what sorting keeps.
func TestFiltersEqualSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 600 {
		vocab := 2 + r.IntN(500)
		p := Params{Temperature: 1, TopK: r.IntN(vocab + 3), TopP: r.Float64() * 1.1, MinP: r.Float64() * r.Float64()}
		p.TopP = min(p.TopP, 1)
		logits := randomLogits(r, vocab, 0.1+20*r.Float64()*r.Float64())
		_, want := naive(p, logits, History{}, 0)
		s := newSampler(t, p, vocab)
		best, err := largest(logits)
		if err != nil {
			t.Fatal(err)
		}
		c := s.cutoff(logits, best)
		for i, l := range logits {
			if c.passes(l, i) != want[i] {
				t.Fatalf("%+v: token %d (logit %g) passes %t, want %t", p, i, l, !want[i], want[i])
			}
		}
	}
}

// A session rescued at any point by a new sampler goes on as if undisturbed.
func TestResumedSessionDrawsTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	const vocab, steps = 64, 60
	for range 30 {
		p := randomParams(r, vocab)
		logits := make([][]float32, steps)
		for i := range logits {
			logits[i] = randomLogits(r, vocab, 2)
		}
		run := func(h History, from int, s *Sampler) []int32 {
			for i := from; i < steps; i++ {
				h.Tokens = append(h.Tokens, sample(t, s, logits[i], h, len(h.Tokens)).Token)
			}
			return h.Tokens
		}
		prompt := []int32{1, 2, 3}
		want := run(History{Tokens: slices.Clone(prompt), Prompt: 3}, 0, newSampler(t, p, vocab))
		for _, death := range []int{1, 7, steps - 1} {
			h := History{Tokens: slices.Clone(want[:3+death]), Prompt: 3}
			if got := run(h, death, newSampler(t, p, vocab)); !slices.Equal(got, want) {
				t.Fatalf("%+v: resumed after %d tokens:\n got %v\nwant %v", p, death, got, want)
			}
		}
	}
}

// Logits that differ by a computation's rounding give the same tokens, save for
// the rare near tie; a generator with state would give the same only as long as
// it never drew once more or less.
func TestTinyDifferencesHardlyEverChangeTheDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const vocab, draws = 1000, 3000
	s := newSampler(t, Params{Temperature: 0.8, Seed: 11}, vocab)
	changed := 0
	for pos := range draws {
		a := randomLogits(r, vocab, 2)
		b := slices.Clone(a)
		for i := range b {
			b[i] += float32(r.NormFloat64() * 1e-5)
		}
		if sample(t, s, a, History{}, pos).Token != sample(t, s, b, History{}, pos).Token {
			changed++
		}
	}
	if changed > 3 {
		t.Errorf("%d of %d draws changed with logits that differ by 1e-5", changed, draws)
	}
}

// Frequencies over positions, and over seeds, follow the softmax.
func TestFrequenciesFollowTheSoftmax(t *testing.T) {
	logits := []float32{2, 1, 0.5, 0, -0.5, -1, -2, 1}
	const draws = 60_000
	for _, temperature := range []float64{0.5, 1, 1.7} {
		expected := make([]float64, len(logits))
		sum := 0.0
		for i, l := range logits {
			expected[i] = math.Exp(float64(l) / temperature)
			sum += expected[i]
		}
		for name, draw := range map[string]func(i int) (seed uint64, position int){
			"positions": func(i int) (uint64, int) { return 42, i },
			"seeds":     func(i int) (uint64, int) { return uint64(i), 17 },
		} {
			seen := make([]int, len(logits))
			for i := range draws {
				seed, position := draw(i)
				s := newSampler(t, Params{Temperature: temperature, Seed: seed}, len(logits))
				seen[sample(t, s, logits, History{}, position).Token]++
			}
			chi := 0.0
			for i := range seen {
				e := expected[i] / sum * draws
				chi += (float64(seen[i]) - e) * (float64(seen[i]) - e) / e
			}
			// 7 degrees of freedom: 29.9 is exceeded once in 10,000 cases.
			if chi > 29.9 {
				t.Errorf("temperature %g over %s: chi-square %.1f, counts %v", temperature, name, chi, seen)
			}
		}
	}
}

// Draws at neighbouring positions, and of neighbouring seeds, are independent.
func TestNeighbouringDrawsAreIndependent(t *testing.T) {
	logits := make([]float32, 4)
	const draws = 64_000
	for name, pair := range map[string]func(i int) (a, b noise){
		"positions": func(i int) (a, b noise) { return newNoise(3, 2*i), newNoise(3, 2*i+1) },
		"seeds":     func(i int) (a, b noise) { return newNoise(uint64(2*i), 9), newNoise(uint64(2*i+1), 9) },
		"swapped":   func(i int) (a, b noise) { return newNoise(uint64(i), i+1), newNoise(uint64(i+1), i) },
	} {
		var table [4][4]int
		for i := range draws {
			a, b := pair(i)
			table[argmaxNoise(a, len(logits))][argmaxNoise(b, len(logits))]++
		}
		chi := 0.0
		for _, row := range table {
			for _, n := range row {
				d := float64(n) - draws/16
				chi += d * d / (draws / 16)
			}
		}
		// 15 degrees of freedom: 44.3 is exceeded once in 10,000 cases.
		if chi > 44.3 {
			t.Errorf("%s: chi-square %.1f, table %v", name, chi, table)
		}
	}
}

func argmaxNoise(n noise, k int) int {
	best := 0
	for i := range k {
		if n.uniform(i) < n.uniform(best) {
			best = i
		}
	}
	return best
}

func TestNoiseStaysInItsRange(t *testing.T) {
	for _, u := range []float64{0x1p-53, 0.5, 1 - 0x1p-53} {
		if g := gumbel(u); math.IsNaN(g) || math.IsInf(g, 0) || g >= maxGumbel {
			t.Errorf("gumbel(%g) = %g", u, g)
		}
	}
	r := rand.New(rand.NewPCG(9, 10))
	for range 100_000 {
		n, gap := newNoise(r.Uint64(), r.IntN(1<<20)), 45*r.Float64()-5
		u := n.uniform(r.IntN(1 << 18))
		if u <= 0 || u >= 1 {
			t.Fatalf("uniform gave %g", u)
		}
		if cannotReach(u, gap) && gumbel(u) > gap {
			t.Fatalf("gumbel(%g) = %g was said not to reach %g", u, gumbel(u), gap)
		}
	}
}
