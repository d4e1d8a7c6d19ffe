package oversight

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/ownership"
)

var (
	worlds = flag.Uint64("worlds", 60, "how many worlds are played")
	from   = flag.Uint64("from", 0, "the first world that is played")
)

// lifetime is how long a world lives.
const lifetime = 6 * time.Minute

// plays lets a world live, and returns it at its end.
func plays(t *testing.T, seed uint64, v *ownership.Volume, p plant) (s *sim) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = newSim(t, seed, v, p)
		for time.Since(s.began) < lifetime && s.wrong == "" {
			s.step(nil)
		}
	})
	return s
}

func TestNoNodeThatMayWriteIsCalledFenced(t *testing.T) {
	fences, ended, takeovers := map[ownership.ProofKind]int{}, 0, 0
	for seed := *from; seed < *from+*worlds; seed++ {
		s := plays(t, seed, volumeOf(seed), plant{})
		if s.wrong != "" {
			t.Errorf("world %d: %s", seed, s.wrong)
		}
		for kind, n := range s.fences {
			fences[kind] += n
		}
		ended, takeovers = ended+s.ended, takeovers+s.takeovers
	}
	t.Logf("%d worlds of %s: fences %v, %d pods ended, %d takeovers", *worlds, lifetime, fences, ended, takeovers)
	for _, kind := range []ownership.ProofKind{ownership.OutOfService, ownership.PowerOff, ownership.SelfFenced} {
		if fences[kind] < 3 {
			t.Errorf("there are too few fences by %v to show anything", kind)
		}
	}
}

// volumeOf is a shared disk in every third world, and copies in the others.
func volumeOf(seed uint64) *ownership.Volume {
	if seed%3 == 0 {
		return shared()
	}
	return copies()
}

func TestEachMistakeOfAShellIsCaught(t *testing.T) {
	const patience = 600
	for name, mistake := range map[string]struct {
		plant
		// from is a world before the one that shows it.
		from uint64
	}{
		"a proof is gathered before the record":     {plant{oldProofs: true}, 0},
		"a conflict is passed over":                 {plant{blindWrites: true}, 0},
		"an error is taken for an absent record":    {plant{errorIsAbsent: true}, 20},
		"the record comes from the cache":           {plant{cachedRecord: true}, 15},
		"what was seen is kept over a broken watch": {plant{hiddenBreaks: true}, 160},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := mistake.from; seed < mistake.from+patience; seed++ {
				if s := plays(t, seed, volumeOf(seed), mistake.plant); s.wrong != "" {
					t.Logf("world %d: %s", seed, s.wrong)
					return
				}
			}
			t.Error("it was not caught")
		})
	}
}
