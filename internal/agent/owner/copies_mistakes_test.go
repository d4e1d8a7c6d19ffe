package owner_test

import (
	"strings"
	"testing"
)

// plantedInCopies are mistakes of a shell of copies, each with what its author may have thought. Others, such as
// a rollback before the branch is kept, or a release before the unmount, do no harm: the pool, or the guard,
// refuses what follows.
var plantedInCopies = []struct {
	name, thought string
	mistake       copyMistakes
}{
	{"nil-on-read-error", "a record that cannot be read is as good as none", copyMistakes{NilOnReadError: true}},
	{"no-locks", "each step is correct by itself", copyMistakes{NoLocks: true}},
	{"conflict-swallowed", "a conflict means that the record is written", copyMistakes{ConflictSwallowed: true}},
	{"stale-reads", "the watch is up to date", copyMistakes{StaleReads: true}},
	{"guard-not-told", "the guard will see the mount", copyMistakes{GuardNotTold: true}},
	{"answered-early", "the volume is unmounted, so the pod may go", copyMistakes{AnsweredEarly: true}},
	{"mounts-as-it-is", "the head is what the newest point has", copyMistakes{MountsAsItIs: true}},
	{"forgets-branches", "what was rolled back is not needed any more", copyMistakes{ForgetsBranches: true}},
}

func TestPlantedMistakesOfAShellOfCopiesAreCaught(t *testing.T) {
	for _, p := range plantedInCopies {
		t.Run(p.name, func(t *testing.T) {
			for seed := range *attempts {
				nodes := 2 + int(seed%2)
				if f := follow(t.Context(), seed, nodes, p.mistake); f.violation != "" && !strings.HasPrefix(f.violation, "rest:") {
					t.Logf("schedule %d with %d nodes: %s", seed, nodes, f.violation)
					return
				}
			}
			t.Errorf("%d schedules show nothing wrong with: %s", *attempts, p.thought)
		})
	}
}
