package ownership_test

import (
	"testing"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// begun is the first record of a volume that was just given a disk, which node b has attached.
func begun(many bool) *Volume {
	return volume(shared, state("b", Ready), func(v *Volume) {
		v.Epoch = e1
		v.Lineage, v.Primary, v.Keys = lineage.Lineage{{Epoch: e1}}, Primary{}, nil
		v.Sharing.ManyWriters, v.Sharing.Persistent = many, true
	})
}

// wiped is the key of a wipe that came after a volume's third epoch.
var wiped = Key{Node: "z", Epoch: lineage.Epoch{Number: 4, ID: "wipe"}}

// staged plays the staging of a volume on node b from the record, until it mounts, or waits, or has taken a key from the
// disk, and returns its last action.
func staged(t *testing.T, v *Volume, d Disk) Action {
	t.Helper()
	f := &NodeFacts{Me: "b", Boot: "boot", Now: now, Record: v, FreshID: "fresh", Wanted: true, Disk: d}
	for range 20 {
		f.Record = f.Record.On("b")
		a := StageRules.Decide(f)
		switch a.Verb {
		case Record:
			f.Record = a.Next.Stored()
		case Persist:
			f.Copy.Promise = a.Promise
		case Open:
			f.Copy.Opened = a.Promise.Epoch
			f.Disk.Registered = a.Key.Raw()
		case Register:
			f.Disk.Registered = a.Key.Raw()
		default:
			return a
		}
	}
	t.Fatal("it comes to no end")
	return Action{}
}

// A backup has brought back the record of a volume that is new, or that ended since, and its disk is another volume's
// now, which node a writes.
func TestADiskThatAnotherVolumeWritesIsLeftToIt(t *testing.T) {
	other := func(number uint64) Disk {
		k := Key{Node: "a", Epoch: lineage.Epoch{Number: number, ID: "of the other volume"}}.Raw()
		return Disk{Link: Attached, Holder: k, Keys: []RawKey{k}}
	}
	ended := func(many bool) *Volume {
		v := begun(many)
		v.Epoch = lineage.Epoch{Number: 3, ID: "three"}
		v.Lineage, v.Clean = lineage.Lineage{{Epoch: v.Epoch}}, true
		v.Primary, v.Keys = Primary{Node: "b", Boot: "boot", Phase: Released}, []Key{{Node: "b", Epoch: v.Epoch}}
		return v
	}
	next := wiped.Epoch.Number + 1 // no volume after the wipe has an epoch with a lower number
	for name, test := range map[string]struct {
		record *Volume
		disk   Disk
	}{
		"a new volume that one node writes":         {begun(false), other(2)},
		"a new volume that several nodes write":     {begun(true), other(2)},
		"a volume that ended, and one node wrote":   {ended(false), other(next)},
		"a volume that ended, and several wrote":    {ended(true), other(next)},
		"a new volume, and a disk of the very last": {begun(true), other(1<<29 - 1)},
	} {
		t.Run(name, func(t *testing.T) {
			if a := staged(t, test.record, test.disk); a.Verb != Wait || a.Reason != HolderUnknown {
				t.Errorf("it does %v: %s", a.Verb, a.Message())
			}
		})
	}
}

// What is registered at a disk that was wiped, and is no newer than the wipe, was the last volume's.
func TestWhatIsOlderThanTheWipeKeepsNoVolumeFromItsDisk(t *testing.T) {
	left, earlier := LeftByWipe(wiped), Key{Node: "c", Epoch: lineage.Epoch{Number: 3, ID: "of the last volume"}}.Raw()
	disk := Disk{Link: Attached, Holder: left, Keys: []RawKey{earlier, left}}
	for name, test := range map[string]struct {
		many  bool
		takes RawKey
	}{
		"one node writes":     {false, left},
		"several nodes write": {true, earlier}, // first
	} {
		a := staged(t, begun(test.many), disk)
		if a.Verb != Reserve || a.Expect != test.takes || a.Key.Epoch.Number != wiped.Epoch.Number+1 {
			t.Errorf("%s: it does %v in epoch %v, and takes %#x away: %s", name, a.Verb, a.Key.Epoch, uint64(a.Expect), a.Message())
		}
	}
}

// The disk of a volume that one node writes takes the writes of the reservation's holder alone. A node that is only
// registered writes nothing, so nobody waits for it.
func TestWhereOneNodeWritesARegistrationKeepsNobodyOut(t *testing.T) {
	later := Key{Node: "a", Epoch: epoch(9)}.Raw()
	if a := staged(t, begun(false), Disk{Link: Attached, Keys: []RawKey{later}}); a.Verb != Reserve || a.Expect != 0 {
		t.Errorf("it does %v: %s", a.Verb, a.Message())
	}
}

func TestAVolumeKnowsItsOwnKeys(t *testing.T) {
	f := on("b", begun(false), with(promised(volume(owned(Active), shared))), func(f *NodeFacts) { f.Record.Keys = []Key{{Node: "c", Epoch: e3}} })
	for r, want := range map[RawKey]bool{
		0:                               false,
		42:                              false,
		LeftByWipe(wiped):               false,
		Key{Node: "a", Epoch: e3}.Raw(): false,
		Key{Node: "c", Epoch: e3}.Raw(): true, // in the record
		Key{Node: "a", Epoch: e2}.Raw(): true, // promised
		f.Record.Keys[0].Raw() ^ 1<<62:  false,
	} {
		if got := f.Issued(r); got != want {
			t.Errorf("%#x is the volume's: %v", uint64(r), got)
		}
	}
}

// An epoch that a node of the volume knows of is the volume's, also if the record has forgotten it.
func TestAnEpochThatANodeKnowsOfKeepsNoWriterOut(t *testing.T) {
	ends := func(p *Peer) { p.Copy.Promise.Epoch, p.Copy.Opened, p.Copy.Closed = epoch(7), epoch(7), epoch(7) }
	keys := raw(Key{Node: "a", Epoch: epoch(7)}.Raw(), Key{Node: "a", Epoch: epoch(6)}.Raw())
	a := StageRules.Decide(as("b", volume(many, writing("a", e2, Released)), reserved(Key{}), keys, answers("a", ends)))
	expect(t, a, verdict{Record, TakingOver})
	a = StageRules.Decide(as("b", volume(many, writing("a", e2, Released)), reserved(Key{}), keys))
	expect(t, a, verdict{Wait, HolderUnknown})
	// A key of the volume shows that the disk is still the volume's, unless the disk was wiped after that.
	a = StageRules.Decide(as("b", volume(many, writing("a", e2, Released)), reserved(ofA), keys))
	expect(t, a, verdict{Record, TakingOver})
	left := raw(LeftByWipe(Key{Node: "z", Epoch: e3}))
	a = StageRules.Decide(as("b", volume(many, writing("a", e2, Released)), reserved(ofA), left, keys))
	expect(t, a, verdict{Wait, HolderUnknown})
}

// An administrator named a disk that others use, and deletes the volume.
func TestAVolumeThatIsDeletedLeavesADiskToItsHolder(t *testing.T) {
	removing := func(v *Volume) { v.Deleting, v.Replicas[1].State = true, Removing }
	for name, test := range map[string]struct {
		many   func(*Volume)
		holder RawKey
		edit   func(*NodeFacts)
		want   verdict
	}{
		"another cluster's, one node writes":        {shared, ofAnother, none, verdict{Detach, VolumeDeleting}},
		"another cluster's, several nodes write":    {many, ofAnother, none, verdict{Detach, VolumeDeleting}},
		"a stranger's, one node writes":             {shared, 42, none, verdict{Detach, VolumeDeleting}},
		"a stranger's, several nodes write":         {many, 42, none, verdict{Detach, VolumeDeleting}},
		"a stranger's, and a pod has the disk here": {shared, 42, mounted, verdict{Wait, HolderUnknown}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := func(f *NodeFacts) { f.Disk = Disk{Link: Attached, Holder: test.holder, Keys: []RawKey{test.holder}} }
			expect(t, TendRules.Decide(on("b", volume(test.many, removing), disk, test.edit)), test.want)
		})
	}
}

var ofAnother = Key{Node: "x", Epoch: epoch(9)}.Raw()

func none(*NodeFacts) {}
