package keep

import (
	"context"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// cutOff cuts a world off until its guard is fenced.
func (w *world) cutOff() {
	w.set(func() { w.away = true })
	for !w.guard.Status().Fenced {
		w.watch(sampled)
	}
}

func TestAGuardIsFencedUntilItKnowsThatItIsNot(t *testing.T) {
	now := time.Hour
	for name, tc := range map[string]struct {
		boot   string
		kept   State
		fenced bool
	}{
		"nothing was kept":                         {boot: "boot", fenced: true},
		"nothing was kept, and no boot has a name": {fenced: true},
		"another boot":                             {"boot", State{Boot: "before", Renewed: now}, true},
		"the guard before was":                     {"boot", State{Boot: "boot", Fenced: true, Renewed: now}, true},
		"the guard before was not":                 {"boot", State{Boot: "boot", Renewed: now}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.kept = tc.kept
			c := w.config()
			c.Boot = tc.boot
			k, err := New(c)
			if err != nil || k.Status().Fenced != tc.fenced {
				t.Errorf("fenced: %t, %v", k.Status().Fenced, err)
			}
		})
	}
}

func TestThatAGuardIsFencedIsKeptAtOnce(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.cutOff()
		w.die()
		next, err := New(w.config())
		if err != nil || !next.Status().Fenced {
			t.Errorf("the next guard does not know it: %v", err)
		}
	})
}

func TestAVolumeThatIsOpenedAgainIsStoppedAgain(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		e := w.ready(ctx)
		for number := range uint64(3) {
			w.cutOff()
			w.watch(sampled)
			if w.writers["v"] {
				t.Fatalf("epoch %d is written after the guard was fenced", number+1)
			}
			if err := w.closes(e); err != nil {
				t.Fatal(err)
			}
			if err := w.guard.Closed(); err != nil {
				t.Fatal(err)
			}
			w.set(func() { w.away = false })
			w.watch(tick + sampled)
			e = epoch("v", number+2)
			if err := w.open(e); err != nil { // it does not wait until a renewal would be due
				t.Fatalf("after the agent's word: %v", err)
			}
			// Each proof is about one epoch.
			if n := len(w.guard.facts().Running); n != 1 {
				t.Errorf("%d volumes run", n)
			}
		}
	})
}

func TestAProofCountsWhileItIsRenewed(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.cutOff()
		w.watch(tick)
		w.set(func() { w.stops = 4 * time.Second })
		w.watch(time.Minute)
		w.sleep(time.Hour) // nothing begins anew meanwhile
		w.watch(tick)
		if got := w.reasons(); !slices.Equal(got, []string{"LeaseHeld", "CutOff", "Fenced"}) || w.resets > 0 {
			t.Errorf("it tells %v; %d resets", got, w.resets)
		}
	})
}

func TestWritersThatCannotBeStoppedAreTriedAgainEachSecond(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.hang = true })
		w.cutOff()
		tried := 0
		w.set(func() { tried = -w.tries })
		w.watch(3 * time.Second)
		w.set(func() { tried += w.tries })
		if tried < 2 || tried > 4 {
			t.Errorf("tried %d times in three seconds", tried)
		}
	})
}

func TestAMachineThatSleptIsResetSoonIfItsWritersDoNotStop(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.watch(tick)
		w.set(func() { w.hang = true })
		w.sleep(time.Minute)
		w.watch(guard.WatchdogSoon + 2*tick)
		if w.resets != 1 {
			t.Errorf("%v after it woke the machine was reset %d times", guard.WatchdogSoon+2*tick, w.resets)
		}
	})
}

func TestWritersStopInTimeIfThereIsNoPeerToAsk(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.alone = true
		w.ready(ctx)
		w.set(func() { w.down = true })
		w.watch(ownership.SelfFenceAfter + guard.RenewOpen)
		if w.writers["v"] || w.resets > 0 {
			t.Errorf("it writes: %v; %d resets", w.writers["v"], w.resets)
		}
	})
}

// The guard decides each second, at full seconds in these worlds. Each story ends before the next one.
func TestAGuardDecidesAtOnceWhenSomethingHasChanged(t *testing.T) {
	for name, tc := range map[string]struct {
		story func(w *world, ctx context.Context)
		after time.Duration
		want  func(w *world) bool
	}{
		"a renewal was answered": {func(w *world, ctx context.Context) {
			w.slow = tick / 2
			w.begin(ctx)
			w.watch(sampled)
			_ = w.guard.Closed()
		}, 3 * sampled, func(w *world) bool { return w.tells(string(ownership.LeaseHeld)) == 1 }},
		"the peers have answered": {func(w *world, ctx context.Context) {
			w.ready(ctx)
			w.set(func() { w.down, w.peers[0].slow, w.peers[1].slow = true, tick/2, tick/2 })
			for asked := 0; asked == 0; w.set(func() { asked = w.asked }) {
				w.watch(sampled)
			}
		}, 3 * sampled, func(w *world) bool { return w.tells(string(ownership.APIAway)) == 1 }},
		"an epoch begins": {func(w *world, ctx context.Context) {
			w.begin(ctx)
			_ = w.guard.Closed()
			w.watch(5*tick + sampled)
			w.set(func() { w.renewals = 0 })
			_ = w.open(epoch("v", 1))
		}, sampled, func(w *world) bool { return w.renewals == 1 }},
		"an epoch ends": {func(w *world, ctx context.Context) {
			e := w.ready(ctx)
			w.watch(sampled)
			_ = w.closes(e)
		}, sampled, func(w *world) bool { return !w.armed }},
		"writers have stopped": {func(w *world, ctx context.Context) {
			w.stops = tick / 2
			w.ready(ctx)
			w.cutOff()
		}, 3 * sampled, func(w *world) bool { return w.tells(string(guard.Fenced)) == 1 }},
		"the agent has closed all epochs": {func(w *world, ctx context.Context) {
			e := w.ready(ctx)
			w.cutOff()
			w.watch(sampled)
			_ = w.closes(e)
			w.watch(sampled)
			w.set(func() { w.away, w.renewals = false, 0 })
			_ = w.guard.Closed()
		}, sampled, func(w *world) bool { return w.renewals == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				tc.story(w, ctx)
				w.watch(tc.after)
				if !tc.want(w) {
					t.Errorf("it has not; it tells %q, and its lease was renewed %d times", w.told, w.renewals)
				}
			})
		})
	}
}
