package keep

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/guard"
)

// reasons are those of the decisions that the guard has logged.
func (w *world) reasons() (out []string) {
	w.set(func() {
		for _, entry := range w.told {
			if _, reason, ok := strings.Cut(entry, `"reason"="`); ok {
				out = append(out, strings.TrimSuffix(reason, `"`))
			}
		}
	})
	return out
}

// tells is how often an entry of the log has a text.
func (w *world) tells(text string) (n int) {
	w.set(func() {
		for _, entry := range w.told {
			n += strings.Count(entry, text)
		}
	})
	return n
}

func TestAGuardTellsOfEachDecisionOnceAndOfNoRenewal(t *testing.T) {
	for name, tc := range map[string]struct {
		hang bool
		want []string
		// fails is how often it logs as an error that writers run on.
		fails int
	}{
		"the writers stop":        {false, []string{"LeaseHeld", "CutOff", "Fenced"}, 0},
		"the writers do not stop": {true, []string{"LeaseHeld", "CutOff", "NotStoppedNoWatchdog"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				w.set(func() { w.covered = false })
				w.ready(ctx)
				w.watch(time.Minute)
				w.set(func() { w.away, w.hang = true, tc.hang })
				w.watch(25 * time.Second)
				w.set(func() { w.writers["v"] = false }) // else look would say that it writes, and no watchdog ends that
				w.watch(10 * time.Second)
				if got := w.reasons(); !slices.Equal(got, tc.want) {
					t.Errorf("it tells %v, not %v", got, tc.want)
				}
				if said := w.tells(`"msg"="writers run on" "error"=`); said != tc.fails {
					t.Errorf("it says %d times that writers run on", said)
				}
			})
		})
	}
}

func TestAGuardTellsWhatItsNextOneWillNotKnowAndWhenTheMachineMayBeReset(t *testing.T) {
	for told, harm := range map[string]func(w *world){
		"a guard that follows this one does not know of this renewal":         func(w *world) { w.full = true },
		"a guard that follows this one does not know that it is fenced":       func(w *world) { w.away, w.full = true, true },
		"the peers are without the API, too, and that could not be kept":      func(w *world) { w.down, w.full = true, true },
		"the watchdog may reset this machine":                                 func(w *world) { w.broken = true },
		"the writers of a volume are not stopped yet":                         func(w *world) { w.away, w.hang = true, true },
		"the watchdog does not reset this machine if the guard dies, so no o": func(w *world) { w.covered = false },
	} {
		t.Run(told, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				w.ready(ctx)
				w.watch(guard.RenewOpen)
				w.die()
				w.begin(ctx)
				if before := w.tells(told); before > 0 {
					t.Errorf("it tells %d times of it before anything is amiss", before)
				}
				w.set(func() { harm(w) })
				w.die()
				w.begin(ctx)
				w.watch(27 * time.Second)
				if w.tells(told) == 0 {
					t.Errorf("it tells only %q", w.told)
				}
			})
		})
	}
}

func TestTheGuardReadsTheIDAndTheClockOfThisBoot(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	id, err := Boot()
	if err != nil || id == "" || id+"\n" != string(text) {
		t.Errorf("the boot is %q, %v", id, err)
	}
	before := Now()
	if after := Now(); before <= 0 || after < before {
		t.Errorf("the clock says %v, and then %v", before, after)
	}
}
