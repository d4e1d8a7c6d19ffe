package owner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/publish/staging"
)

// asked is a chain that decides nothing else than do, and notes each time that it is asked.
func (s *script) asked(name string, do ownership.Action) ownership.Chain[ownership.NodeFacts] {
	return ownership.Chain[ownership.NodeFacts]{{Name: name, Decide: func(*ownership.NodeFacts) (ownership.Action, bool) {
		_ = s.does(name)
		return do, true
	}}}
}

// onQuietBench is an Owner of a medium that finds nothing, and whose chains note that they are asked.
func onQuietBench(t *testing.T, unstage ownership.Verb) (*bench, *quiet) {
	t.Helper()
	q := &quiet{fails: func(int) error { return nil }}
	b := onBench(t, func(*bench) Medium { return q }, ownership.Node{})
	b.c.Rules = ownership.Node{
		Stage: b.asked("stage", ownership.Action{Verb: ownership.Done}), Unstage: b.asked("unstage", ownership.Action{Verb: unstage}),
		Tend: b.asked("tend", ownership.Action{}),
	}
	b.fails["Read"] = errAbsent
	return b, q
}

func TestATakeAfterALapseFirstLooksWithoutTheKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		may   bool
		fails bool // of the first look
		want  string
	}{
		"an earlier epoch may go on":    {may: true, want: "Read, stage, tend, use"},
		"no earlier epoch may go on":    {want: "Read, tend, Read, stage, tend, use"},
		"and the first look is in vain": {fails: true},
		"it may, and the look is vain":  {may: true, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			b, q := onQuietBench(t, ownership.Done)
			if test.may {
				b.hint(func(h *hint) { h.cleared = b.lapses })
			}
			q.fails = func(look int) error {
				return map[bool]error{true: errBroken}[test.fails && look == 1]
			}
			q.kept.Taken = journal.Taken{Epoch: two, Boot: "boot", Block: true} // so it is mounted
			err := b.Take(t.Context(), volume, func(context.Context) error { return b.does("use") })
			if test.fails {
				if !errors.Is(err, errBroken) {
					t.Errorf("got %v", err)
				}
			} else if err != nil || b.effects() != test.want {
				t.Errorf("%v, after %q", err, b.effects())
			}
			if b.hint(func(h *hint) {
				if !h.wanted.Equal(noon.Add(patience)) {
					t.Errorf("wanted until %v", h.wanted)
				}
			}); len(b.running) > 0 {
				t.Errorf("%d steps are under way", len(b.running))
			}
		})
	}
}

// The upkeep of the node has its turn between two decisions of a call, and gives up what no kubelet asks for.
func TestATakeAsksForTheVolumeForAsLongAsItTakes(t *testing.T) {
	b := onBench(t, ofCopies, ownership.Node{})
	b.fails["Read"] = errAbsent
	b.hint(func(h *hint) { h.cleared = b.lapses })
	decided := 0
	b.c.Rules.Stage = ownership.Chain[ownership.NodeFacts]{{Name: "slow", Decide: func(*ownership.NodeFacts) (ownership.Action, bool) {
		if decided++; decided == 1 {
			b.world.now = noon.Add(time.Hour)
			return ownership.Action{Verb: ownership.Persist}, true
		}
		b.hint(func(h *hint) {
			if !h.wanted.After(b.world.now) {
				t.Error("an hour later the volume is not wanted any more")
			}
		})
		return ownership.Action{Verb: ownership.Wait}, true
	}}}
	if err := b.Take(t.Context(), volume, func(context.Context) error { return nil }); !errors.Is(err, provision.ErrUnavailable) || decided != 2 {
		t.Errorf("%v, after %d decisions", err, decided)
	}
}

