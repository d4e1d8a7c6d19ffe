package figures

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a figure and the interval that contains it with a confidence of 95 %.
type Interval struct{ Value, Low, High float64 }

// String returns the interval alone. One round has none.
func (i Interval) String() string {
	if i.Low == i.High {
		return "-"
	}
	return fmt.Sprintf("%s to %s", Digits(i.Low), Digits(i.High))
}

// resamples is how many times the rounds are drawn again.
const resamples = 10_000

// Ratio returns the geometric mean of the rounds' ratios of a to b, with a bootstrap
// interval: it draws the rounds again with replacement, many times, and the middle 95 %
// of the results is the interval. The draws are always the same.
func Ratio(a, b []float64) Interval {
	logs := make([]float64, min(len(a), len(b)))
	for i := range logs {
		logs[i] = math.Log(a[i] / b[i])
	}
	if len(logs) == 0 {
		return Interval{math.NaN(), math.NaN(), math.NaN()}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not a secret
	means := make([]float64, resamples)
	for i := range means {
		total := 0.0
		for range logs {
			total += logs[random.IntN(len(logs))]
		}
		means[i] = total / float64(len(logs))
	}
	slices.Sort(means)
	return Interval{math.Exp(mean(logs)), math.Exp(means[resamples*25/1000]), math.Exp(means[resamples*975/1000-1])}
}

func mean(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total / float64(len(values))
}

// Median returns the median of values, or NaN if there are none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Digits prints three significant digits, and a dash for NaN and infinity.
func Digits(v float64) string {
	switch abs := math.Abs(v); {
	case math.IsNaN(v), math.IsInf(v, 0):
		return "-"
	case abs >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case abs >= 9.995:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}
