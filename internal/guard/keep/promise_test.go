package keep

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/ownership"
)

// TestNoWriterOutlivesItsTimeUnlessTheMachineIsReset plays random sequences of faults and asks after
// each fifth of a second whether a writer runs that must not.
func TestNoWriterOutlivesItsTimeUnlessTheMachineIsReset(t *testing.T) {
	worlds, resets, stops, granted := 120, 0, 0, 0
	if testing.Short() {
		worlds = 60
	}
	for seed := range uint64(worlds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w.begin(ctx)
				for range 80 {
					w.event(ctx)
				}
				w.die()
				time.Sleep(time.Minute) //nolint:forbidigo // virtual time, for what it had begun
				resets, stops, granted = resets+w.resets, stops+w.stopped, granted+w.granted
			})
		})
	}
	t.Logf("%d worlds: %d epochs, %d writers stopped, %d machines reset", worlds, granted, stops, resets)
	if resets == 0 || stops == 0 || granted < worlds {
		t.Error("the worlds are too quiet to show anything")
	}
}

// event is one thing that happens, and a while after it.
func (w *world) event(ctx context.Context) {
	volumes := []string{"a", "b"}
	e := epoch(volumes[w.dice.IntN(2)], 1)
	resets := w.resets
	switch w.dice.IntN(20) {
	case 0:
		w.set(func() { w.away = true })
	case 1, 2:
		w.set(func() { w.away, w.down = false, false })
	case 16:
		w.set(func() { w.down = true })
	case 3:
		w.set(func() { w.slow = time.Duration(w.dice.IntN(5000)) * time.Millisecond })
	case 4:
		w.set(func() { w.hang = !w.hang; w.stops = time.Duration(w.dice.IntN(7000)) * time.Millisecond })
	case 5:
		w.set(func() { w.sleepless = !w.sleepless })
		w.sleep(time.Duration(w.dice.IntN(90)) * time.Second)
	case 6: // the guard dies, and another one begins after a while
		w.die()
		w.watch(time.Duration(w.dice.IntN(15)) * time.Second)
		w.begin(ctx)
	case 7:
		w.set(func() { w.covered = !w.covered })
	case 12:
		w.set(func() { w.deaf = !w.deaf })
	case 13:
		w.set(func() { p := w.anyPeer(); p.cut = !p.cut })
	case 14:
		w.set(func() { p := w.anyPeer(); p.mute, p.slow = !p.mute, time.Duration(w.dice.IntN(2000))*time.Millisecond })
	case 15: // storage nodes come and go
		w.set(func() {
			w.nodes = [][]string{{"n0"}, {"n0", "n1"}, {"n0", "n1", "n2"}, {"n0", "n1", "n2"}}[w.dice.IntN(4)]
		})
	case 8, 9:
		_ = w.closes(e)
	default: // the agent opens, and gives its word when it has closed all
		if w.open(e) == nil {
			break
		}
		if w.guard.Status().Fenced {
			for _, e := range w.guard.Status().Open {
				_ = w.closes(e)
			}
			_ = w.guard.Closed()
		}
	}
	w.watch(time.Duration(w.dice.IntN(30_000)) * time.Millisecond)
	if w.resets != resets { // the machine boots
		w.die()
		w.begin(ctx)
	}
}

func (w *world) anyPeer() *peer { return &w.peers[w.dice.IntN(len(w.peers))] }

func (w *world) set(change func()) { w.mu.Lock(); defer w.mu.Unlock(); change() }

// ready brings a world to where a volume is written under a lease.
func (w *world) ready(ctx context.Context) guard.Epoch {
	w.t.Helper()
	w.begin(ctx)
	e := epoch("v", 1)
	if err := w.open(e); err == nil {
		w.t.Error("a guard that was just begun lets an epoch begin")
	}
	if err := w.guard.Closed(); err != nil {
		w.t.Fatal(err)
	}
	w.watch(2 * time.Second)
	if err := w.open(e); err != nil {
		w.t.Fatal(err)
	}
	return e
}