func TestAGiveTakesTheVolumeOffItsPathOnce(t *testing.T) {
	mounted := journal.Kept{Volume: volume, Opened: two, Closed: one, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	over := mounted
	over.Closed = two
	for name, test := range map[string]struct {
		kept    journal.Kept
		unstage ownership.Verb
		left    []string
		fails   map[string]error
		want    error
		offs    int
	}{
		"it was not taken":                        {unstage: ownership.Done, offs: 1},
		"it was not taken since the boot":         {kept: journal.Kept{Volume: volume, Opened: two, Closed: one}, left: []string{"/stage", "/pod"}, unstage: ownership.Done, offs: 1},
		"and it does not come off":                {unstage: ownership.Done, fails: map[string]error{"Off": errBroken}, want: errBroken, offs: 1},
		"the release waits":                       {unstage: ownership.Wait, want: provision.ErrUnavailable},
		"a pod still has it":                      {kept: mounted, left: []string{"/stage", "/pod"}, want: provision.ErrInUse},
		"its epoch is over, and a pod has it":     {kept: over, left: []string{"/stage", "/pod"}, unstage: ownership.Wait, want: provision.ErrUnavailable},
		"what the node keeps of it is unreadable": {fails: map[string]error{"Load": errBroken}, want: errBroken, offs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{Unstage: says(ownership.Action{Verb: test.unstage})})
			b.fails["Read"] = errAbsent
			maps.Copy(b.fails, test.fails)
			b.world.kept, b.world.paths = test.kept, test.left
			b.hint(func(h *hint) { h.wanted, h.told = noon.Add(patience), 2 })
			offs := 0
			err := b.Give(t.Context(), volume, staging.Off{
				Unmount: func(context.Context) error { offs++; return b.fails["Off"] },
				Left:    func(context.Context) ([]string, error) { return test.left, nil },
			})
			if !errors.Is(err, test.want) || offs != test.offs {
				t.Errorf("%v, and it was taken off %d times", err, offs)
			}
			b.hint(func(h *hint) {
				if !h.wanted.IsZero() {
					t.Errorf("it is wanted until %v", h.wanted)
				}
			})
		})
	}
}

func TestAGiveThatTheOwnerUnmountedIsNotUnmountedAgain(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	b.c.Rules.Unstage = ownership.Chain[ownership.NodeFacts]{{Name: "off", Decide: func(f *ownership.NodeFacts) (ownership.Action, bool) {
		return ownership.Action{Verb: map[bool]ownership.Verb{true: ownership.Unmount, false: ownership.Done}[f.Mounted]}, true
	}}}
	l := taken()
	b.fails["Read"], b.world.kept, b.world.paths, b.disks.view.Disk = errAbsent, l.kept, []string{"/stage"}, held()
	offs := 0
	if err := b.Give(t.Context(), volume, staging.Off{
		Unmount: func(context.Context) error { offs++; b.world.paths = nil; return nil },
		Left:    func(context.Context) ([]string, error) { return b.world.paths, nil },
	}); err != nil || offs != 1 || b.world.kept.InUse("boot") {
		t.Errorf("%v, and it was taken off %d times, kept %+v", err, offs, b.world.kept)
	}
}

