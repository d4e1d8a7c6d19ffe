package owner_test

import (
	"flag"
	"strings"
	"testing"
)

var attempts = flag.Uint64("attempts", 800, "how many schedules look for each planted mistake")

// planted are mistakes of a shell, each with what its author may have thought.
var planted = []struct {
	name, thought string
	mistake       mistakes
}{
	{"nil-on-store-error", "an error of the journal is logged, and the next write will do", mistakes{NilOnStoreError: true}},
	{"nil-on-read-error", "a record that cannot be read is as good as none", mistakes{NilOnReadError: true}},
	{"no-fsync", "a file that was renamed is on the disk", mistakes{NoFsync: true}},
	{"no-locks", "each step is correct by itself", mistakes{NoLocks: true}},
	{"conflict-swallowed", "a conflict means that the record is written", mistakes{ConflictSwallowed: true}},
	{"stale-reads", "the watch is up to date", mistakes{StaleReads: true}},
	{"guard-not-told", "the guard will see the mount", mistakes{GuardNotTold: true}},
	{"blind-reserve", "a node takes the reservation without knowing its holder", mistakes{BlindReserve: true}},
	{"answered-early", "the volume is unmounted, so the pod may go", mistakes{AnsweredEarly: true}},
	{"unmount-unproved", "an unmount that succeeded has written everything", mistakes{UnmountUnproved: true}},
}

func TestPlantedMistakesOfAShellAreCaught(t *testing.T) {
	for _, p := range planted {
		t.Run(p.name, func(t *testing.T) {
			for seed := range *attempts {
				nodes := 2 + int(seed%2)
				if c := run(t.Context(), seed, nodes, p.mistake); c.violation != "" && !strings.HasPrefix(c.violation, "rest:") {
					t.Logf("schedule %d with %d nodes: %s", seed, nodes, c.violation)
					return
				}
			}
			t.Errorf("%d schedules show nothing wrong with: %s", *attempts, p.thought)
		})
	}
}
