package signal_test

import (
	"testing"

	"berth.dev/berth/internal/signal"
)

func TestASignalIsReceivedOnceHoweverOftenItWasSet(t *testing.T) {
	s := signal.New()
	received := func() bool {
		select {
		case <-s:
			return true
		default:
			return false
		}
	}
	if received() {
		t.Error("a new signal is set")
	}
	for range 3 {
		s.Set()
	}
	if !received() {
		t.Error("the signal is not set")
	}
	if received() {
		t.Error("the signal was received twice")
	}
	s.Set()
	if !received() {
		t.Error("the signal cannot be set again")
	}
}
