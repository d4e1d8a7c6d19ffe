package explore_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"berth.dev/berth/internal/explore"
)

func TestNoRandomScheduleBreaksAnInvariant(t *testing.T) {
	schedules := uint64(30_000)
	switch {
	case raceDetector:
		schedules = 500
	case testing.Short():
		schedules = 2_000
	}
	start := time.Now()
	var next atomic.Uint64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			buf := make([]explore.Event, 0, explore.Steps)
			for seed := next.Add(1) - 1; seed < schedules && !t.Failed(); seed = next.Add(1) - 1 {
				if o := explore.Random(seed, explore.Berth(), buf); o.Violation != "" {
					t.Errorf("schedule %d: %s\n%s", seed, o.Violation, story(o))
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d schedules of %d steps in %v (race detector: %t)", schedules, explore.Steps, time.Since(start).Round(time.Millisecond), raceDetector)
}

func story(o explore.Outcome) string {
	events := explore.Shrink(o.Config, explore.Berth(), append([]explore.Event(nil), o.Events...), o.Violation)
	var s explore.Story
	explore.Replay(o.Config, explore.Berth(), events, &s)
	return fmt.Sprintf("%v\n%s", o.Config, s.String())
}

func TestNoStateOfASmallWorldBreaksAnInvariant(t *testing.T) {
	for _, b := range explore.SmallBounds() {
		t.Run(b.Name, func(t *testing.T) {
			if raceDetector {
				b.MaxStates = 2_000
			}
			r := explore.Exhaust(b.Bounds, explore.Berth(), explore.Watch{})
			t.Log(r)
			if r.Violation != "" {
				t.Errorf("%s\n%s", r.Violation, story(explore.Outcome{Config: b.Settled(), Events: r.Events, Violation: r.Violation}))
			}
			if !r.Complete && !raceDetector {
				t.Error("the bounds are too large to be exhausted")
			}
		})
	}
}

// TestEveryMistakeIsCaught replays the shortest schedule known against each
// mutant. It must break the invariant that the story ends with, and the
// product's rules must stand the same schedule.
func TestEveryMistakeIsCaught(t *testing.T) {
	told := map[string]bool{}
	datadriven.Walk(t, "testdata/mutants", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			told[filepath.Base(path)] = true
			cfg, rules, events := parse(t, d)
			if w := explore.Replay(cfg, explore.Berth(), events, nil); w.Violation != "" {
				t.Errorf("%s: the product's rules break as well: %s", path, w.Violation)
			}
			var s explore.Story
			w := explore.Replay(cfg, rules, events, &s)
			if w.Violation == "" {
				t.Errorf("%s: nobody notices the mistake", path)
			}
			return fmt.Sprintf("%sBROKEN %s\n", s.String(), w.Violation)
		})
	})
	for _, m := range explore.Mutants() {
		if !told[m.Name] {
			t.Errorf("no transcript catches %s: %s", m.Name, m.Mistake)
		}
	}
	if n := len(explore.Mutants()); n < 20 {
		t.Errorf("only %d mutants", n)
	}
}

func parse(t *testing.T, d *datadriven.TestData) (explore.Config, *explore.Rules, []explore.Event) {
	t.Helper()
	var cfg explore.Config
	var name, kind string
	d.ScanArgs(t, "rules", &name)
	d.ScanArgs(t, "kind", &kind)
	d.ScanArgs(t, "nodes", &cfg.Nodes)
	d.ScanArgs(t, "factor", &cfg.Factor)
	d.ScanArgs(t, "watchdog", &cfg.Watchdog)
	d.ScanArgs(t, "automatic", &cfg.Automatic)
	k, err := explore.ParseKind(kind)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Kind = k
	cfg.Lasting, cfg.Away, cfg.Partial = d.HasArg("lasting"), d.HasArg("away"), d.HasArg("partial")
	if k.Traits().Attaches {
		d.ScanArgs(t, "shares", &cfg.Shares)
		d.ScanArgs(t, "persistent", &cfg.Persistent)
		d.ScanArgs(t, "yields", &cfg.Yields)
		if cfg.Many = d.HasArg("many"); cfg.Many {
			d.ScanArgs(t, "known", &cfg.Known)
		}
	}
	m, ok := explore.MutantNamed(name)
	if !ok {
		t.Fatalf("no rules named %q", name)
	}
	events, err := explore.ParseEvents(d.Input)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, m.Rules(), events
}

func TestAScheduleIsTheSameForEver(t *testing.T) {
	a, b := explore.Random(42, explore.Berth(), nil), explore.Random(42, explore.Berth(), nil)
	if fmt.Sprint(a.Config, a.Events) != fmt.Sprint(b.Config, b.Events) {
		t.Error("the same number gave two schedules")
	}
	var sa, sb explore.Story
	explore.Replay(a.Config, explore.Berth(), a.Events, &sa)
	explore.Replay(a.Config, explore.Berth(), a.Events, &sb)
	if sa.String() != sb.String() || !strings.Contains(sa.String(), "decides") {
		t.Error("the same schedule gave two stories")
	}
}

func TestEveryEventReadsBackAsItWasWritten(t *testing.T) {
	for seed := range uint64(40) {
		for _, e := range explore.Random(seed, explore.Berth(), nil).Events {
			got, err := explore.ParseEvent(e.String())
			if err != nil || got != e {
				t.Fatalf("%q became %q: %v", e, got, err)
			}
		}
	}
}

func TestAnUnknownEventIsRefused(t *testing.T) {
	for _, line := range []string{"", "explode a", "crash nobody", "tick 300"} {
		if e, err := explore.ParseEvent(line); err == nil {
			t.Errorf("%q was read as %v", line, e)
		}
	}
}

func TestShrinkingKeepsTheViolationAndLosesTheRest(t *testing.T) {
	m, _ := explore.MutantNamed("continue-after-restart")
	o, ok := explore.Catch(m.Rules(), 2000)
	if !ok {
		t.Fatal("the mutant was not caught")
	}
	if len(o.Events) > 40 || o.Violation == "" {
		t.Errorf("%d events remain: %s", len(o.Events), o.Violation)
	}
	for i := range o.Events {
		rest := append(append([]explore.Event(nil), o.Events[:i]...), o.Events[i+1:]...)
		if v := explore.Replay(o.Config, m.Rules(), rest, nil).Violation; strings.HasPrefix(v, strings.SplitN(o.Violation, ":", 2)[0]) {
			t.Errorf("event %d, %v, is not needed", i, o.Events[i])
		}
	}
}

// TestTheWorldIsNotTooKind: schedules in which nothing much happens prove nothing.
func TestTheWorldIsNotTooKind(t *testing.T) {
	schedules := uint64(3000)
	if testing.Short() {
		schedules = 500
	}
	var sum explore.Tally
	for seed := range schedules {
		sum.Add(explore.Random(seed, explore.Berth(), nil).World)
	}
	for what, n := range sum.Counts() {
		if n == 0 {
			t.Errorf("in %d schedules there was not one %s", schedules, what)
		}
	}
	t.Log(sum.Counts())
}

func BenchmarkSchedules(b *testing.B) {
	rules := explore.Berth()
	buf := make([]explore.Event, 0, explore.Steps)
	for i := 0; b.Loop(); i++ {
		explore.Random(uint64(i), rules, buf)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "schedules/s")
}
