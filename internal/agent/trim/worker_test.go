package trim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/decide/trim"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

const (
	week = 168 * time.Hour
	gib  = int64(1 << 30)
)

func id(n int) string { return fmt.Sprintf("pvc-00000000-0000-0000-0000-%012d", n) }

// machine is a node with volumes of eight GiB, whose worker may be killed and begun anew.
type machine struct {
	*Worker
	t       *testing.T
	dir     string
	clock   *clocktesting.FakeClock
	volumes []trim.Volume

	mu sync.Mutex
	// calls of Trim, as volume@start.
	calls []string
	// fails, if set, answers a call; nil lets it succeed.
	fails func(id string, start int64) error
	// running counts the calls of each pool that have not returned, and at most how many there were.
	running, most map[string]int
	// told are the outcomes, and last the volumes whose last trim is shown.
	told []error
	last map[string]time.Time
}

func newMachine(t *testing.T, volumes ...trim.Volume) *machine {
	m := &machine{
		t: t, dir: t.TempDir(), volumes: volumes, clock: clocktesting.NewFakeClock(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC)),
		running: map[string]int{}, most: map[string]int{}, last: map[string]time.Time{},
	}
	m.restart()
	return m
}

// restart forgets everything that is in the process's memory.
func (m *machine) restart() {
	m.Worker = &Worker{
		Volumes: func(context.Context) ([]trim.Volume, error) { return slices.Clone(m.volumes), nil },
		Trim:    m.trimPart, Book: Book{Files: journal.Dir(m.dir)}, Observer: m, Clock: m.clock, Log: logr.Discard(),
	}
}

func (m *machine) trimPart(ctx context.Context, id string, start, length int64) (mount.Trimmed, error) {
	pool := ""
	for _, v := range m.volumes {
		if v.ID == id {
			pool = v.Pool
		}
	}
	m.mu.Lock()
	m.calls = append(m.calls, fmt.Sprintf("%s@%d", id, start/gib))
	m.running[pool]++
	m.most[pool] = max(m.most[pool], m.running[pool])
	fails := m.fails
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.running[pool]--
	}()
	if fails != nil {
		if err := fails(id, start); err != nil {
			return mount.Trimmed{}, err
		}
	}
	next := start + length
	if next >= 8*gib {
		next = 0
	}
	return mount.Trimmed{Bytes: length / 2, Next: next}, ctx.Err()
}

func (m *machine) Trimmed(_ string, _ int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, err)
}

func (m *machine) Last(volume, _ string, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last[volume] = at
}

func (m *machine) Gone(volume string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.last, volume)
}

// round does a round and waits for the trims that it has begun. It returns the calls.
func (m *machine) round() []string {
	m.t.Helper()
	if err := m.Round(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	m.work.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

// becomeDue notes the volumes, and lets an interval pass.
func (m *machine) becomeDue() {
	m.t.Helper()
	if calls := m.round(); len(calls) > 0 {
		m.t.Fatalf("volumes that were not known before are trimmed: %v", calls)
	}
	m.clock.Step(week)
}

func inPool(pool string, n int) trim.Volume {
	return trim.Volume{ID: id(n), Pool: pool, Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, Interval: week}
}

func TestAVolumeIsTrimmedByPartsOnceInEachInterval(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1))
	m.becomeDue()
	if calls, want := m.round(), []string{id(1) + "@0", id(1) + "@1", id(1) + "@3", id(1) + "@7"}; !slices.Equal(calls, want) {
		t.Errorf("the parts are %v; want %v", calls, want)
	}
	if calls := m.round(); len(calls) > 0 || len(m.told) != 1 || m.told[0] != nil || !m.last[id(1)].Equal(m.clock.Now()) {
		t.Errorf("it is trimmed again (%v), or its end is told wrongly: %v, %v", calls, m.told, m.last)
	}
	m.clock.Step(2 * week) // it was trimmed late
	if calls := m.round(); len(calls) == 0 {
		t.Error("it is not trimmed later")
	}
}

