package keep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/guard"
)

// diesHanging plays a node that is cut off from the API server, whose writers do not end, and whose guard
// stalls and dies some time after its last renewal.
func diesHanging(ctx context.Context, w *world, stalls, dies time.Duration) {
	w.ready(ctx)
	w.watch(guard.RenewOpen)
	w.set(func() { w.away, w.hang = true, true })
	for w.now()-w.sent < stalls {
		w.watch(sampled)
	}
	w.ended.Store(true)
	w.cancel() // it does nothing, and has the watchdog open
	for w.now()-w.sent < dies {
		w.watch(sampled)
	}
	w.die()
	w.watch(time.Minute) // controllers have a proof from 30 s on
	if w.resets != 1 {
		w.t.Errorf("stalled after %v and dead after %v, the machine was reset %d times", stalls, dies, w.resets)
	}
}

func TestTheMachineIsResetInTimeWheneverItsGuardStallsAndDies(t *testing.T) {
	for stalls := time.Duration(0); stalls < 31*time.Second; stalls += 1900 * time.Millisecond {
		for dies := stalls; dies < 31*time.Second; dies += 2300 * time.Millisecond {
			plays(t, func(w *world, ctx context.Context) { diesHanging(ctx, w, stalls, dies) })
		}
	}
}

func TestAnAPIThatIsAwayForAllStopsNoWriterWhenItGoesAndWhenItReturns(t *testing.T) {
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for i := range w.peers { // they renew at moments of their own
				w.peers[i].tried -= time.Duration(w.dice.Int64N(int64(guard.RenewIdle)))
			}
			w.ready(ctx)
			for range 3 {
				w.watch(time.Duration(w.dice.IntN(30_000)) * time.Millisecond)
				w.set(func() { w.down = true })
				w.watch(time.Duration(w.dice.IntN(10*60_000)) * time.Millisecond)
				w.set(func() { w.down = false })
			}
			w.watch(time.Minute)
			if !w.writers["v"] || w.resets > 0 || w.guard.Status().Fenced {
				t.Errorf("world %d: the pod was disturbed", seed)
			}
			if w.asked == 0 {
				t.Errorf("world %d: no peer was asked", seed)
			}
			w.die()
			time.Sleep(time.Minute) //nolint:forbidigo // virtual time, for what it had begun
		})
	}
}

func TestWritersStopWhenTooFewPeersSayThatTheAPIIsAway(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"they do not answer": func(w *world) { w.peers[0].mute, w.peers[1].mute = true, true },
		"they answer late":   func(w *world) { w.peers[0].slow, w.peers[1].slow = 2*time.Second, time.Minute },
		"they renew":         func(w *world) { w.away, w.down = true, false },
	} {
		t.Run(name, func(t *testing.T) {
			plays(t, func(w *world, ctx context.Context) {
				w.ready(ctx)
				w.set(func() { w.down = true; change(w) })
				w.watch(27 * time.Second)
				if w.writers["v"] || w.resets > 0 {
					t.Errorf("it writes: %v; %d resets", w.writers["v"], w.resets)
				}
			})
		})
	}
}

// TestARenewalWithoutAnAnswerCountsWithItsNodes: the node was alone, two nodes came, and the renewal that
// names them was stored and not answered.
func TestARenewalWithoutAnAnswerCountsWithItsNodes(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.set(func() { w.nodes = []string{"n0"} })
		w.ready(ctx)
		w.set(func() { w.nodes, w.deaf = []string{"n0", "n1", "n2"}, true })
		w.watch(guard.RenewOpen + tick)
		w.set(func() { w.away = true })
		w.watch(time.Minute)
		if w.writers["v"] {
			t.Error("the writer runs on by the majority of a set that is not the lease's")
		}
	})
}

func TestAnAnswerThatComesLateCountsFromTheQuestion(t *testing.T) {
	plays(t, func(w *world, ctx context.Context) {
		w.ready(ctx)
		w.set(func() { w.down, w.peers[0].slow, w.peers[1].mute = true, time.Second, true })
		exempted := func() time.Duration { w.mu.Lock(); defer w.mu.Unlock(); return w.kept.Exempted }
		for exempted() == 0 && w.now()-w.sent < time.Minute {
			w.watch(sampled)
		}
		if at := exempted(); at == 0 || at > w.askedAt {
			t.Errorf("asked at %v, the guard counts from %v", w.askedAt, at)
		}
	})
}
