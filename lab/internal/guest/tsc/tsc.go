// Package tsc measures the frequency of the processor's time stamp counter.
//
// An emulated processor shows the host's counter. A guest finds out how fast
// it runs by comparing it with an emulated timer, and gets that wrong, by
// factors, when the host is busy: its clock then races for as long as it runs.
// The host can measure it exactly.
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

// measure takes the median of several measurements: each is off if the thread
// loses the processor between looking at one clock and at the other.
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
