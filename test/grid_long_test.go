//go:build !noengine && long

package test

// The full grids of `make test-long`.
const (
	gridStep     = 1
	manyStreams  = 50
	streamRounds = 8
)

var silentTokens = []int{0, 1, 2, 8, 16, 24, 32, 40, 48, 56, 63}
