package ownership_test

import (
	"slices"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

// a takes epoch 2, and b takes epoch 3 before a has read the record again. A backup from before both comes back.
func TestAMendedRecordEndsWithTheEpochThatIsMended(t *testing.T) {
	backup := volume(many)
	takes := func(node, id string, v *Volume) *Volume {
		f := as(node, v, reserved(Key{}), wanted)
		f.FreshID, f.Peers = id, nil
		_, a := NodeRules().Next(f)
		expect(t, a, verdict{Record, TakingOver})
		return a.Next
	}
	both := takes("b", "three", takes("a", "two", backup))
	f := as("a", both, reserved(Key{}), wanted)
	f.Copy.Promise, f.Peers = Promise{Epoch: e1, Primary: "a", Boot: "boot1", Lineage: lineage.Lineage{{Epoch: e1}}}, nil
	_, promises := NodeRules().Next(f)
	expect(t, promises, verdict{Persist, PromisingEpoch})
	p := promises.Promise
	f = on("a", backup, with(has(), func(c *Copy) { c.Promise, c.Opened = p, p.Epoch }), mounted, reserved(Key{Node: "a", Epoch: p.Epoch}))
	f.Peers = nil
	_, mends := NodeRules().Next(f)
	expect(t, mends, verdict{Record, RecordBehind})
	if n := mends.Next; n.Epoch.Number != 2 || n.Lineage.Head() != n.Epoch {
		t.Errorf("the record is of epoch %v, and its history ends with %v", n.Epoch, n.Lineage.Head())
	}
}

// The record comes from a backup, and b did not hear of a, which had not registered yet.
func TestAnEpochWhoseNumberAnotherNodeHasSinceIsLost(t *testing.T) {
	two, rival := lineage.Epoch{Number: 2, ID: "two"}, lineage.Epoch{Number: 2, ID: "rival"}
	v := volume(many, writing("b", rival, Preparing))
	p := Promise{Epoch: two, Primary: "a", Boot: "boot1", Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: two}}}
	tells := answers("a", func(peer *Peer) { peer.Copy.Promise, peer.Copy.Opened = p, two })
	_, b := NodeRules().Next(as("b", v, wanted, reserved(Key{}), tells))
	expect(t, b, verdict{Open, TakingReservation})
	a := on("a", v, mounted, reserved(Key{Node: "a", Epoch: two}))
	a.Copy.Promise, a.Copy.Opened = p, two
	_, closes := NodeRules().Next(a)
	expect(t, closes, verdict{Close, Superseded})
}

// b writes and is to shut a out, and its pod keeps the device while its path is away. c has the disk, too.
func TestAnExecutorWhosePathIsAwayIsReplaced(t *testing.T) {
	v := pair(Active, asked("b", "a"), entry("c", func(r *Replica) { r.State = Ready }))
	_, says := NodeRules().Next(as("b", v, knowing(opened(e3)), mounted, reserved(Key{}), link(Attaching)))
	expect(t, says, verdict{Record, Reporting})
	f, about := observed(says.Next, "a")
	asks := oversee(f, about)
	expect(t, asks, verdict{Record, FenceRequested})
	if r := asks.Next.On("a").FenceRequest; r.Executor != "c" {
		t.Errorf("%s is asked", r.Executor)
	}
}

// A taint and a power record are proofs about the machine, and no node was asked to shut it out.
func TestTheWritersTakeTheRegistrationOfAFencedOneAway(t *testing.T) {
	v := volume(many, writing("a", e2, Fenced), writing("b", e3, Active))
	_, does := NodeRules().Next(as("b", v, knowing(opened(e3)), mounted, reserved(ofB, ofA)))
	expect(t, does, verdict{Reserve, ShuttingOut})
	if does.Expect != ofA.Raw() || does.Key != ofB {
		t.Errorf("%v goes, under %v", does.Expect, does.Key)
	}
	for name, f := range map[string]*NodeFacts{
		"its registration is gone":     as("b", v, knowing(opened(e3)), mounted, reserved(ofB)),
		"one node alone may write":     as("b", v, knowing(opened(e3)), mounted, reserved(ofB, ofA), heldBy(ofB.Raw(), false)),
		"it has let go by itself":      as("b", volume(many, writing("a", e2, Released), writing("b", e3, Active)), knowing(opened(e3)), mounted, reserved(ofB, ofA)),
		"a node that does not write":   as("b", v, reserved(ofB, ofA), knowing(opened(e3), func(c *Copy) { c.Closed = e3 })),
		"the fenced one has to see it": as("a", v, knowing(opened(e2)), mounted, reserved(ofA, ofB)),
	} {
		if _, a := NodeRules().Next(f); a.Verb == Reserve {
			t.Errorf("%s: %s", name, a.Message())
		}
	}
}

// c is asked to shut a out, and its pod ends in this moment. No other node has the disk.
func TestTheNodeThatIsToShutAWriterOutKeepsItsAttachment(t *testing.T) {
	v := volume(many, writing("c", e1, Released), writing("a", e2, Active), asked("c", "a"), func(v *Volume) {
		v.Factor = 1
		v.Replicas = slices.DeleteFunc(v.Replicas, func(r Replica) bool { return r.Node == "b" })
	})
	f, about := observed(v, "a")
	for i := range f.Nodes {
		f.Nodes[i].LostFor = min(f.Nodes[i].LostFor, 5*time.Second)
	}
	expect(t, oversee(f, about), verdict{Wait, FenceRequested})
}
