//go:build !long

package engines

// Sampled: the full numbers are those of the long tests.
const (
	streams  = 120
	requests = 600
)
