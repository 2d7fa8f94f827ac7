//go:build !noengine && !long

package test

// The sampled grids of `make test`.
const (
	gridStep     = 13
	manyStreams  = 20
	streamRounds = 3
)

var silentTokens = []int{1, 40}
