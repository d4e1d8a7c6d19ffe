package tsc

import (
	"testing"
	"time"
)

// fake is a clock and a counter that run evenly, except for a pause now and
// then between reading one and reading the other.
type fake struct {
	at    time.Duration
	looks int
	pause func(look int) time.Duration
}

func (f *fake) now() time.Duration {
	f.at += time.Microsecond
	return f.at
}

func (f *fake) read() uint64 {
	f.looks++
	f.at += f.pause(f.looks)
	return uint64(f.at) * 2 // 2 GHz
}

func TestFrequencyIsMeasuredInKiloHertz(t *testing.T) {
	f := &fake{pause: func(int) time.Duration { return 0 }}
	if got := measure(f.read, f.now, time.Millisecond); got != 2_000_000 {
		t.Errorf("got %d kHz, want 2000000", got)
	}
}

func TestMeasurementThatWasInterruptedDoesNotCount(t *testing.T) {
	f := &fake{pause: func(look int) time.Duration {
		if look == 1 || look == 2000 { // in two of the five measurements
			return time.Second
		}
		return 0
	}}
	if got := measure(f.read, f.now, time.Millisecond); got != 2_000_000 {
		t.Errorf("got %d kHz, want 2000000", got)
	}
}
