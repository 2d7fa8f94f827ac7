package sampling

import "math"

// Noise comes from SplitMix64 (Steele, Lea and Flood, "Fast splittable
// pseudorandom number generators", 2014), whose n-th output is a function of
// start and n alone. The start is a hash of seed and position, n is the token.

const goldenGamma = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, odd

func mix64(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// noise is the random numbers of one position.
type noise uint64

func newNoise(seed uint64, position int) noise {
	return noise(mix64(mix64(seed+goldenGamma) + (uint64(position)+1)*goldenGamma))
}

// uniform returns an odd multiple of 2^-53 in the open interval (0, 1).
func (n noise) uniform(token int) float64 {
	h := mix64(uint64(n) + (uint64(token)+1)*goldenGamma)
	return (float64(h>>12) + 0.5) * 0x1p-52
}

// gumbel turns a uniform number into a standard Gumbel variable. The largest of
// score + noise over all tokens is distributed as the softmax of the scores
// (Gumbel 1954; Maddison, Tarlow and Minka 2014). Small u gives large noise:
// winners are computed near 0, where floating point resolves best.
func gumbel(u float64) float64 {
	return -math.Log(-math.Log1p(-u))
}

// maxGumbel is above the noise of the smallest possible u, 2^-53.
const maxGumbel = 37

// expTable[k] is exp(-k): a bound that rejects most tokens without logarithms.
var expTable = func() (t [maxGumbel]float64) {
	for k := range t {
		t[k] = math.Exp(-float64(k))
	}
	return t
}()

// cannotReach says that noise from u is surely below gap: -log(1-u) >= u, so
// gumbel(u) <= -log(u), which is below gap when u > exp(-gap).
func cannotReach(u, gap float64) bool {
	return gap > 0 && (gap >= maxGumbel || u > expTable[int(gap)])
}
