package shell

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

var (
	schedules = flag.Uint64("schedules", usual, "how many schedules are played")
	from      = flag.Uint64("from", 0, "the first schedule that is played")
	story     = flag.Bool("story", false, "tell what happens")
)

const (
	beat = 500 * time.Millisecond
	// settling is how long the cluster may take to come to rest when all faults have ended.
	settling = 4 * time.Minute
	// resting is for how long it must be at rest.
	resting = 8 * time.Second
)

// play plays a plan, and lets all faults end.
func play(t *testing.T, seed uint64, p plan, x *mistake) (w *world) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t, seed, p, x)
		defer w.ends()
		for _, e := range p.events {
			time.AfterFunc(e.at, func() { w.happens(e) })
		}
		for end := p.ends(); time.Since(w.began) < end && w.broken() == ""; {
			w.steps()
		}
		w.oracle.logs()
		if w.broken() == "" {
			w.settles()
			w.oracle.logs()
		}
		w.lived = time.Since(w.began)
	})
	return w
}

// steps lets a moment pass.
func (w *world) steps() {
	_ = waits(w.ctx, beat)
	w.kubernetes()
	w.replaced()
}

// settles ends all faults. Each volume must then come to be written, by a pod that keeps it.
func (w *world) settles() {
	w.calm.Store(true)
	w.locked(func() { w.slow = 0 })
	w.tells("END", "of all faults")
	w.api.down.Store(false)
	for _, m := range w.machines {
		w.locked(func() { m.apiAway, m.peersAway = false, false })
		m.sanBack()
		m.wakes()
		w.boots(m)
		m.restarts()
	}
	ends := time.Now().Add(settling)
	var since time.Time
	why := ""
	for time.Now().Before(ends) && w.broken() == "" {
		w.steps()
		if why = w.oracle.restless(); why != "" {
			since = time.Time{}
			w.approves()
			continue
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) >= resting {
			w.forsakes()
			return
		}
	}
	w.fail("rest: %s", why)
}

func TestTheProductKeepsItsPromises(t *testing.T) {
	counts := explored(t, *schedules, planOf)
	for what, least := range map[string]uint64{ // in a hundred schedules
		"takeovers": 100, "pre-emptions": 15, "refused writes": 50, "re-logins": 20, "target restarts": 5,
		"controllers killed": 8, "API restores": 2, "fences": 5, "machines off": 10, "resets by watchdogs": 5, "writers stopped by guards": 2,
		"filesystems shut down": 3, "targets away": 3,
	} {
		if n := counts[what]; uint64(n) < least**schedules/100 {
			t.Errorf("too little happens: %d %s", n, what)
		}
	}
}

// scarcer is how many schedules of shared disks are played for one of copies, which takes three times as long.
const scarcer = 10

func TestTheProductKeepsItsPromisesOfCopies(t *testing.T) {
	n := max(1, *schedules/scarcer)
	counts := explored(t, n, planOfCopies)
	for what, least := range map[string]uint64{ // in a hundred schedules
		"takeovers": 200, "points": 400, "streams": 500, "controllers killed": 8, "fences": 6, "machines off": 15, "releases": 60,
		"resets by watchdogs": 5, "writers stopped by guards": 2, "writes set aside": 1,
	} {
		if was := counts[what]; uint64(was) < least*(n/100) { //nolint:gosec // a count
			t.Errorf("too little happens: %d %s", was, what)
		}
	}
}

// explored plays schedules, and returns what happened in them.
func explored(t *testing.T, n uint64, planOf func(seed uint64) plan) map[string]int {
	t.Helper()
	counts := map[string]int{}
	began, lived := processor(), time.Duration(0)
	for seed := *from; seed < *from+n; seed++ {
		p := planOf(seed)
		if *story {
			p.told = wholly
		}
		w := play(t, seed, p, &mistake{})
		if *story {
			t.Log(w.tale)
		}
		if w.broken() != "" {
			t.Error(shrunk(t, w))
		}
		for what, n := range w.oracle.counts {
			counts[what] += n
		}
		lived += w.lived
	}
	spent := processor() - began
	t.Logf("%d schedules, %v of a cluster; in a minute of a processor %.0f schedules, and %.0f hours of a cluster: %v", n, lived.Round(time.Second),
		float64(n)/spent.Minutes(), lived.Hours()/spent.Minutes(), counts)
	return counts
}

// processor is the time that this process has used of a processor.
func processor() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
