package owner

import (
	"cmp"
	"errors"
	"slices"
	"testing"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
)

var mine = ownership.Key{Node: "a", Epoch: two}

// held is a disk that takes the writes of this node in the second epoch.
func held() ownership.Disk {
	return ownership.Disk{Link: ownership.Attached, Registered: mine.Raw(), Holder: mine.Raw(), Holding: true}
}

func TestAVolumeIsTheDiskThatItWasOnThisNode(t *testing.T) {
	for name, test := range map[string]struct {
		kept  shared.Disk
		fails error
		want  error
	}{
		"it was not here before":           {},
		"it is the same":                   {kept: theLUN},
		"it counts on less than it did":    {kept: shared.Disk{Volume: volume, Handle: "lun1", Identity: "wwn:1", Persistent: true}},
		"it was at another place":          {kept: shared.Disk{Volume: volume, Handle: "lun2", Identity: "wwn:1"}, want: provision.ErrConflict},
		"it was another one":               {kept: shared.Disk{Volume: volume, Handle: "lun1", Identity: "wwn:2"}, want: provision.ErrConflict},
		"the Volume does not say which it": {fails: errBroken, want: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.fails["Locate"] = test.fails
			l := &look{id: volume, kept: journal.Kept{Disk: test.kept}, disk: test.kept}
			err := b.c.Medium.identify(b.Owner, l, &v1alpha1.Volume{})
			if !errors.Is(err, test.want) || err == nil && l.disk != theLUN || err != nil && l.disk != test.kept {
				t.Errorf("it is %+v, %v", l.disk, err)
			}
		})
	}
}

func TestWhatTheRulesAreToldOfADisk(t *testing.T) {
	attached := shared.View{Disk: held()}
	for name, test := range map[string]struct {
		none, moving bool
		failed, look error
		view         shared.View
		link         ownership.Link
		trouble      error
		told         string
	}{
		"no disk is known":            {none: true, view: attached},
		"it is attached":              {view: attached, link: ownership.Attached},
		"it is detached":              {},
		"a step is under way":         {moving: true, view: attached, link: ownership.Attaching},
		"it does not answer":          {look: errBroken, view: attached, link: ownership.Attaching, trouble: errBroken},
		"the last step failed":        {failed: errBroken, view: attached, link: ownership.Attached, trouble: errBroken},
		"the provisioner has refused": {view: shared.View{Disk: ownership.Disk{Link: ownership.AttachFailed}, Problem: "no path"}, link: ownership.AttachFailed, told: "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.hint(func(h *hint) { h.moving, h.failed = test.moving, test.failed })
			b.disks.view, b.fails["Look"] = test.view, test.look
			logged := 0
			for range 2 {
				l := &look{id: volume, disk: theLUN}
				if test.none {
					l.disk = shared.Disk{}
				}
				b.c.Medium.survey(t.Context(), b.Owner, l)
				said := ""
				if l.trouble != nil {
					said = l.trouble.Error()
				}
				if l.facts.Disk.Link != test.link || test.told == "" && !errors.Is(l.trouble, test.trouble) || test.told != "" && said != test.told {
					t.Errorf("it is %v, %v", l.facts.Disk.Link, l.trouble)
				}
				if logged += len(b.log); logged > 1 {
					t.Errorf("logged once more: %q", b.log)
				}
				b.log = nil
			}
			if (logged == 1) != (test.told != "") || test.none != (b.effects() == "") {
				t.Errorf("logged %d times, after %q", logged, b.effects())
			}
		})
	}
}

