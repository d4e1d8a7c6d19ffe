package shell

import "time"

// dice give numbers that follow from a seed and from what they are about, never from the order in which
// goroutines ask: two that run in the same moment cannot exchange theirs.
type dice uint64

// rolled are the dice about something, for the nth time.
func rolled(seed, nth uint64, about ...string) dice {
	h := seed ^ 0xcbf29ce484222325
	for _, word := range about {
		for i := range len(word) {
			h = (h ^ uint64(word[i])) * 0x100000001b3
		}
		h = (h ^ ' ') * 0x100000001b3
	}
	return dice(h + nth*0x9e3779b97f4a7c15)
}

func (d *dice) next() uint64 {
	*d += 0x9e3779b97f4a7c15
	z := uint64(*d)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below is a number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// chance is true once in n times.
func (d *dice) chance(n int) bool { return d.below(n) == 0 }

// upTo is a time to the nanosecond: hardly any two things happen in one moment, so that the moment gives
// them their order.
func (d *dice) upTo(most time.Duration) time.Duration {
	return time.Duration(d.next()%uint64(most)) + 1
}

// between is a time from low to high.
func (d *dice) between(low, high time.Duration) time.Duration { return low + d.upTo(high-low) }