func TestAnAgentThatIsStartedAnewTrimsNothingAnew(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1))
	m.becomeDue()
	m.restart()
	if calls := m.round(); len(calls) == 0 {
		t.Error("since when it is to be trimmed was forgotten")
	}
	trimmed := m.clock.Now()
	m.restart()
	clear(m.last)
	if calls := m.round(); len(calls) > 0 || !m.last[id(1)].Equal(trimmed) {
		t.Errorf("after a restart: %v, and the last trim is shown as %v", calls, m.last)
	}
}

func TestATrimThatWasStoppedGoesOnWhereItStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		err error
		// after is when it goes on.
		after time.Duration
		told  bool
	}{
		"the volume is unstaged":           {fmt.Errorf("%w: it was unstaged", mount.ErrNotMounted), 0, true},
		"the filesystem answers too late":  {context.DeadlineExceeded, rest, true},
		"the device fails":                 {errors.New("input/output error"), rest, true},
		"the node has given the volume up": {provision.ErrUnavailable, rest, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, inPool("vg0/thin", 1))
			m.becomeDue()
			m.fails = func(_ string, start int64) error {
				if start >= 3*gib {
					return tc.err
				}
				return nil
			}
			m.round()
			if len(m.told) != 1 || !errors.Is(m.told[0], tc.err) || len(m.last) > 0 {
				t.Errorf("told are %v, and the last trim is shown as %v", m.told, m.last)
			}
			m.fails = nil
			if tc.after > 0 {
				if calls := m.round(); len(calls) > 0 {
					t.Errorf("it is tried again at once: %v", calls)
				}
			}
			m.clock.Step(tc.after)
			m.restart()
			if calls := m.round(); len(calls) == 0 || calls[0] != id(1)+"@3" {
				t.Errorf("it goes on with %v", calls)
			}
		})
	}
}

func TestAVolumeThatIsNotMountedWaitsWithoutAWord(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1))
	m.becomeDue()
	m.fails = func(string, int64) error { return mount.ErrNotMounted }
	for range 3 {
		if calls := m.round(); len(calls) != 1 || len(m.told) > 0 {
			t.Errorf("%v, told %v", calls, m.told)
		}
		m.clock.Step(time.Minute)
	}
	m.fails = nil
	if calls := m.round(); len(calls) != 4 {
		t.Errorf("once it is mounted it is trimmed by %v", calls)
	}
}

func TestWhatCannotBeTrimmedIsTriedOnceInEachInterval(t *testing.T) {
	m := newMachine(t, inPool("vg0", 1))
	m.becomeDue()
	m.fails = func(string, int64) error { return provision.ErrUnsupported }
	tries := 0
	for range 21 * 24 {
		tries += len(m.round())
		m.clock.Step(time.Hour)
	}
	if tries != 3 {
		t.Errorf("in three weeks it was tried %d times", tries)
	}
}

func TestATrimThatTakesAnHourMakesWayForTheNext(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1), inPool("vg0/thin", 2))
	m.becomeDue()
	m.fails = func(string, int64) error { m.clock.Step(40 * time.Minute); return nil }
	calls := m.round()
	seen := map[string]bool{}
	for _, call := range calls {
		seen[call[:len(id(1))]] = true
	}
	if len(seen) != 2 || len(m.told) != 2 || !errors.Is(m.told[0], errSlow) {
		t.Errorf("trimmed were %v; told are %v", calls, m.told)
	}
	m.clock.Step(rest)
	if calls := m.round(); len(calls) == 0 || calls[0][len(id(1)):] == "@0" {
		t.Errorf("the rest is trimmed by %v", calls)
	}
}

