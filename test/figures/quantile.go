package figures

import (
	"fmt"
	"slices"
	"time"
)

// Quantile returns the value below which the fraction q of the samples lies, by the
// nearest rank: a value that was measured, never one in between. It is zero
// without samples.
func Quantile(samples []time.Duration, q float64) time.Duration {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	rank := int(q*float64(len(sorted)) + 0.999999)
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Seconds prints a duration in seconds with three significant digits.
func Seconds(d time.Duration) string {
	s := d.Seconds()
	switch {
	case s >= 99.95:
		return fmt.Sprintf("%.0f", s)
	case s >= 9.995:
		return fmt.Sprintf("%.1f", s)
	case s >= 0.9995:
		return fmt.Sprintf("%.2f", s)
	}
	return fmt.Sprintf("%.3f", s)
}