func TestWhatANodeKeepsOfItsEpochsOnlyGrows(t *testing.T) {
	promise := ownership.Promise{Epoch: two}
	old := journal.Kept{Volume: volume, Promise: ownership.Promise{Epoch: three}, Opened: two, Closed: one}
	with := func(edit func(k *journal.Kept)) journal.Kept { k := old; edit(&k); return k }
	for name, test := range map[string]struct {
		mark provision.Mark
		want journal.Kept
		err  error
	}{
		"an earlier promise, of a record from a backup": {mark: provision.Mark{Promise: promise}, want: with(func(k *journal.Kept) { k.Promise = promise })},
		"a later epoch":         {mark: provision.Mark{Opened: three}, want: with(func(k *journal.Kept) { k.Opened = three })},
		"an end":                {mark: provision.Mark{Closed: two}, want: with(func(k *journal.Kept) { k.Closed = two })},
		"an epoch that is over": {mark: provision.Mark{Opened: one}, want: old, err: provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.world.kept = old
			err := b.c.Medium.mark(t.Context(), b.Owner, &look{id: volume, kept: old}, test.mark)
			k := b.world.kept
			if !errors.Is(err, test.err) || k.Promise.Epoch != test.want.Promise.Epoch || k.Opened != test.want.Opened || k.Closed != test.want.Closed {
				t.Errorf("kept is %+v, %v", k, err)
			}
		})
	}
}

func TestEachActionOnADiskIsOneEffect(t *testing.T) {
	for _, test := range []struct {
		verb  ownership.Verb
		fails error
		want  string
		says  error
	}{
		{verb: ownership.Register, want: "Register idle"},
		{verb: ownership.Register, fails: errBroken, want: "Register idle", says: errBroken},
		{verb: ownership.Reserve, want: "Reserve"},
		{verb: ownership.Reserve, fails: provision.ErrConflict, want: "Reserve"}, // another node was faster
		{verb: ownership.Reserve, fails: errBroken, want: "Reserve", says: errBroken},
		{verb: ownership.Destroy, says: provision.ErrUnsupported},
	} {
		b := onBench(t, ofDisks, ownership.Node{})
		b.fails["Register"], b.fails["Reserve"] = test.fails, test.fails
		more, err := b.c.Medium.carryOut(t.Context(), b.Owner, &look{id: volume, disk: theLUN}, ownership.Action{Verb: test.verb, Key: mine})
		if !errors.Is(err, test.says) || err == nil && !more || b.effects() != test.want {
			t.Errorf("%v: %q, more %v, %v", test.verb, b.effects(), more, err)
		}
	}
}

func TestOnlyTheMountOfTheVeryEpochMayHaveTheDeviceWhileTheSessionRegisters(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(l *look)
		key  ownership.Key
		use  shared.Use
	}{
		"its own mount":              {func(*look) {}, mine, shared.OwnMount},
		"nothing is mounted":         {func(l *look) { l.facts.Mounted = false }, mine, shared.Idle},
		"a key that shuts out":       {func(*look) {}, ownership.Key{Node: "a", Epoch: two, Fence: true}, shared.Idle},
		"the mount of an older one":  {func(l *look) { l.kept.Opened = three }, ownership.Key{Node: "a", Epoch: three}, shared.Idle},
		"an epoch that is not open":  {func(l *look) { l.kept.Taken.Epoch = three }, ownership.Key{Node: "a", Epoch: three}, shared.Idle},
		"another epoch than the key": {func(*look) {}, ownership.Key{Node: "a", Epoch: three}, shared.Idle},
	} {
		t.Run(name, func(t *testing.T) {
			l := taken()
			test.edit(l)
			if got := openers(l, test.key); got != test.use {
				t.Errorf("got %v, want %v", got, test.use)
			}
		})
	}
}

