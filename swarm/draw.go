package swarm

// mix scrambles a draw (the finaliser of splitmix64, by Sebastiano Vigna), so
// that a plain counter makes well-spread chance.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// share turns a draw into a number in [0, 1).
func share(x uint64) float64 { return float64(mix(x)>>11) / (1 << 53) }