func TestWhatAStepBeganEndsWithIt(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	var step context.Context
	for range 2 { // the lock is free again
		if err := b.alone(t.Context(), volume, func(ctx context.Context) error { step = ctx; return errBroken }); !errors.Is(err, errBroken) {
			t.Errorf("got %v", err)
		}
		if step.Err() == nil || len(b.running) > 0 {
			t.Errorf("%v, and %d steps are under way", step.Err(), len(b.running))
		}
	}
	ended, end := context.WithCancel(t.Context())
	err := b.alone(t.Context(), volume, func(context.Context) error {
		end()
		return b.alone(ended, volume, func(context.Context) error { t.Error("two steps of a volume are under way"); return nil })
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEachFenceOfTheGuardIsALapseOnce(t *testing.T) {
	b, _ := onQuietBench(t, ownership.Done)
	b.fails["Volumes"] = errBroken // so the agent gives no word
	for i, step := range []struct {
		fenced bool
		lapses uint64
	}{{false, 1}, {true, 2}, {true, 2}, {false, 2}, {true, 3}} {
		b.world.standing.Fenced = step.fenced
		if err := b.Vouch(t.Context()); errors.Is(err, errBroken) != step.fenced {
			t.Errorf("step %d: %v", i, err)
		}
		if b.lapses != step.lapses || b.isFenced() != step.fenced {
			t.Errorf("step %d: %d lapses, fenced %v", i, b.lapses, b.isFenced())
		}
	}
}

func TestTheWordOfAnAgentIsGivenToAGuardThatWaitsForIt(t *testing.T) {
	for _, fenced := range []bool{false, true} {
		b, _ := onQuietBench(t, ownership.Done)
		b.world.standing.Fenced = fenced
		b.fails["AllClosed"] = errBroken
		if err := b.Vouch(t.Context()); errors.Is(err, errBroken) != fenced || slices.Contains(b.had, "AllClosed") != fenced || len(b.pokes) > 0 != fenced {
			t.Errorf("fenced %v: %v, after %q", fenced, err, b.effects())
		}
	}
}

func TestOnlyVolumesInUseAreWatched(t *testing.T) {
	mounted := journal.Kept{Volume: volume, Disk: theLUN, Opened: two, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	for name, test := range map[string]struct {
		edit  func(b *bench)
		pokes int
	}{
		"its session has ended":      {func(*bench) {}, 1},
		"no pod has it":              {func(b *bench) { b.world.kept.Taken = journal.Taken{} }, 0},
		"a pod of another boot":      {func(b *bench) { b.world.kept.Taken.Boot = "before" }, 0},
		"its epoch was given up":     {func(b *bench) { b.world.kept.Closed = two }, 0},
		"a later epoch goes on":      {func(b *bench) { b.world.kept.Closed, b.world.kept.Opened = two, three }, 1},
		"the journal cannot be read": {func(b *bench) { b.fails["Load"] = errBroken }, 0},
		"its session goes on":        {func(b *bench) { b.disks.view.Disk = held() }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.world.kept, b.disks.view.Disk = mounted, held()
			b.disks.view.Holding = false
			test.edit(b)
			if err := b.Watch(t.Context()); err != nil || len(b.pokes) != test.pokes {
				t.Errorf("%v, and %d volumes are tended", err, len(b.pokes))
			}
		})
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := onBench(t, ofDisks, ownership.Node{}).Watch(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// glancing are disks of which a glance is not a look.
type glancing struct{ *playedDisks }

func (d glancing) Glance(context.Context, shared.Disk) (shared.View, error) {
	return d.view, d.does("Glance")
}

func TestADiskIsGlancedAtToWatchItAndLookedAtToDecide(t *testing.T) {
	b := onBench(t, func(b *bench) Medium {
		return Attachments(glancing{b.disks}, func(*v1alpha1.Volume) (shared.Disk, error) { return theLUN, nil })
	}, ownership.Node{})
	b.world.kept, b.disks.view.Disk, b.fails["Read"] = taken().kept, held(), errAbsent
	if err := b.Watch(t.Context()); err != nil || b.effects() != "Glance" {
		t.Errorf("%v, after %q", err, b.effects())
	}
	b.had, b.world.paths = nil, []string{"/stage"}
	if _, err := b.Tend(t.Context(), volume); err != nil || !slices.Contains(b.had, "Look") || slices.Contains(b.had, "Glance") {
		t.Errorf("%v, after %q", err, b.effects())
	}
}

func TestAnEpochIsGivenUpNoLaterThanItsKubeletGivesUpAsking(t *testing.T) {
	for name, test := range map[string]struct {
		rest, asks, want time.Duration
	}{
		"no kubelet asks":                  {rest: time.Minute, asks: -time.Second, want: time.Minute},
		"one may ask for a shorter while":  {rest: time.Minute, asks: 20 * time.Second, want: 20 * time.Second},
		"one may ask for a longer while":   {rest: time.Minute, asks: 2 * time.Minute, want: time.Minute},
		"one may ask, and there is no end": {asks: 20 * time.Second, want: 20 * time.Second},
		"neither":                          {},
	} {
		t.Run(name, func(t *testing.T) {
			b, q := onQuietBench(t, ownership.Done)
			q.rest = test.rest
			b.hint(func(h *hint) { h.wanted = noon.Add(test.asks) })
			if again, err := b.Tend(t.Context(), volume); err != nil || again != test.want {
				t.Errorf("again after %v, %v", again, err)
			}
		})
	}
	b, q := onQuietBench(t, ownership.Done)
	b.hint(func(h *hint) { h.wanted = noon.Add(time.Second) })
	b.world.during = func() { b.world.now = noon.Add(time.Minute) } // the decision takes longer than the kubelet asks
	if again, err := b.Tend(t.Context(), volume); err != nil || again != time.Second {
		t.Errorf("after a slow decision again after %v, %v", again, err)
	}
	q.fails = func(int) error { return errBroken }
	if _, err := b.Tend(t.Context(), volume); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}