// TestWhetherTheDiskTakesTheWritesOfThisNode: after an unmount it must, or they may be lost; while a pod has the
// volume, the rules must look if it does not.
func TestWhetherTheDiskTakesTheWritesOfThisNode(t *testing.T) {
	other := ownership.Key{Node: "b", Epoch: three}.Raw()
	for name, test := range map[string]struct {
		edit           func(d *ownership.Disk)
		fails          error
		flushed, stirs bool
	}{
		"it does":                             {edit: func(*ownership.Disk) {}, flushed: true},
		"the session is another one":          {edit: func(d *ownership.Disk) { d.Holding = false }, stirs: true},
		"another node holds the reservation":  {edit: func(d *ownership.Disk) { d.Holder = other }, stirs: true},
		"the session is not registered":       {edit: func(d *ownership.Disk) { d.Registered = 0 }, stirs: true},
		"the path is away":                    {edit: func(d *ownership.Disk) { d.Link = ownership.Attaching }},
		"the path is away with the session":   {edit: func(d *ownership.Disk) { d.Link, d.Holding = ownership.Attaching, false }},
		"it does not answer":                  {edit: func(*ownership.Disk) {}, fails: errBroken},
		"it does not answer, as in a session": {edit: func(d *ownership.Disk) { d.Holding = false }, fails: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b, l := onBench(t, ofDisks, ownership.Node{}), taken()
			b.disks.view.Disk, b.fails["Look"] = held(), test.fails
			test.edit(&b.disks.view.Disk)
			if err := b.c.Medium.flushed(t.Context(), b.Owner, l); (err == nil) != test.flushed {
				t.Errorf("flushed: %v", err)
			}
			if got := b.c.Medium.stirs(t.Context(), b.Owner, &l.kept); got != test.stirs {
				t.Errorf("the rules are to look: %v", got)
			}
		})
	}
}

// The disk of a deleted volume may have been given out again, before this node has forgotten the first one.
func TestADiskWithoutARecordIsLeftAttachedOnlyForAnotherVolume(t *testing.T) {
	const second = "pvc-00000000-0000-0000-0000-000000000002"
	kept := func(edit func(d *shared.Disk)) []journal.Kept {
		d := theLUN
		d.Volume = second
		edit(&d)
		return []journal.Kept{{Volume: second, Disk: d}}
	}
	const unit = "/iqn.2026-01.com.example:array/1"
	for name, test := range map[string]struct {
		handle string // of the volume's own disk; that of theLUN if empty
		beside []journal.Kept
		record error
		paths  []string
		fails  string
		detach bool
	}{
		"no volume is beside it":                      {record: errAbsent, detach: true},
		"one on another disk":                         {record: errAbsent, beside: kept(func(d *shared.Disk) { d.Handle, d.Identity = "lun2", "wwn:2" }), detach: true},
		"one on the same disk":                        {record: errAbsent, beside: kept(func(*shared.Disk) {})},
		"one on another disk with that number":        {record: errAbsent, beside: kept(func(d *shared.Disk) { d.Identity = "wwn:2" })},
		"one on the same disk with another number":    {record: errAbsent, beside: kept(func(d *shared.Disk) { d.Handle = "lun2" })},
		"one on the same unit in other words":         {record: errAbsent, handle: "iscsi://10.0.0.5" + unit, beside: kept(func(d *shared.Disk) { d.Handle, d.Identity = "iscsi://10.0.0.5:3260"+unit, "serial.1" })},
		"one that cannot be read":                     {record: errAbsent, beside: kept(func(d *shared.Disk) { d.Handle, d.Identity = "lun2", "wwn:2" }), fails: "Load " + second},
		"they cannot be listed":                       {record: errAbsent, fails: "Volumes"},
		"a pod has it":                                {record: errAbsent, paths: []string{"/stage"}},
		"the API server does not say that it is gone": {record: errBroken},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.NodeRules())
			b.fails["Read"], b.fails[test.fails] = test.record, errBroken
			disk := theLUN
			disk.Handle = cmp.Or(test.handle, disk.Handle)
			b.world.kept = journal.Kept{Volume: volume, Disk: disk, Promise: ownership.Promise{Epoch: one}}
			if b.world.paths = test.paths; test.paths != nil {
				b.world.kept = taken().kept
			}
			b.world.beside, b.disks.view.Disk = test.beside, held()
			if _, err := b.Tend(t.Context(), volume); err != nil && !errors.Is(err, test.record) {
				t.Error(err)
			}
			for _, work := range b.behind {
				work(t.Context())
			}
			if got := slices.Contains(b.had, "Detach"); got != test.detach {
				t.Errorf("detached %v, after %q", got, b.effects())
			}
		})
	}
}