// plays runs a story in a world of its own.
func plays(t *testing.T, story func(w *world, ctx context.Context)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		story(w, ctx)
		w.die()
		time.Sleep(time.Minute) //nolint:forbidigo // virtual time, for what it had begun
	})
}

func TestAGuardKeepsItsPromiseForAnHourWithoutAnAgent(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		before := w.renewals
		w.watch(time.Hour)
		if !w.writers["v"] || w.resets > 0 {
			t.Error("the pod was disturbed")
		}
		if said := w.guard.Status().Message; said == "" {
			t.Error("the guard does not say what it does")
		}
		if renewed := w.renewals - before; renewed < 880 || renewed > 905 {
			t.Errorf("renewed %d times in an hour with an epoch open, every four seconds are 900", renewed)
		}
	})
}

func TestAGuardThatIsReplacedInTimeDisturbsNoPod(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.watch(2 * time.Second)
		w.die()
		w.watch(8 * time.Second)
		w.begin(ctx)
		w.watch(time.Minute)
		if !w.writers["v"] || w.resets > 0 {
			t.Error("the pod was disturbed")
		}
	})
}

func TestAMachineWhoseGuardIsDeadIsReset(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.die()
		w.watch(guard.WatchdogAfter + tick)
		if w.resets != 1 {
			t.Error("it runs on")
		}
	})
}

func TestWritersStopWhenTheAPIIsAwayAndNothingIsRenewedBeforeTheAgentsWord(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		e := w.ready(ctx)
		w.set(func() { w.away = true })
		w.watch(27 * time.Second)
		if w.writers["v"] || w.resets > 0 {
			t.Error("the writer runs on, or the machine was reset for nothing")
		}
		w.set(func() { w.away = false })
		before := w.renewals
		w.watch(time.Minute)
		if w.renewals != before {
			t.Error("the node looks alive, although its epoch was not closed")
		}
		if err := w.guard.Closed(); err == nil || err.Error() != "epochs are open of v: close them first" {
			t.Errorf("the guard takes the agent's word while an epoch is open: %v", err)
		}
		if err := w.open(e); err == nil {
			t.Error("an epoch that was stopped is continued")
		}
		if err := w.closes(e); err != nil {
			t.Fatal(err)
		}
		if err := w.guard.Closed(); err != nil {
			t.Fatal(err)
		}
		w.watch(2 * time.Second)
		if err := w.open(epoch("v", 2)); err != nil {
			t.Errorf("the next epoch: %v", err)
		}
	})
}

func TestAProofThatCannotBeRenewedIsNone(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.away = true })
		w.watch(27 * time.Second)
		if w.resets > 0 {
			t.Fatal("the machine was reset for nothing")
		}
		w.set(func() { w.hang, w.stops = true, 50*time.Second })
		w.watch(proven + stale + guard.WatchdogAfter + 2*tick)
		if w.resets != 1 {
			t.Error("the watchdog is fed, although nothing tells whether something writes")
		}
	})
}

func TestAnEpochIsNotClosedWhileTheGuardStopsItsWriters(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		e := w.ready(ctx)
		w.set(func() { w.away, w.stops = true, 3*time.Second })
		for !w.guard.Status().Fenced {
			w.watch(tick / 5)
		}
		if err := w.closes(e); err == nil {
			t.Error("a Stop that wakes later meets the next epoch")
		}
		w.watch(4 * time.Second)
		for range 20 { // between two proofs
			if w.closes(e) == nil {
				return
			}
			w.watch(time.Second)
		}
		t.Error("it is never closed")
	})
}

func TestAMachineThatSleptStopsItsWritersBeforeItRenews(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		before := w.renewals
		w.sleep(time.Minute)
		w.watch(3 * time.Second)
		if w.writers["v"] || w.renewals != before {
			t.Errorf("it writes: %v; it renewed %d times", w.writers["v"], w.renewals-before)
		}
	})
}

func TestWritersThatDoNotStopAreLeftToTheWatchdog(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.hang, w.away = true, true })
		w.watch(32 * time.Second)
		if w.resets != 1 {
			t.Errorf("the machine was reset %d times", w.resets)
		}
	})
}

