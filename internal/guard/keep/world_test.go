package keep

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/lineage"
)

// world is one machine, its API server and its watchdog, on the virtual clock of synctest.
type world struct {
	t    *testing.T
	dice *rand.Rand

	mu    sync.Mutex
	start time.Time
	// slept is how long the machine has slept: the boot clock counts it, timers do not.
	slept time.Duration
	// away: the API server does not answer this node; down: it answers no node. slow: it answers after a
	// while. hang: stopping fails.
	away, down, hang bool
	// deaf: the API server stores renewals, and the answers are lost.
	deaf bool
	slow time.Duration
	// stops is how long stopping takes, and tries is how often it began.
	stops time.Duration
	tries int
	// full: nothing can be kept any more. broken: the watchdog takes no feeding.
	full, broken bool
	// alone: the guard has no peers that it could ask.
	alone bool
	// covered: the machine has a watchdog, which sleepless counts while the machine sleeps.
	covered, sleepless bool
	armed              bool
	// opened: the guard that runs has the watchdog open. within is how long after fed it resets.
	opened bool
	fed    time.Duration
	within time.Duration
	resets int
	// woke is when the machine last woke.
	woke  time.Duration
	peers [2]peer

	writers map[string]bool // what writes, in truth
	sent    time.Duration   // when the last renewal that was stored was sent
	heard   time.Duration   // when the last one that was answered was sent
	said    bool            // what the lease says of the watchdog
	named   []string        // the storage nodes that the lease names
	// nodes are the storage nodes that the API server lists.
	nodes  []string
	kept   State
	guard  *Keeper
	die    func()
	cancel context.CancelFunc
	// asks asks the guard to end, and done is closed when it has.
	asks, done chan struct{}
	ended      *atomic.Bool // the guard that runs now
	// counts for the end of a test.
	renewals, stopped, granted, asked int
	askedAt                           time.Duration // when peers were last asked
	told                              []string      // what the guards have logged
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, ended: &atomic.Bool{}, dice: rand.New(rand.NewPCG(seed, 1)), start: time.Now(), covered: true, writers: map[string]bool{}, heard: time.Hour}
	w.nodes = []string{"n0", "n1", "n2"}
	for i := range w.peers {
		w.peers[i] = peer{heard: w.clock(), tried: w.clock(), steady: w.clock()}
	}
	return w
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
	k, err := New(w.config())
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, die := context.WithCancel(ctx)
	ended := &atomic.Bool{}
	w.set(func() { w.guard, w.ended, w.cancel = k, ended, die })
	w.die = func() {
		ended.Store(true)
		die()
		w.set(func() {
			if w.opened { // the kernel feeds a watchdog whose process dies
				w.fed, w.opened = w.clock(), false
			}
		})
	}
	done := make(chan struct{})
	w.done = done
	go func() { _ = k.Run(ctx, w.asks); close(done) }()
}

func (w *world) config() Config {
	c := Config{
		Boot: "boot", Now: w.now, Node: "n0", Lease: w, Writers: w, Watchdog: (*dog)(w), Store: w, Clock: clock.RealClock{},
		Log: funcr.New(func(_, args string) { w.set(func() { w.told = append(w.told, args) }) }, funcr.Options{}),
	}
	if !w.alone {
		c.Peers = w
	}
	return c
}

// Renew is the API server's side.
func (w *world) Renew(ctx context.Context, says func([]string) (guard.Renewal, error)) error {
	w.mu.Lock()
	nodes := w.nodes
	w.mu.Unlock()
	renewal, err := says(nodes)
	if err != nil {
		return err
	}
	w.mu.Lock()
	sent, away, slow := w.clock(), w.away || w.down, w.slow
	w.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(slow):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if away || w.away || w.down {
		return errors.New("the API server does not answer")
	}
	if known := sent - w.heard; renewal.Silent < known {
		w.t.Errorf("a renewal says that the node was silent for %v, and it was for %v", renewal.Silent, known)
	}
	w.sent, w.said, w.named = sent, renewal.Watchdog, nodes
	w.renewals++
	if w.deaf {
		return errors.New("the answer is lost")
	}
	w.heard = sent
	return nil
}

func (w *world) Stop(h guard.Holding) error {
	w.mu.Lock()
	hang, stops, ended := w.hang, w.stops, w.ended
	w.tries++
	w.mu.Unlock()
	time.Sleep(stops) //nolint:forbidigo // virtual time
	if hang {
		return errors.New("it does not end")
	}
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
func (w *world) Save(s State) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full {
		return errFull
	}
	w.kept = s
	return nil
}

// dog is the world as a watchdog.
type dog world

func (d *dog) Arm(_, short time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.opened {
		return nil
	}
	if !d.covered {
		return errors.New("no watchdog")
	}
	d.opened, d.armed, d.fed, d.within = true, true, (*world)(d).clock(), short
	return nil
}
func (d *dog) Armed() bool     { d.mu.Lock(); defer d.mu.Unlock(); return d.armed && d.opened }
func (d *dog) Promises() bool  { return d.Armed() }
func (d *dog) Stoppable() bool { return true }
func (d *dog) Disarm() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.armed, d.opened = false, false
	return nil
}
func (d *dog) Feed(within time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.feed(within)
}
func (d *dog) Shorten(within time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if within >= d.within {
		return nil
	}
	return d.feed(within)
}

// feed is called with the lock.
func (d *dog) feed(within time.Duration) error {
	switch {
	case d.ended.Load(): // a process that is dead feeds nothing
	case !d.opened:
		d.t.Error("the guard feeds a watchdog that it does not have open")
	case d.broken:
		return errors.New("the watchdog takes no feeding")
	default:
		d.fed, d.within = (*world)(d).clock(), within
	}
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

// sampled is how often the world is looked at.
const sampled = 200 * time.Millisecond

// watch looks at the world for a while.
func (w *world) watch(d time.Duration) {
	for range int(d / sampled) {
		time.Sleep(sampled) //nolint:forbidigo // virtual time
		w.look()
	}
}

func (w *world) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	w.renewPeers(now)
	if w.armed && now-w.fed >= w.within {
		w.reset()
	}
	// A machine that wakes may write until it is reset, and no longer.
	if w.proves(now) && w.writing() && now-w.woke > 2*guard.WatchdogSoon+tick+sampled {
		w.t.Errorf("something writes %v after the last renewal, and controllers have a proof that nothing does", now-w.sent)
	}
}

// reset is the end of all that ran. It is called with the lock.
func (w *world) reset() {
	w.resets++
	w.armed, w.opened, w.writers, w.kept = false, false, map[string]bool{}, State{}
	w.ended.Store(true)
	w.cancel()
}

// sleep lets the machine sleep.
func (w *world) sleep(d time.Duration) {
	w.mu.Lock()
	if w.armed && w.sleepless && w.clock()+d-w.fed >= w.within {
		w.reset()
	}
	for end := w.slept + d; w.slept < end; w.slept += sampled { // the others do not sleep
		w.renewPeers(w.clock())
	}
	w.woke = w.clock()
	if !w.sleepless {
		w.fed += d
	}
	w.mu.Unlock()
}

func epoch(volume string, number uint64) guard.Epoch {
	return guard.Epoch{Volume: volume, Epoch: lineage.Epoch{Number: number, ID: "id"}, Holding: guard.Holding{Device: volume}}
}

// open is an agent that opens an epoch and lets its pod write, if it may.
func (w *world) open(e guard.Epoch) error {
	if _, err := w.guard.Open(e); err != nil {
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
