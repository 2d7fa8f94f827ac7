package measure

import (
	"cmp"
	"math"
	"slices"
)

// Percentile is the smallest value that at least the share q of all values does
// not exceed (the nearest-rank definition); q is in 0..1. It is zero for no values.
// It is exact: samples here are small.
func Percentile[T cmp.Ordered](values []T, q float64) T {
	if len(values) == 0 {
		var none T
		return none
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(q*float64(len(sorted)) - 1e-9))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the middle value, or the mean of the two in the middle; 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Quotients divides round by round; rounds that one side lacks, or that have
// nothing below the line, are left out.
func Quotients(above, below []float64) []float64 {
	var out []float64
	for i := range min(len(above), len(below)) {
		if below[i] > 0 {
			out = append(out, above[i]/below[i])
		}
	}
	return out
}
