package explore

import "testing"

// caughtExhaustively are the mistakes that small bounds suffice to show, with any
// search: a run that reduces nothing found them within the same bounds.
var caughtExhaustively = map[string][]string{
	"a pod comes, writes and crashes": {"blind-writes", "any-epoch", "publish-without-epoch", "no-final-snapshot", "release-before-unmount",
		"newest-only"},
	"two pods take turns": {"publish-without-epoch", "own-tip", "no-final-snapshot", "release-before-unmount", "nobody-gives-up",
		"branch-stays", "newest-only"},
	"a shared disk changes hands":         {"blind-writes", "any-boot", "any-epoch"},
	"two nodes write a disk":              {"mine-alone", "takes-the-place", "detaches-a-writer"},
	"a shared disk that waits for a word": {"manual-is-automatic", "power-off-is-the-word"},
}

// TestMistakesAreCaughtExhaustively looks for mutants exhaustively, and plays its
// findings as schedules in which nothing is reduced.
func TestMistakesAreCaughtExhaustively(t *testing.T) {
	for _, b := range SmallBounds() {
		for _, name := range caughtExhaustively[b.Name] {
			t.Run(b.Name+"/"+name, func(t *testing.T) {
				m, ok := MutantNamed(name)
				if !ok {
					t.Fatal("there is no such mutant")
				}
				r := Exhaust(b.Bounds, m.Rules(), Watch{})
				if r.Violation == "" {
					t.Fatalf("nobody notices: %s", m.Mistake)
				}
				if v := Replay(b.Settled(), m.Rules(), r.Events, nil).Violation; v != r.Violation {
					t.Errorf("the search found %q, the schedule that it gives shows %q", r.Violation, v)
				}
			})
		}
	}
}
