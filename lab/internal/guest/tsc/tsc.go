// Package tsc measures the frequency of the processor's time stamp counter.
//
// An emulated processor shows the host's counter. A guest measures the counter's
// frequency by comparing it with an emulated timer. When the host is busy, the result
// is several times too high or too low, and the guest's clock then runs at the wrong
// speed as long as the guest runs. The host can measure the frequency exactly.
package tsc

import (
	"slices"
	"time"
)

// interval is long enough for an error of some parts in a million.
const interval = 20 * time.Millisecond

// counter reads the time stamp counter.
type counter func() uint64

// KiloHertz measures the frequency of this machine's counter, in kHz. It is 0
// on a processor that has none. It takes about a tenth of a second.
func KiloHertz() uint64 {
	if read == nil {
		return 0
	}
	start := time.Now()
	return measure(read, func() time.Duration { return time.Since(start) }, interval)
}

// measure returns the median of several measurements: one is wrong if the thread
// loses the processor between reading one clock and the other.
func measure(read counter, now func() time.Duration, interval time.Duration) uint64 {
	const times = 5
	var results []uint64
	for range times {
		since, ticks := now(), read()
		until, end := since, ticks
		for until-since < interval {
			until, end = now(), read()
		}
		results = append(results, uint64(float64(end-ticks)/float64(until-since)*float64(time.Second)/1000+0.5))
	}
	slices.Sort(results)
	return results[times/2]
}
