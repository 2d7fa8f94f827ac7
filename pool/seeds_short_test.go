//go:build !long

package pool

import "testing"

// seeds is how many random schedules a test runs: a sample here, ten times as
// many with the build tag long.
func seeds(n int) int {
	if testing.Short() {
		return max(1, n/10)
	}
	return n
}