// What is the volume's own goes with its attachments, and nothing of another volume that has the disk by now.
func TestARegistrationGoesWithTheAttachmentOfADeletedVolume(t *testing.T) {
	key := ownership.Key{Node: "m", Epoch: two}
	issued := func(deleting bool) *ownership.Volume {
		return &ownership.Volume{Deleting: deleting, Keys: []ownership.Key{key}}
	}
	for name, test := range map[string]struct {
		record     *ownership.Volume
		link       ownership.Link
		registered ownership.RawKey
		fails      string
		want       string
	}{
		"no record was read":                   {link: ownership.Attached, registered: key.Raw(), want: "Detach"},
		"the volume is not deleted":            {record: issued(false), link: ownership.Attached, registered: key.Raw(), want: "Detach"},
		"the volume is deleted":                {record: issued(true), link: ownership.Attached, registered: key.Raw(), want: "Unregister, Detach"},
		"it cannot be registered":              {record: issued(true), link: ownership.Attached, registered: key.Raw(), fails: "Unregister", want: "Unregister"},
		"this session was never registered":    {record: issued(true), link: ownership.Attached, want: "Detach"},
		"no node had taken the disk":           {record: issued(true), link: ownership.Attached, registered: ownership.LeftByWipe(key), want: "Detach"},
		"another volume is registered here":    {record: issued(true), link: ownership.Attached, registered: ownership.Key{Node: "m", Epoch: three}.Raw(), want: "Detach"},
		"the attach here never came to an end": {record: issued(true), link: ownership.AttachFailed, registered: key.Raw(), want: "Detach"},
	} {
		t.Run(name, func(t *testing.T) {
			b := onBench(t, ofDisks, ownership.Node{})
			b.fails[test.fails] = errBroken
			l := &look{id: volume, disk: theLUN}
			l.facts.Me, l.facts.Record, l.view.Link, l.view.Registered = "m", test.record, test.link, test.registered
			if more, err := b.c.Medium.carryOut(t.Context(), b.Owner, l, ownership.Action{Verb: ownership.Detach}); more || err != nil {
				t.Errorf("more %v, %v", more, err)
			}
			for _, work := range b.behind {
				work(t.Context())
			}
			if b.effects() != test.want {
				t.Errorf("detached by %q, want %q", b.effects(), test.want)
			}
		})
	}
}

func TestOneStepOfADiskIsUnderWayAtATime(t *testing.T) {
	for _, fails := range []error{nil, errBroken} {
		b := onBench(t, ofDisks, ownership.Node{})
		b.fails["Attach"] = fails
		begin := func() {
			if more, err := b.c.Medium.carryOut(t.Context(), b.Owner, &look{id: volume, disk: theLUN}, ownership.Action{Verb: ownership.Attach}); more || err != nil {
				t.Errorf("more %v, %v", more, err)
			}
		}
		begin()
		begin()
		if len(b.behind) != 1 || b.effects() != "" {
			t.Fatalf("%d steps are under way, and the call has done %q", len(b.behind), b.effects())
		}
		b.behind[0](t.Context())
		want := map[bool]time.Duration{true: 0, false: movePause}[fails == nil]
		var failed error
		if b.hint(func(h *hint) { failed = h.failed }); !errors.Is(failed, fails) || !slices.Equal(b.pokes, []time.Duration{want}) || len(b.log) > 0 != (fails != nil) {
			t.Errorf("remembered is %v, tended again after %v, told %q", failed, b.pokes, b.log)
		}
		if begin(); len(b.behind) != 2 {
			t.Error("no other step begins after it")
		}
	}
}