func TestOneFilesystemOfAPoolIsTrimmedAtATimeAndNoPoolWaitsForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine(t, inPool("vg0/thin", 1), inPool("vg0/thin", 2), inPool("vg0/thin", 3), inPool("vg1", 4), inPool("vg1", 5))
		m.becomeDue()
		hold := make(chan struct{})
		m.fails = func(id string, _ int64) error {
			if slices.Contains([]int{1, 2, 3}, int(id[len(id)-1]-'0')) {
				<-hold // the pool does not answer
			}
			return nil
		}
		for range 3 { // rounds do not wait either
			if err := m.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		m.mu.Lock()
		if len(m.told) != 2 || !maps.Equal(m.most, map[string]int{"vg0/thin": 1, "vg1": 1}) {
			t.Errorf("%d volumes are trimmed, and at once there were %v", len(m.told), m.most)
		}
		m.mu.Unlock()
		close(hold)
		m.work.Wait()
		if len(m.told) != 5 || m.most["vg0/thin"] != 1 {
			t.Errorf("at last %d volumes are trimmed, and at once there were %v", len(m.told), m.most)
		}
	})
}

func TestWhatIsKeptGoesWithTheVolume(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1), inPool("vg0/thin", 2))
	m.becomeDue()
	m.round()
	m.volumes[1].Interval = 0
	m.volumes = m.volumes[1:]
	m.round()
	if files, err := m.Book.Files.List(); err != nil || len(files) > 0 || len(m.last) > 0 {
		t.Errorf("kept are %v (%v), and shown %v", files, err, m.last)
	}
}

// The agent is killed between any two steps of a write, or the disk is full.
func TestWhatIsKeptIsNeverHalf(t *testing.T) {
	for cut := range 4 {
		m := newMachine(t, inPool("vg0/thin", 1))
		m.becomeDue()
		broken := &cutFiles{Files: journal.Dir(m.dir), left: cut}
		m.Book = Book{Files: broken}
		m.round()
		if calls := m.round(); len(calls) > 0 {
			t.Errorf("cut %d: a trim that could not be kept is made over and over: %v", cut, calls)
		}
		kept, err := Book{Files: journal.Dir(m.dir)}.Load(id(1))
		if err != nil || kept.Since.IsZero() {
			t.Errorf("cut %d: kept is %+v, %v", cut, kept, err)
		}
	}
	m := newMachine(t, inPool("vg0/thin", 1))
	m.Book = Book{Files: &cutFiles{Files: journal.Dir(m.dir)}}
	m.round()
	m.clock.Step(week)
	if calls := m.round(); len(calls) > 0 {
		t.Errorf("a volume that cannot be noted is trimmed: %v", calls)
	}
}

// cutFiles fail each change after some.
type cutFiles struct {
	journal.Files
	left int
}

var errCut = errors.New("no space left on device")

func (c *cutFiles) change(step func() error) error {
	if c.left--; c.left < 0 {
		return errCut
	}
	return step()
}

func (c *cutFiles) Write(name string, text []byte) error {
	return c.change(func() error { return c.Files.Write(name, text) })
}
func (c *cutFiles) Sync(name string) error {
	return c.change(func() error { return c.Files.Sync(name) })
}
func (c *cutFiles) Rename(from, to string) error {
	return c.change(func() error { return c.Files.Rename(from, to) })
}
func (c *cutFiles) SyncDir() error { return c.change(c.Files.SyncDir) }

func TestAFileThatIsNotUnderstoodIsAsNone(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1))
	if err := m.Book.Files.Write(id(1)+extension, []byte(`{"since": "yester`)); err != nil {
		t.Fatal(err)
	}
	m.becomeDue()
	if calls := m.round(); len(calls) == 0 {
		t.Error("it is not trimmed")
	}
	if _, err := m.Book.Files.Read("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAWorkerEndsWithItsTrims(t *testing.T) {
	m := newMachine(t, inPool("vg0/thin", 1))
	m.becomeDue()
	ctx, cancel := context.WithCancel(t.Context())
	m.fails = func(string, int64) error { cancel(); return context.Canceled }
	if err := m.Start(ctx); err != nil || m.running["vg0/thin"] != 0 || len(m.told) > 0 {
		t.Errorf("%v, running %v, told %v", err, m.running, m.told)
	}
	m.fails = nil
	m.restart()
	if calls := m.round(); len(calls) == 0 {
		t.Error("the trim that was ended is not made by the next process")
	}
}