func TestAnEpochWithoutAWatchdogBeginsOnlyWhenTheLeaseSaysSo(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		e := w.ready(ctx)
		w.watch(6 * time.Second)
		if !w.said {
			t.Error("the lease does not say that there is a watchdog")
		}
		if err := w.closes(e); err != nil {
			t.Fatal(err)
		}
		w.watch(time.Second)
		if w.armed {
			t.Error("a machine with nothing open would be reset")
		}
		w.set(func() { w.covered = false })
		if err := w.open(epoch("v", 2)); err == nil {
			t.Error("an epoch begins that the lease says is covered")
		}
		w.watch(11 * time.Second)
		warning, err := w.guard.Open(epoch("v", 2))
		if err != nil || warning == "" || w.said {
			t.Errorf("without a watchdog: warning %q, %v; the lease says %v", warning, err, w.said)
		}
	})
}

func TestAnEpochIsNotClosedWhileSomethingHoldsTheVolume(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		e := w.ready(ctx)
		if err := w.guard.Close(e); err == nil {
			t.Error("it is closed")
		}
		if err := w.guard.Close(epoch("v", 9)); err == nil {
			t.Error("another epoch's word closes it")
		}
		if err := w.guard.Close(epoch("unknown", 1)); err != nil {
			t.Errorf("a volume that is not open: %v", err)
		}
		w.watch(time.Minute)
		if !w.writers["v"] {
			t.Error("the pod was disturbed")
		}
	})
}

func TestAGuardThatIsAskedToEndGoesOnUntilNothingIsOpen(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.asks = make(chan struct{})
		e := w.ready(ctx)
		close(w.asks)
		w.watch(time.Minute)
		select {
		case <-w.done:
			t.Fatal("it ended while a pod writes")
		default:
		}
		if err := w.closes(e); err != nil {
			t.Fatal(err)
		}
		<-w.done
		if w.armed || w.resets > 0 {
			t.Error("the watchdog was left to reset the machine")
		}
	})
}

func TestANodeWhoseRenewalsAreStoredUnheardStopsAndSaysSo(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.deaf = true })
		before := w.renewals
		w.watch(ownership.SelfFenceAfter + 7*time.Second)
		if w.renewals == before || w.writers["v"] || w.resets > 0 {
			t.Errorf("%d renewals were stored; it writes: %v; %d resets", w.renewals-before, w.writers["v"], w.resets)
		}
	})
}

func TestAGuardThatComesTooLateLeavesTheMachineToTheWatchdog(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.away = true })
		for w.now()-w.sent < ownership.SelfFenceAfter-guard.Fresh {
			w.watch(sampled)
		}
		w.die()
		for w.now()-w.sent < ownership.SelfFenceAfter+sampled {
			w.watch(sampled)
		}
		if w.resets > 0 {
			t.Fatal("the machine was reset before the next guard began")
		}
		if w.begin(ctx); w.opened {
			t.Error("it opened the watchdog, which feeds it")
		}
		w.watch(guard.WatchdogAfter)
		if w.resets != 1 {
			t.Errorf("the machine was reset %d times", w.resets)
		}
	})
}

func TestTheWatchdogIsNotFedByADecisionThatIsOld(t *testing.T) {
	w := newWorld(t, 1)
	w.kept = State{Boot: "boot", Renewed: w.now(), Open: []guard.Epoch{epoch("v", 1)}}
	calls := time.Duration(0)
	k, err := New(w.config())
	if err != nil {
		t.Fatal(err)
	}
	k.renewing = true // this step shall not renew
	for stall, fed := range map[time.Duration]bool{tick / 2: true, 2 * tick: false} {
		w.fed, calls = 0, 0
		k.c.Now = func() time.Duration { calls++; return w.now() + calls*stall }
		if k.step(t.Context()); (w.fed != 0) != fed {
			t.Errorf("fed: %t, when the process stalled for %v between the decision and that", w.fed != 0, stall)
		}
	}
}
