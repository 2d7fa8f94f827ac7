//go:build long

package engines

const (
	streams  = 2000
	requests = 50_000
)
