package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// interval is a figure and the interval that holds it with a confidence of 95 %.
type interval struct{ value, low, high float64 }

// String is the interval alone. One round has none.
func (i interval) String() string {
	if i.low == i.high {
		return "-"
	}
	return fmt.Sprintf("%s to %s", digits(i.low), digits(i.high))
}

// resamples is how many times the rounds are drawn again.
const resamples = 10_000

// ratio is the geometric mean of the rounds' ratios of a to b, with a bootstrap
// interval: the rounds are drawn again with replacement, many times over, and the
// middle 95 % of what comes out is the interval. The draws are always the same.
func ratio(a, b []float64) interval {
	logs := make([]float64, min(len(a), len(b)))
	for i := range logs {
		logs[i] = math.Log(a[i] / b[i])
	}
	if len(logs) == 0 {
		return interval{math.NaN(), math.NaN(), math.NaN()}
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
	return interval{math.Exp(mean(logs)), math.Exp(means[resamples*25/1000]), math.Exp(means[resamples*975/1000-1])}
}

func mean(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total / float64(len(values))
}

// median of values, or NaN of none.
func median(values []float64) float64 {
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
