package shell

import (
	"flag"
	"slices"
	"testing"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/controller/oversight"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/publish/staging"
)

// mistake is one of a shell. It is made where the shell meets the world, so the product has no hooks for it. The
// zero mistake is none: the product.
type mistake struct {
	class class
	name  string
	// thought is what its author may have thought.
	thought string
	// seen is a schedule that showed it, where the search begins.
	seen uint64
	// ofCopies: it is looked for where volumes are copies.
	ofCopies bool
	// ofMany: it is looked for where two pods write each disk.
	ofMany bool

	files      seam[journal.Files]
	disks      seam[shared.Disks]
	copies     seam[owner.Pools]
	node       seam[*owner.Node]
	world      seam[owner.World]
	locks      seam[staging.Locks]
	calls      seam[staging.Owner]
	guard      seam[keep.Config]
	controller seam[*oversight.Reconciler]
}

func (x *mistake) plan(seed uint64) plan {
	if x.ofCopies {
		return planOfCopies(seed)
	}
	if x.ofMany {
		return planOfTogether(seed)
	}
	return planOf(seed)
}

// seam puts a mistake in the place of what a process has.
type seam[T any] func(p *process, right T) T

// of returns what a process has.
func (s seam[T]) of(p *process, right T) T {
	if s == nil {
		return right
	}
	return s(p, right)
}

// class of mistakes.
type class string

const (
	nilOnError    class = "nil on error"
	noFsync       class = "no fsync"
	lockDropped   class = "lock dropped"
	conflictLost  class = "conflict swallowed"
	answeredEarly class = "acknowledged before applied"
	staleRead     class = "stale read"
	outOfOrder    class = "a step left out"
)

var planted = slices.Concat(mistakesOfAgents, mistakesOfDisks, mistakesOfCopies, mistakesOfMany, mistakesOfGuards, mistakesOfControllers)

// attempts is how many schedules look for each mistake.
var attempts = flag.Uint64("attempts", 300, "how many schedules look for each planted mistake")

func TestPlantedMistakesOfAShellAreCaught(t *testing.T) {
	for i := range planted {
		x := &planted[i]
		t.Run(x.name, func(t *testing.T) {
			began := processor()
			for n := range *attempts {
				seed := x.seen + n
				w := play(t, seed, x.plan(seed), x)
				if w.broken() == "" {
					continue
				}
				t.Logf("%s: schedule %d (%v): %s", x.class, seed, processor()-began, w.broken())
				if *story {
					t.Log(shrunk(t, w))
				}
				return
			}
			t.Errorf("%d schedules show nothing wrong with: %s", *attempts, x.thought)
		})
	}
}

func TestMistakesOfEachClassArePlanted(t *testing.T) {
	names, classes := map[string]bool{}, map[class]int{}
	for i := range planted {
		names[planted[i].name] = true
		classes[planted[i].class]++
	}
	if len(names) < 20 || len(names) != len(planted) {
		t.Errorf("%d mistakes with %d names", len(planted), len(names))
	}
	for _, c := range []class{nilOnError, noFsync, lockDropped, conflictLost, answeredEarly, staleRead} {
		if classes[c] < 2 {
			t.Errorf("%d mistakes of the class %q", classes[c], c)
		}
	}
}
