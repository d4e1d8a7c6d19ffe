package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
)

// Moment is when a pool stops answering.
type Moment string

// The moments.
const (
	// AtStart is before the provisioner has read anything of the pool: every query of it hangs.
	AtStart Moment = "at the start"
	// AtOpen is when the device of a volume in it is opened.
	AtOpen Moment = "when a volume's device is opened"
	// AtWatch is when the provisioner reads the pool because others may have changed it.
	AtWatch Moment = "while it is watched"
)

// Two is a machine with two pools, of which one can stop answering.
type Two struct {
	// Start returns a provisioner that knows nothing yet, and the function that watches its
	// pools. The suite does not use the one before any more.
	Start func() (p provision.Provisioner, run func(context.Context) error)
	// Hangs is the pool that can stop answering, and Works the other.
	Hangs, Works provision.PoolRef
	// Filesystem is set in the request for each volume; empty for a block device.
	Filesystem string
	// Hang makes Hangs answer no query, even after the caller has given up, until resume is
	// called.
	Hang func(m Moment) (resume func())
	// Touch writes to Hangs, and Take takes a part of Works, both as others than Berth.
	Touch, Take func()
}

// hangTime is how long a caller waits, and how long the provisioner may take to notice a
// change by others.
const hangTime = 10 * time.Minute

// RunHangs runs the suite of pools that hang: such a pool delays no other, and is named.
// Start is called for each test. Time is synctest's and passes only while all goroutines are
// blocked, so no pool but the one that hangs is ever late.
func RunHangs(t *testing.T, start func(*testing.T) Two) {
	for name, test := range map[string]func(*testing.T, Two){
		"the report names a pool that hangs at the start and serves the other pool": hangsAtStart,
		"a device that hangs at opening delays only one volume":                     hangsAtOpen,
		"a pool that hangs in the watch hides no change of the other pool":          hangsAtWatch,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, start(t)) })
		})
	}
}

// begin starts the provisioner as a node does: as a member of a Mux, and watched.
func (w Two) begin(t *testing.T) (m *provision.Mux, stop func()) {
	p, run := w.Start()
	m = provision.NewMux(provision.Member{Types: []string{w.Works.Type}, Provisioner: p})
	return m, Watching(t, run, m.Run)
}

// volume asks for volume n in a pool.
func (w Two) volume(n int, in provision.PoolRef) provision.CreateRequest {
	return provision.CreateRequest{ID: id(n), Pool: in, Size: 1, Wipe: provision.WipeNone, Tree: w.Filesystem}
}

func (w Two) create(t *testing.T, m *provision.Mux, n int, in provision.PoolRef) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangTime)
	defer cancel()
	if _, err := m.Create(ctx, w.volume(n, in)); err != nil {
		t.Fatalf("creating volume %d in pool %s: %v", n, in.Name, err)
	}
}

// report returns the pool that works, and the problem of the one that hangs or why that is not
// in the report. The text is empty if all is well.
func (w Two) report(t *testing.T, m *provision.Mux) (works provision.Pool, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hangTime)
	defer cancel()
	pools, err := m.Report(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("reporting: %v", err)
	}
	said = "it is not in the report"
	for _, p := range pools {
		switch p.PoolRef {
		case w.Works:
			works = p
		case w.Hangs:
			said = p.Problem
		}
	}
	if err != nil {
		said += err.Error()
	}
	return works, said
}

// await repeats the report until ok accepts it.
func (w Two) await(t *testing.T, m *provision.Mux, what string, ok func(works provision.Pool, said string) bool) {
	t.Helper()
	late := time.NewTimer(hangTime)
	defer late.Stop()
	for {
		works, said := w.report(t, m)
		if ok(works, said) {
			return
		}
		select {
		case <-m.Changed():
		case <-late.C:
			t.Fatalf("waited for %s; still reported is %+v, and of the pool that hangs: %q", what, works, said)
		}
	}
}

func well(works provision.Pool, said string) bool { return said == "" && works.Problem == "" }

func hangsAtStart(t *testing.T, w Two) {
	resume := w.Hang(AtStart)
	defer resume()
	m, _ := w.begin(t)
	w.await(t, m, "the pool that works", func(works provision.Pool, said string) bool {
		return works.Total > 0 && works.Problem == "" && strings.Contains(said, "answer")
	})
	w.create(t, m, 1, w.Works)
	if v, err := m.Get(t.Context(), id(1)); err != nil || v.Problem != "" {
		t.Errorf("getting what was made: %+v, %v", v, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), hangTime)
	defer cancel()
	if _, err := m.Create(ctx, w.volume(2, w.Hangs)); err == nil || errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("creating in the pool that hangs: %v", err)
	}
	resume()
	w.await(t, m, "the pool that answers again", well)
}

func hangsAtOpen(t *testing.T, w Two) {
	m, stop := w.begin(t)
	w.create(t, m, 1, w.Hangs)
	w.create(t, m, 2, w.Works)
	stop()
	resume := w.Hang(AtOpen)
	defer resume()
	m, _ = w.begin(t)
	w.await(t, m, "both pools", func(works provision.Pool, _ string) bool { return len(works.Volumes) == 1 })
	hanging := make(chan struct{})
	go func() {
		defer close(hanging)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _ = m.Get(ctx, id(1)) // it may answer: the volume can be known although its device hangs
	}()
	synctest.Wait()
	if v, err := m.Get(t.Context(), id(2)); err != nil || v.Problem != "" {
		t.Errorf("getting the volume in the other pool: %+v, %v", v, err)
	}
	if works, _ := w.report(t, m); works.Problem != "" || len(works.Volumes) != 1 {
		t.Errorf("the other pool: %+v", works)
	}
	late := time.NewTimer(hangTime)
	defer late.Stop()
	select {
	case <-hanging:
	case <-late.C:
		t.Fatal("who asked for the volume in the pool that hangs still waits though it gave up")
	}
	resume()
	w.await(t, m, "the pool that answers again", well)
	if v, err := m.Get(t.Context(), id(1)); err != nil || v.Problem != "" {
		t.Errorf("getting the volume in it: %+v, %v", v, err)
	}
}

func hangsAtWatch(t *testing.T, w Two) {
	m, stop := w.begin(t)
	w.create(t, m, 1, w.Hangs)
	w.create(t, m, 2, w.Works)
	w.await(t, m, "both pools", well)
	synctest.Wait() // until the provisioner watches
	before, _ := w.report(t, m)
	resume := w.Hang(AtWatch)
	defer resume()
	w.Touch()
	w.Take()
	w.await(t, m, "what others did in the pool that works", func(works provision.Pool, _ string) bool {
		return works.Foreign != before.Foreign || works.Problem != ""
	})
	ended := make(chan struct{})
	go func() { stop(); close(ended) }()
	late := time.NewTimer(hangTime)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		t.Error("what watches the pools does not end")
		resume()
		<-ended
	}
}
