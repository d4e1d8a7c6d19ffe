//go:build !race

package shell

import "testing"

// usual is how many schedules a test run plays.
const usual = 100

// The race detector lets goroutines go on in another order each time.
func TestASeedGivesTheSameStory(t *testing.T) {
	for seed := range uint64(60) {
		p := planOf(seed)
		p.told = wholly
		one, two := play(t, seed, p, &mistake{}), play(t, seed, p, &mistake{})
		if a, b := one.tale.String(), two.tale.String(); a != b {
			t.Errorf("schedule %d has two stories:\n%s\n\n%s", seed, a, b)
		}
	}
}
