package owner

import (
	"context"
	"errors"
	"maps"
	"testing"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/staging"
)

// taken is a look at a volume that pods of this node may have, in the second epoch.
func taken() *look {
	k := journal.Kept{Volume: volume, Disk: theLUN, Opened: two, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	l := &look{id: volume, kept: k, known: true, disk: theLUN}
	l.facts.Copy, l.facts.Mounted = k.Copy(), true
	return l
}

func TestTwoChangesOfOneDecisionAreBothKept(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	l := &look{id: volume, disk: theLUN}
	for _, change := range []func(k *journal.Kept){
		func(k *journal.Kept) { k.Opened = two },
		func(k *journal.Kept) { k.Flushed = one },
	} {
		if err := (actor{b.Owner}).keep(l, func(k *journal.Kept) error { change(k); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if k := b.world.kept; k.Opened != two || k.Flushed != one || k.Disk != theLUN || k.Volume != volume {
		t.Errorf("kept is %+v", k)
	}
}

func TestAChangeThatIsRefusedIsNotKept(t *testing.T) {
	b := onBench(t, ofDisks, ownership.Node{})
	l := &look{id: volume, kept: journal.Kept{Opened: two}}
	err := (actor{b.Owner}).keep(l, func(k *journal.Kept) error { return journal.Grow(&k.Opened, one) })
	if !errors.Is(err, provision.ErrConflict) || b.effects() != "" {
		t.Errorf("%v, after %q", err, b.effects())
	}
}

// TestAnUnmountIsKeptOnlyIfItIsProved: without a call of the kubelet the Owner unmounts each path itself.
func TestAnUnmountIsKeptOnlyIfItIsProved(t *testing.T) {
	for name, test := range map[string]struct {
		kubelet bool
		left    []string
		fails   map[string]error
		stuck   bool
		lapses  bool
		want    error
		flushed bool
	}{
		"all paths come off":                 {flushed: true},
		"the kubelet's path comes off":       {kubelet: true, flushed: true},
		"the mount table cannot be read":     {fails: map[string]error{"Mounts": errBroken}, want: errBroken},
		"a mount stays":                      {stuck: true, want: provision.ErrInUse},
		"a mount does not come off":          {fails: map[string]error{"Unmount": errBroken}, want: errBroken},
		"a pod's path is left":               {kubelet: true, left: []string{"/pod"}, want: provision.ErrInUse},
		"what is left cannot be told":        {kubelet: true, fails: map[string]error{"Left": errBroken}, want: errBroken},
		"the kubelet's path does not":        {kubelet: true, fails: map[string]error{"Off": errBroken}, want: errBroken},
		"a process has the device":           {fails: map[string]error{"Flush": provision.ErrInUse}, want: provision.ErrInUse},
		"the last writes are refused":        {fails: map[string]error{"Flush": errBroken}},
		"the journal cannot be written":      {fails: map[string]error{"Store": errBroken}, want: errBroken},
		"the node lapses during the unmount": {lapses: true, want: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			l := taken()
			b.world.kept, b.world.paths, b.world.stuck = l.kept, []string{"/stage", "/pod"}, test.stuck
			mine := ownership.Key{Node: "a", Epoch: two}.Raw()
			b.disks.view.Disk = ownership.Disk{Link: ownership.Attached, Registered: mine, Holder: mine, Holding: true}
			maps.Copy(b.fails, test.fails)
			a := &asking{unstaging: true}
			if test.kubelet {
				a.off = &staging.Off{
					Unmount: func(context.Context) error { return b.fails["Off"] },
					Left:    func(context.Context) ([]string, error) { return test.left, b.fails["Left"] },
				}
			}
			err := b.alone(t.Context(), volume, func(ctx context.Context) error {
				if test.lapses {
					b.lapse()
				}
				return (actor{b.Owner}).unmount(ctx, l, a)
			})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			k := b.world.kept
			if off := !k.InUse("boot"); off != (test.want == nil) || (k.Flushed == two) != test.flushed {
				t.Errorf("kept as unmounted: %v, flushed %v", off, k.Flushed)
			}
		})
	}
}

func TestTheGuardIsToldOnceOfAnEpochThatIsOver(t *testing.T) {
	for name, test := range map[string]struct {
		copy    ownership.Copy
		mounted bool
		calls   int
	}{
		"no epoch was opened":      {copy: ownership.Copy{Closed: one}},
		"the epoch goes on":        {copy: ownership.Copy{Opened: two, Closed: one}},
		"it is over and mounted":   {copy: ownership.Copy{Opened: two, Closed: two}, mounted: true},
		"it is over and unmounted": {copy: ownership.Copy{Opened: two, Closed: two}, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			l := &look{id: volume}
			l.facts.Copy, l.facts.Mounted = test.copy, test.mounted
			b.fails["CloseEpoch"] = errBroken
			if err := (actor{b.Owner}).tellGuard(t.Context(), l); (err != nil) != (test.calls > 0) {
				t.Errorf("the guard refuses, and the answer is %v", err)
			}
			delete(b.fails, "CloseEpoch")
			b.had = nil
			for range 2 {
				if err := (actor{b.Owner}).tellGuard(t.Context(), l); err != nil {
					t.Error(err)
				}
			}
			if len(b.had) != test.calls {
				t.Errorf("it is told by %q", b.effects())
			}
		})
	}
}

func TestAMountThatCannotBeSeenComesOffOnlyIfItsEpochIsOver(t *testing.T) {
	over := journal.Kept{Volume: volume, Disk: theLUN, Opened: two, Closed: two, Taken: journal.Taken{Epoch: two, Boot: "boot"}}
	for name, test := range map[string]struct {
		edit  func(b *bench)
		fails error
		offs  int
	}{
		"its epoch is over":                {edit: func(*bench) {}, offs: 1},
		"its epoch is over, and it stays":  {edit: func(*bench) {}, fails: errBroken, offs: 1},
		"its epoch goes on":                {edit: func(b *bench) { b.world.kept.Closed = one }},
		"a later epoch goes on":            {edit: func(b *bench) { b.world.kept.Opened = three }},
		"it can be seen":                   {edit: func(b *bench) { b.world.paths = []string{"/stage"} }},
		"it was proved to be off":          {edit: func(b *bench) { b.world.kept.Taken = journal.Taken{} }},
		"the machine has begun since then": {edit: func(b *bench) { b.world.kept.Taken.Boot = "before" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{Unstage: says(ownership.Action{Verb: ownership.Wait})})
			b.fails["Read"], b.world.kept, b.disks.view.Disk = errBroken, over, held()
			test.edit(b)
			offs := 0
			a := &asking{unstaging: true, off: &staging.Off{Unmount: func(context.Context) error { offs++; return test.fails }}}
			for range 2 {
				if _, _, err := b.decide(t.Context(), volume, a); !errors.Is(err, test.fails) {
					t.Errorf("got %v", err)
				}
				if test.fails != nil {
					return
				}
			}
			if offs != test.offs {
				t.Errorf("it was taken off %d times", offs)
			}
		})
	}
}
