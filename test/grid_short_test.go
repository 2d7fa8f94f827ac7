//go:build !noengine && !long

package test

// The sampled grids of `make test`.
const (
	long           = false
	gridStep       = 13
	manyStreams    = 20
	streamRounds   = 3
	leavingClients = 60
	leavingCrowds  = 10
	leavingCrowd   = 30
)

var silentTokens = []int{1, 40}

// shapedTokens are tokens of a shaped answer before which a node dies.
var shapedTokens = []int{2, 37}

// allDead are pieces of text after which every node dies.
var allDead = []int{15}

// twoKills are tokens of the first and of the second failure, and the first's stage.
var twoKills = [][3]int{{20, 40, 1}, {10, 11, 0}}

// replayKills are tokens of the first failure and of the substitute's.
var replayKills = [][2]int{{40, 0}, {40, 39}}

// shortDrills is what becomes shorter of the scripts that take long.
var shortDrills = map[string][][2]string{
	"flap.drill": {{"every 6s for 30s", "every 6s for 12s"}},
}

// resetAt are pieces of text after which every connection of a node breaks.
var resetAt = []int{3, 20}
