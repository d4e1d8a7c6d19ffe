package explore_test

import (
	"flag"
	"slices"
	"testing"

	"berth.dev/berth/internal/explore"
)

var largeStates = flag.Int("large-states", 0, "how many states of each large world to visit; 0 visits a sample, -1 all")

// TestNoStateOfALargerWorldBreaksAnInvariant visits as many states as it is
// told to. Without the flag it is a sample, and says so.
func TestNoStateOfALargerWorldBreaksAnInvariant(t *testing.T) {
	states := *largeStates
	if states == 0 {
		states = 3_000
	}
	for _, b := range slices.Concat(explore.LargeBounds(), explore.UnfinishedBounds()) {
		t.Run(b.Name, func(t *testing.T) {
			b.MaxStates = max(states, 0)
			r := explore.Exhaust(b.Bounds, explore.Berth(), explore.Watch{})
			t.Log(r)
			if r.Violation != "" {
				t.Errorf("%s\n%s", r.Violation, story(explore.Outcome{Config: b.Settled(), Events: r.Events, Violation: r.Violation}))
			}
		})
	}
}
