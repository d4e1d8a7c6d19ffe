package ownership_test

import (
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func TestAnAgentDrivesItsAttachment(t *testing.T) {
	failed := func(tries int, retry time.Time) func(*Volume) {
		return entry("b", func(r *Replica) { r.State, r.Tries, r.RetryAt = Failed, tries, retry })
	}
	none := func(f *NodeFacts) { f.Copy = Copy{} }
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"to attach for a new entry":                                {on("b", volume(shared, state("b", Reserved))), verdict{Attach, BeingAttached}},
		"to attach again after a crash":                            {on("b", volume(shared, state("b", Syncing))), verdict{Attach, BeingAttached}},
		"to wait while the disk is being attached":                 {on("b", volume(shared, state("b", Syncing)), link(Attaching)), verdict{Wait, BeingAttached}},
		"to report an attachment that is there":                    {on("b", volume(shared, state("b", Syncing)), attached(Key{})), verdict{Record, Reporting}},
		"to report that a ready attachment is gone":                {on("b", volume(shared)), verdict{Record, BeingAttached}},
		"to record that an attach failed":                          {on("b", volume(shared, state("b", Syncing)), link(AttachFailed)), verdict{Record, AttachmentFailed}},
		"to clean up after an attach that failed":                  {on("b", volume(shared, failed(1, now)), link(AttachFailed)), verdict{Detach, AttachmentFailed}},
		"to wait before it attaches again":                         {on("b", volume(shared, failed(1, now.Add(time.Second)))), verdict{Wait, AttachmentFailed}},
		"to try again whatever a clock said that was ahead":        {on("b", volume(shared, failed(1, now.Add(2*time.Hour)))), verdict{Record, BeingAttached}},
		"to try again after the pause":                             {on("b", volume(shared, failed(1, now))), verdict{Record, BeingAttached}},
		"to detach when the record says so":                        {on("b", volume(shared, state("b", Removing)), attached(Key{})), verdict{Detach, NoLongerAttached}},
		"to detach what a failed attach left behind":               {on("b", volume(shared, state("b", Removing)), link(AttachFailed)), verdict{Detach, NoLongerAttached}},
		"to end the entry when nothing is left":                    {on("b", volume(shared, state("b", Removing))), verdict{Record, CopyGone}},
		"to unmount before it detaches":                            {on("b", volume(shared, state("b", Removing)), attached(Key{}), mounted), verdict{Unmount, Superseded}},
		"to detach what the record does not know":                  {on("d", volume(shared), attached(Key{})), verdict{Detach, NoLongerAttached}},
		"to detach the disk of a volume without a record":          {on("b", nil, none, link(Attached)), verdict{Detach, NoLongerAttached}},
		"to clean up after a failed attach without a record":       {on("b", nil, none, link(AttachFailed)), verdict{Detach, NoLongerAttached}},
		"to leave a disk alone that has no attachment here":        {on("b", nil, none), verdict{Nothing, Settled}},
		"to leave a mount without a record alone":                  {on("b", nil, none, link(Attached), mounted), verdict{Nothing, Settled}},
		"to leave a disk alone whose record could not be read":     {on("b", nil, none, link(Attached), unread), verdict{Wait, RecordUnread}},
		"to keep a copy without a record in quarantine":            {on("b", nil, link(Attached)), verdict{Quarantine, LooksOrphaned}},
		"to detach the disk of a volume that is being deleted":     {on("b", volume(shared, state("b", Removing), func(v *Volume) { v.Deleting = true }), attached(Key{})), verdict{Detach, VolumeDeleting}},
		"to end the entry of a deleted volume after the detach":    {on("b", volume(shared, state("b", Removing), func(v *Volume) { v.Deleting = true })), verdict{Record, CopyGone}},
		"to leave a mount alone whose device is gone for a moment": {on("a", volume(owned(Active), shared), with(promised(volume(owned(Active), shared)), opened(e2)), mounted), verdict{Nothing, Settled}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
}

// The kernel gives a unit up while it is mounted. The disk is detached when the mount is gone, and not before.
func TestAnAttachmentThatFailsUnderAMountStays(t *testing.T) {
	v := volume(owned(Active), shared)
	writes := func(v *Volume, edits ...func(*NodeFacts)) *NodeFacts {
		fails := []func(*NodeFacts){with(promised(volume(owned(Active), shared)), opened(e2)), link(AttachFailed)}
		return on("a", v, append(fails, edits...)...)
	}
	none := func(f *NodeFacts) { f.Copy.Exists = false }
	shutDown := func(f *NodeFacts) { f.ShutDown = true }
	gaveUp := func(f *NodeFacts) { f.Copy.Closed = e2 }
	failed := volume(owned(Released), shared, state("a", Failed), entry("a", func(r *Replica) { r.Unstaged = e2 }))
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"as it is":                              {writes(v, mounted), verdict{Nothing, Settled}},
		"while the record cannot be read":       {writes(nil, mounted, unread), verdict{Wait, RecordUnread}},
		"though there is no record":             {writes(nil, mounted, none), verdict{Nothing, Settled}},
		"though its attachment is to go":        {writes(volume(owned(Active), shared, state("a", Removing)), mounted), verdict{Record, CopyInUse}},
		"until its filesystem has shut down":    {writes(v, mounted, shutDown), verdict{Close, FilesystemShutDown}},
		"and is unmounted then":                 {writes(v, mounted, shutDown, gaveUp), verdict{Unmount, ClosingEpoch}},
		"and is detached when the mount is off": {writes(failed, gaveUp), verdict{Detach, AttachmentFailed}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
}

// wiping is the key of a wipe before a volume.
var wiping = Key{Node: "z", Epoch: lineage.Epoch{Number: 1, ID: "wipe"}}

func leftByWipe(f *NodeFacts) { f.Disk.Holder = LeftByWipe(wiping) }

// The disk of a new volume was wiped, and is reserved under a key that no record lists.
func TestTheFirstEpochTakesADiskFromTheKeyThatAWipeLeft(t *testing.T) {
	first := volume(shared, func(v *Volume) { v.Primary = Primary{} })
	disk := func(f *NodeFacts) { f.Disk, f.Copy, f.Peers = Disk{Link: Attached}, Copy{}, nil; leftByWipe(f) }
	a := StageRules.Decide(on("a", first, disk))
	expect(t, a, verdict{Record, TakingOver})
	mine, taken := Key{Node: "a", Epoch: a.Next.Epoch}, a.Next
	prepared := func(f *NodeFacts) { disk(f); f.Copy = Copy{}; promised(taken)(&f.Copy) }
	expect(t, StageRules.Decide(on("a", taken, prepared)), verdict{Register, TakingReservation})
	a = StageRules.Decide(on("a", taken, prepared, registered(mine)))
	if expect(t, a, verdict{Reserve, TakingReservation}); a.Expect != LeftByWipe(wiping) || a.Key != mine {
		t.Errorf("it takes the disk from %#x for %v", uint64(a.Expect), a.Key)
	}
}

func TestTheKeyThatAWipeLeavesIsNoWriters(t *testing.T) {
	other, later := wiping, wiping
	other.Node, later.Epoch.ID = "y", "other"
	if k := LeftByWipe(wiping); !k.IsLeftByWipe() || k.Number() != 1 || k == wiping.Raw() || k == LeftByWipe(other) || k == LeftByWipe(later) {
		t.Errorf("it is %#x", uint64(k))
	}
	for _, k := range []RawKey{0, 42, ofWipeAlone, Key{Node: "z", Epoch: e1}.Raw(), Key{Node: "z", Epoch: e2, Fence: true}.Raw(), Key{Node: "z", Epoch: lineage.Epoch{Number: 1 << 40}}.Raw()} {
		if k.IsLeftByWipe() {
			t.Errorf("%#x counts as left by a wipe", uint64(k))
		}
	}
}

// ofWipeAlone has the bit of a wipe, and is no key of Berth's.
const ofWipeAlone = RawKey(1) << 61

func TestThePauseBeforeTheNextAttachGrowsToAMinute(t *testing.T) {
	for tries, want := range map[int]time.Duration{0: 5 * time.Second, 1: 10 * time.Second, 3: 40 * time.Second, 4: time.Minute, 60: time.Minute} {
		v := volume(shared, entry("b", func(r *Replica) { r.State, r.Tries = Syncing, tries }))
		next := TendRules.Decide(on("b", v, link(AttachFailed))).Next
		if next == nil {
			t.Fatal("the failure was not recorded")
		}
		if r, _ := next.Replica("b"); r.Tries != tries+1 || r.RetryAt.Sub(now) != want {
			t.Errorf("failure %d: the next attach is after %v, want %v", r.Tries, r.RetryAt.Sub(now), want)
		}
	}
}

func TestANodeWithANewSession(t *testing.T) {
	v := volume(owned(Active), shared)
	forgetful := volume(owned(Active), shared, func(v *Volume) { v.Sharing.Persistent = false })
	old, strange := Key{Node: "b", Epoch: e1}, func(f *NodeFacts) { f.Disk.Holder = 1 }
	mine, theirs := Key{Node: "a", Epoch: e2}, Key{Node: "b", Epoch: e2, Fence: true}
	writes := func(v *Volume, edits ...func(*NodeFacts)) *NodeFacts {
		return on("a", v, append([]func(*NodeFacts){with(promised(v), opened(e2)), mounted}, edits...)...)
	}
	tests := map[string]struct {
		facts *NodeFacts
		want  verdict
	}{
		"registers it under the key that holds the disk":       {writes(v, attached(mine)), verdict{Register, SessionRenewed}},
		"takes the reservation from its own earlier session":   {writes(v, attached(mine), registered(mine)), verdict{Reserve, SessionRenewed}},
		"does so while the record cannot be read":              {writes(v, attached(mine), unread), verdict{Register, SessionRenewed}},
		"goes on when the session has the reservation":         {writes(v, holding(mine)), verdict{Nothing, Settled}},
		"stops when another node took the reservation":         {writes(v, attached(theirs), registered(mine)), verdict{Close, ShutOut}},
		"stops when a lasting reservation has gone":            {writes(v, attached(Key{}), registered(mine)), verdict{Close, ShutOut}},
		"takes the reservation from an older epoch":            {writes(v, attached(old), registered(mine)), verdict{Reserve, HolderOutdated}},
		"registers first to do so":                             {writes(v, attached(old)), verdict{Register, HolderOutdated}},
		"takes the reservation that a wipe has left":           {writes(v, attached(old), registered(mine), leftByWipe), verdict{Reserve, HolderOutdated}},
		"takes nothing from a key that it does not know":       {writes(v, attached(old), strange), verdict{Wait, HolderUnknown}},
		"takes nothing from an older epoch without the record": {writes(v, attached(old), unread), verdict{Wait, RecordUnread}},
		"takes a reservation again that the target forgot":     {writes(forgetful, attached(Key{}), registered(mine)), verdict{Reserve, SessionRenewed}},
		"takes nothing that was forgotten without the record":  {writes(forgetful, attached(Key{}), unread), verdict{Wait, RecordUnread}},
		"takes nothing for an epoch that it gave up":           {writes(v, attached(mine), func(f *NodeFacts) { f.Copy.Closed = e2 }), verdict{Unmount, ClosingEpoch}},
		"takes nothing back when the record names a new epoch": {writes(volume(owned(Active), shared, func(v *Volume) { v.Epoch = e3 }), attached(Key{Node: "b", Epoch: e3})), verdict{Close, Superseded}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) { expect(t, TendRules.Decide(tt.facts), tt.want) })
	}
}

func TestAKeyFitsInto64BitsAndReadsBack(t *testing.T) {
	keys := []Key{{Node: "a", Epoch: e1}, {Node: "b", Epoch: e1}, {Node: "a", Epoch: e2}, {Node: "a", Epoch: e2, Fence: true}, {Node: "ab", Epoch: e1}}
	seen := map[RawKey]Key{}
	for _, k := range keys {
		if other, is := seen[k.Raw()]; is {
			t.Errorf("%v and %v are one key", k, other)
		}
		seen[k.Raw()] = k
		if k.Raw().Number() != k.Epoch.Number {
			t.Errorf("the key of epoch %v has the number %d", k.Epoch, k.Raw().Number())
		}
	}
	if (Key{}).Raw() != 0 || RawKey(0).Number() != 0 {
		t.Error("no key is a key")
	}
	if stranger := RawKey(42); stranger.Number() <= e3.Number {
		t.Error("something may be taken from a stranger")
	}
	f := on("b", volume(owned(Preparing), shared), func(f *NodeFacts) { f.Disk = Disk{Link: Attached, Holder: Key{Node: "c", Epoch: e3}.Raw()} })
	expect(t, TendRules.Decide(f), verdict{Wait, HolderUnknown})
	f.Peers[1].Copy.Promise = Promise{Epoch: e3, Primary: "c"}
	expect(t, TendRules.Decide(f), verdict{Record, RecordBehind})
}

func TestEveryKeyIsInTheRecordBeforeTheDiskSeesIt(t *testing.T) {
	taken := StageRules.Decide(on("b", volume(shared), attached(Key{}))).Next
	if want := (Key{Node: "b", Epoch: taken.Epoch}); taken.Keys[len(taken.Keys)-1] != want {
		t.Errorf("keys %v, want %v last", taken.Keys, want)
	}
	asked := OverseeRules.Decide(overseeing(volume(owned(Active), shared))).Next
	if want := (Key{Node: "b", Epoch: e2, Fence: true}); asked.Keys[len(asked.Keys)-1] != want {
		t.Errorf("keys %v, want %v last", asked.Keys, want)
	}
	many := volume(shared)
	for range 30 {
		many = StageRules.Decide(on("b", many, attached(Key{}), func(f *NodeFacts) { f.FreshID = many.Epoch.ID + "x" })).Next
		many.Primary.Phase = Released
	}
	if len(many.Keys) != 8 {
		t.Errorf("the table has %d keys", len(many.Keys))
	}
}
