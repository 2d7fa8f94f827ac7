//go:build !long

package engines

// Sampled: the full numbers are those of the long tests.
const (
	streams  = 200
	requests = 1500
)
