//go:build !noengine && long

package test

// The full grids of `make test-long`.
const (
	long           = true
	gridStep       = 1
	manyStreams    = 50
	streamRounds   = 8
	leavingClients = 200
	leavingCrowds  = 40
	leavingCrowd   = 30
)

var silentTokens = []int{0, 1, 2, 8, 16, 24, 32, 40, 48, 56, 63}

// shapedTokens are tokens of a shaped answer before which a node dies.
var shapedTokens = []int{0, 1, 2, 3, 4, 5, 7, 9, 11, 13, 17, 19, 23, 27, 31, 37, 41, 43, 47}

// allDead are pieces of text after which every node dies.
var allDead = []int{1, 10, 20, 30, 40}

// twoKills are tokens of the first and of the second failure, and the first's stage.
var twoKills = [][3]int{{1, 2, 0}, {1, 63, 1}, {5, 6, 1}, {10, 40, 0}, {20, 21, 0}, {20, 60, 1}, {31, 33, 1}, {47, 62, 0}}

// replayKills are tokens of the first failure and of the substitute's.
var replayKills = [][2]int{{1, 0}, {8, 0}, {8, 7}, {20, 3}, {40, 0}, {40, 39}, {63, 1}, {63, 62}}

// shortDrills: none is.
var shortDrills = map[string][][2]string{}

// resetAt are pieces of text after which every connection of a node breaks.
var resetAt = []int{1, 2, 3, 5, 8, 12, 16, 20, 25, 30, 35, 40}
