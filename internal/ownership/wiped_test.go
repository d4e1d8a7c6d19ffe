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
	a := staged(t, begun(true), Disk{Link: Attached, Holder: left, Keys: []RawKey{earlier, left}})
	if a.Verb != Reserve || a.Expect != earlier || a.Key.Epoch.Number != wiped.Epoch.Number+1 {
		t.Errorf("it does %v in epoch %v, and takes %#x away: %s", a.Verb, a.Key.Epoch, uint64(a.Expect), a.Message())
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
}
