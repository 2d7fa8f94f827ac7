//go:build long

package pool

func seeds(n int) int { return 10 * n }
