package keep

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// world is one machine, its API server and its watchdog, on the virtual clock of synctest.
type world struct {
	t    *testing.T
	dice *rand.Rand

	mu    sync.Mutex
	start time.Time
	// slept is how long the machine has slept: the boot clock counts it, timers do not.
	slept time.Duration
	// away: the API server does not answer. slow: it answers after a while. hang: stopping never ends.
	away, hang bool
	// deaf: the API server stores renewals, and the answers are lost.
	deaf bool
	slow time.Duration
	// stops is how long stopping takes.
	stops time.Duration
	// covered: the machine has a watchdog, which sleepless counts while the machine sleeps.
	covered, sleepless bool
	armed              bool
	// opened: the guard that runs has the watchdog open.
	opened bool
	fed    time.Duration
	resets int

	writers map[string]bool // what writes, in truth
	sent    time.Duration   // when the last renewal that was stored was sent
	heard   time.Duration   // when the last one that was answered was sent
	said    bool            // what the lease says of the watchdog
	kept    State
	guard   *Keeper
	die     func()
	ended   *atomic.Bool // the guard that runs now
	// late is when a writer was first seen to write after its time, moved by later sleep.
	late time.Duration
	// counts for the end of a test.
	renewals, stopped, granted int
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, dice: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), covered: true, writers: map[string]bool{}, sent: -1, heard: time.Hour}
}

func (w *world) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock()
}

// clock is called with the lock.
func (w *world) clock() time.Duration { return time.Hour + time.Since(w.start) + w.slept }

func (w *world) begin(ctx context.Context) {
	w.t.Helper()
	w.set(func() { w.opened = false })
	k, err := New(Config{
		Boot: "boot", Now: w.now, Lease: w, Writers: w, Watchdog: (*dog)(w), Store: w, Clock: clock.RealClock{}, Log: logr.Discard(),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, die := context.WithCancel(ctx)
	ended := &atomic.Bool{}
	w.set(func() { w.guard, w.ended = k, ended })
	w.die = func() { ended.Store(true); die() }
	go func() { _ = k.Run(ctx, nil) }()
}

// Renew is the API server's side.
func (w *world) Renew(ctx context.Context, says func() guard.Renewal) (int, error) {
	renewal := says()
	w.mu.Lock()
	sent, away, slow := w.clock(), w.away, w.slow
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(slow):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if away || w.away {
		return 0, errors.New("the API server does not answer")
	}
	if known := sent - w.heard; renewal.Silent < known {
		w.t.Errorf("a renewal says that the node was silent for %v, and it was for %v", renewal.Silent, known)
	}
	w.sent, w.said = sent, renewal.Watchdog
	w.renewals++
	if w.deaf {
		return 0, errors.New("the answer is lost")
	}
	w.heard = sent
	return 3, nil
}

func (w *world) Stop(h guard.Holding) error {
	w.mu.Lock()
	hang, stops, ended := w.hang, w.stops, w.ended
	w.mu.Unlock()
	if hang {
		time.Sleep(stops + 3*time.Second) //nolint:forbidigo // virtual time
		return errors.New("it does not end")
	}
	time.Sleep(stops) //nolint:forbidigo // virtual time
	w.mu.Lock()
	defer w.mu.Unlock()
	if ended.Load() { // a process that is dead stops nothing
		return errors.New("dead")
	}
	if w.writers[h.Device] {
		w.stopped++
	}
	w.writers[h.Device] = false
	return nil
}

func (w *world) Free(h guard.Holding) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writers[h.Device] {
		return errors.New("it is held")
	}
	return nil
}

func (w *world) Allow(guard.Holding) error { return nil }

func (w *world) Load() (State, error) { w.mu.Lock(); defer w.mu.Unlock(); return w.kept, nil }
func (w *world) Save(s State) error   { w.mu.Lock(); defer w.mu.Unlock(); w.kept = s; return nil }

// dog is the world as a watchdog.
type dog world

func (d *dog) Arm(time.Duration) error {
	w := (*world)(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.covered {
		return errors.New("no watchdog")
	}
	w.opened = true
	if !w.armed {
		w.armed, w.fed = true, w.clock()
	}
	return nil
}
func (d *dog) Armed() bool     { d.mu.Lock(); defer d.mu.Unlock(); return d.armed && d.opened }
func (d *dog) Promises() bool  { return d.Armed() }
func (d *dog) Stoppable() bool { return true }
func (d *dog) Disarm() error   { d.mu.Lock(); defer d.mu.Unlock(); d.armed = false; return nil }
func (d *dog) Feed() error {
	w := (*world)(d)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lateFor() > 2*tick && w.writing() {
		w.t.Errorf("the watchdog is fed %v after the last renewal, while something writes", w.clock()-w.sent)
	}
	w.fed = w.clock()
	return nil
}

func (w *world) writing() bool {
	for _, writes := range w.writers {
		if writes {
			return true
		}
	}
	return false
}

// lateFor is how long the machine has been awake since its time ran out.
func (w *world) lateFor() time.Duration {
	if w.late == 0 {
		return 0
	}
	return w.clock() - w.late
}

// watch looks at the world for a while, five times a second. A writer may run after its time only as long
// as the watchdog takes.
func (w *world) watch(d time.Duration) {
	for range int(d / (200 * time.Millisecond)) {
		time.Sleep(200 * time.Millisecond) //nolint:forbidigo // virtual time
		w.look()
	}
}

func (w *world) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	if w.armed && now-w.fed >= guard.WatchdogAfter {
		w.reset()
	}
	if now-w.sent < ownership.SelfFenceAfter || !w.writing() {
		w.late = 0
		return
	}
	if w.late == 0 {
		w.late = now
	}
	if w.said && w.lateFor() > ownership.SelfFenceMargin+2*tick {
		w.t.Errorf("something writes %v after the last renewal, and the machine was not reset", now-w.sent)
	}
}

// reset is the end of all that ran. It is called with the lock.
func (w *world) reset() {
	w.resets++
	w.armed, w.writers, w.kept = false, map[string]bool{}, State{}
	w.die()
}

// sleep lets the machine sleep.
func (w *world) sleep(d time.Duration) {
	w.mu.Lock()
	if w.armed && w.sleepless && w.clock()+d-w.fed >= guard.WatchdogAfter {
		w.reset()
	}
	w.slept += d
	if !w.sleepless {
		w.fed += d
		if w.late != 0 {
			w.late += d
		}
	}
	w.mu.Unlock()
}

func epoch(volume string, number uint64) guard.Epoch {
	return guard.Epoch{Volume: volume, Epoch: lineage.Epoch{Number: number, ID: "id"}, Holding: guard.Holding{Device: volume}}
}

// open is an agent that opens an epoch and lets its pod write, if it may.
func (w *world) open(e guard.Epoch) error {
	if _, err := w.guard.Open(e, "/agent"); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writers[e.Volume] = true
	w.granted++
	return nil
}

// closes is an agent that ends a pod and closes its epoch.
func (w *world) closes(e guard.Epoch) error {
	w.mu.Lock()
	w.writers[e.Volume] = false
	w.mu.Unlock()
	return w.guard.Close(e)
}
