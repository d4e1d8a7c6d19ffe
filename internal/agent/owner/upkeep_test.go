package owner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
)

// quiet is a medium that keeps nothing and finds nothing, and rests as long as a test says. The looks at it fail
// as the test says.
type quiet struct {
	Medium
	rest  time.Duration
	looks []time.Duration // since the start
	start time.Time
	fails func(look int) error
	kept  journal.Kept
}

func (q *quiet) data() bool { return false }

func (q *quiet) recall(_ context.Context, _ *Owner, l *look) error {
	l.kept = q.kept
	l.facts.Copy = q.kept.Copy()
	q.looks = append(q.looks, time.Since(q.start))
	return q.fails(len(q.looks))
}

func (q *quiet) survey(context.Context, *Owner, *look) {}
func (q *quiet) rests(ownership.Action) time.Duration  { return q.rest }

// loops runs the upkeep of a medium for some virtual time, after which its context ends, and returns the log.
func (q *quiet) loops(t *testing.T, d time.Duration, alter func(b *bench, l *Loop)) (log []string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	l := NewLoop(ctx, clock.RealClock{}, funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, args)
	}, funcr.Options{}))
	b := onBench(t, func(*bench) Medium { return q }, ownership.Node{})
	b.fails["Read"], q.start = errAbsent, time.Now()
	b.world.standing.Fenced = false
	if alter != nil {
		alter(b, l)
	}
	ended := make(chan error)
	go func() { ended <- l.Run(b.Owner) }()
	time.Sleep(d) //nolint:forbidigo // virtual time
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	return log
}

func TestHowOftenALoopTendsAVolume(t *testing.T) {
	never := func(int) error { return nil }
	for name, test := range map[string]struct {
		rest  time.Duration
		fails func(look int) error
		poked time.Duration   // after the first success, if not zero
		looks []time.Duration // when it is looked at
	}{
		"nothing happens":                      {fails: never, looks: []time.Duration{0}},
		"it is to be looked at each minute":    {rest: time.Minute, fails: never, looks: []time.Duration{0, time.Minute, 2 * time.Minute}},
		"what fails is tried again, later":     {fails: func(n int) error { return map[bool]error{true: errBroken}[n < 4] }, looks: []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}},
		"a failure after a success is a first": {fails: func(n int) error { return map[bool]error{true: errBroken}[n != 4 && n < 6] }, poked: time.Minute, looks: []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond, time.Minute + 700*time.Millisecond, time.Minute + 800*time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &quiet{rest: test.rest}
				q.loops(t, 150*time.Second, func(_ *bench, l *Loop) {
					q.fails = func(look int) error {
						err := test.fails(look)
						if err == nil && test.poked > 0 {
							l.Poke(volume, test.poked)
							test.poked = 0
						}
						return err
					}
				})
				if len(q.looks) != len(test.looks) {
					t.Fatalf("it was looked at after %v", q.looks)
				}
				for i, at := range q.looks {
					if at != test.looks[i] {
						t.Errorf("look %d came after %v", i, at)
					}
				}
			})
		})
	}
}

func TestALoopThatCannotListItsVolumesEnds(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.fails["Volumes"] = errBroken
	if err := NewLoop(t.Context(), clock.RealClock{}, logr.Discard()).Run(b.Owner); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

func TestALoopSaysOnceWhatIsWrongUntilThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{fails: func(int) error { return nil }}
		var asked atomic.Int32 // the upkeep asks, too
		log := q.loops(t, 20*time.Second, func(b *bench, _ *Loop) {
			b.world.during = func() {
				switch n := asked.Add(1); {
				case n < 6, n > 11 && n < 15:
					b.fail("Standing", errBroken)
				case n < 9:
					b.fail("Standing", errors.New("it is broken otherwise"))
				default:
					b.fail("Standing", nil)
				}
			}
		})
		if len(log) != 3 {
			t.Errorf("%d words about the guard: %q", len(log), log)
		}
	})
}

func TestTheEndOfALoopIsNoFailureAndWaitsForItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, ended := &quiet{}, 0
		log := q.loops(t, time.Second/2, func(b *bench, l *Loop) {
			q.fails = func(int) error { <-l.ctx.Done(); return errBroken }
			b.world.during = func() { <-l.ctx.Done(); b.fail("Standing", errBroken) }
			l.Background(func(ctx context.Context) {
				<-ctx.Done()
				time.Sleep(time.Second) //nolint:forbidigo // virtual time
				ended++
			})
		})
		if len(log) > 0 || ended != 1 {
			t.Errorf("it is told as %q, and %d works have ended", log, ended)
		}
	})
}
