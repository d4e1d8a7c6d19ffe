package ownership_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

func gone(f *NodeFacts) { f.Copy.Exists = false }

func TestAnAttachmentOfADiskWithOneWriterIsDetachedAtOnce(t *testing.T) {
	v := volume(shared, state("b", Removing))
	f := on("b", v, with(promised(v), opened(e1)), attached(Key{Node: "a", Epoch: e1}), gone)
	expect(t, TendRules.Decide(f), verdict{Detach, NoLongerAttached})
}

func TestANodeWithoutACopyAndWithoutAnEntryHasNothingToDo(t *testing.T) {
	expect(t, TendRules.Decide(on("d", volume(), func(f *NodeFacts) { f.Copy = Copy{} })), verdict{Nothing, Settled})
}

func TestTheKeyThatHoldsTheReservationGoesIfItsEpochIsOver(t *testing.T) {
	v := volume(many, writing("a", e2, Released), writing("b", e3, Preparing))
	_, a := NodeRules().Next(as("b", v, knowing(opened(e3)), reserved(ofB, ofA), wanted))
	if expect(t, a, verdict{Reserve, TakingReservation}); a.Expect != ofA.Raw() {
		t.Errorf("it is taken from %v", a.Expect)
	}
}

func TestAReplicaTooManyGoesThoughAnotherIsMissing(t *testing.T) {
	v := volume(owned(Active), shared, func(v *Volume) {
		v.Sharing.MaxShares = 4
		v.Replicas = append(v.Replicas, Replica{Node: "d", State: Ready})
	})
	f := overseeing(v, alive, machine("d", there), lost("b", "d"))
	for _, more := range []string{"e", "f", "g"} {
		f.Nodes = append(f.Nodes, Machine{Name: more})
	}
	expect(t, OverseeRules.Decide(f), verdict{Record, TooManyReplicas})
}

// b had opened epoch 2 before it promised the next one, which a record from a backup has forgotten, too.
func TestAWriterRecordsNoEpochThatItHasNotOpened(t *testing.T) {
	f := as("b", volume(many), reserved(Key{}), func(f *NodeFacts) {
		f.Copy = Copy{Promise: Promise{Epoch: e3, Primary: "b", Boot: "boot1"}, Opened: e2}
	})
	if _, a := NodeRules().Next(f); a.Reason == RecordBehind {
		t.Error(a.Message())
	}
}

func TestAMendedRecordKeepsItsRecoveryPointIfTheHistoryNamesNone(t *testing.T) {
	p := Promise{Epoch: e3, Primary: "a", Boot: "boot1", Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: at(e1, 3)}}}
	a := TendRules.Decide(on("b", volume(), with(func(c *Copy) { c.Promise = p })))
	if expect(t, a, verdict{Record, RecordBehind}); a.Next.RecoveryPoint != at(e1, 3) {
		t.Errorf("the recovery point is %v", a.Next.RecoveryPoint)
	}
}

func TestTheNewestPointStaysThoughNoOtherNodeHasIt(t *testing.T) {
	v := volume(owned(Active), entry("a", func(r *Replica) { r.Point = at(e2, 5) }))
	f := on("a", v, with(promised(v), opened(e2), func(c *Copy) { c.Points = append(points(e1, 1, 2, 3), points(e2, 4, 5)...) }), mounted)
	f.Keep = 0
	a := TendRules.Decide(f)
	if expect(t, a, verdict{Drop, NotNeeded}); slices.Contains(a.Points, at(e2, 5)) || !slices.Contains(a.Points, at(e2, 4)) {
		t.Errorf("%v go", a.Points)
	}
}

func TestADiskThatWasLeftUncleanStaysSoUntilItIsReleasedClean(t *testing.T) {
	for _, clean := range []bool{true, false} {
		v := volume(shared, func(v *Volume) { v.Clean = clean })
		a := StageRules.Decide(on("a", v, with(promised(v)), attached(Key{Node: "a", Epoch: e1}), gone, wanted))
		if expect(t, a, verdict{Record, TakingOver}); a.Next.Clean != clean {
			t.Errorf("the record says clean: %v", a.Next.Clean)
		}
	}
}

func TestAnEpochThatTheVolumeHasLeftBehindIsPromisedNoMore(t *testing.T) {
	rival := Promise{Epoch: e3, Primary: "c", Lineage: lineage.Lineage{{Epoch: e3}}}
	expect(t, TendRules.Decide(on("b", volume(), with(func(c *Copy) { c.Promise = rival }))), verdict{Persist, PromisingEpoch})
	none := volume(func(v *Volume) { v.Epoch, v.Lineage, v.Primary = lineage.Epoch{}, nil, Primary{} })
	if a := TendRules.Decide(on("b", none, with(func(c *Copy) { c.Promise = rival }))); a.Verb == Persist {
		t.Errorf("it promises no epoch at all: %s", a.Message())
	}
}

func TestAFencedNodeSaysThatItHasStoppedOnlyOfWhatItHas(t *testing.T) {
	lostIt := volume(owned(Fenced), state("a", Syncing))
	if a := TendRules.Decide(on("a", lostIt, func(f *NodeFacts) { f.Copy = Copy{} }, alone)); a.Reason == ClosingEpoch {
		t.Error("it speaks of a copy that is not there")
	}
	disk := volume(owned(Fenced), shared)
	over := with(promised(disk), opened(e2), func(c *Copy) { c.Closed = e2 })
	a := TendRules.Decide(on("a", disk, over, attached(Key{Node: "b", Epoch: e2, Fence: true}), gone))
	expect(t, a, verdict{Record, ClosingEpoch})
	if e, _ := a.Next.Replica("a"); e.Unstaged != e2 {
		t.Errorf("its entry says %v", e.Unstaged)
	}
}

func TestADiskOfSeveralWritersIsReleasedCleanByNone(t *testing.T) {
	v := volume(many, writing("a", e2, Active))
	over := func(f *NodeFacts) {
		f.Copy = Copy{Promise: Promise{Epoch: e2, Primary: "a", Boot: "boot1"}, Opened: e2, Closed: e2, Flushed: e2}
	}
	_, a := NodeRules().Next(on("a", v, over, reserved(ofA), over, func(f *NodeFacts) { f.Unstaging = true }))
	if expect(t, a, verdict{Record, Releasing}); a.Next.Clean {
		t.Error("the record says that it is clean")
	}
}

func TestARecordThatNamesTheEpochKnowsItWithoutItsKey(t *testing.T) {
	v := pair(Active, func(v *Volume) { v.Keys = nil })
	if _, a := NodeRules().Next(as("a", v, knowing(opened(e2)), mounted, reserved(ofA, ofB))); a.Reason == RecordBehind {
		t.Error(a.Message())
	}
}

// The key has left the table of the record, and the record has a later epoch of the same node.
func TestAnEpochThatItsNodeHasLeftBehindIsNotRecordedAgain(t *testing.T) {
	v := volume(many, writing("b", e1, Released), writing("a", e3, Preparing))
	v.Keys = nil
	f := as("a", v, reserved(Key{}), func(f *NodeFacts) {
		f.Copy = Copy{Promise: Promise{Epoch: e2, Primary: "a", Boot: "boot1"}, Opened: e2}
	})
	if _, a := NodeRules().Next(f); a.Reason == RecordBehind {
		t.Error(a.Message())
	}
}

// b has given its word about a, and a is fenced since. Then b is asked to shut c out, and c is not registered.
func TestAWordThatAControllerHasReadMakesRoomForTheNext(t *testing.T) {
	e4 := lineage.Epoch{Number: 4, ID: "four"}
	v := volume(many, writing("a", e2, Active), asked("b", "a"), writing("c", e4, Active), asked("b", "c"),
		entry("b", func(r *Replica) { r.Fenced = e2 }))
	for i := range v.Writers {
		if w := &v.Writers[i]; w.Primary.Node == "a" {
			w.Primary.Phase = Fenced // the request has stayed in the record
		}
	}
	_, a := NodeRules().Next(as("b", v, reserved(Key{Node: "b", Epoch: e4, Fence: true})))
	expect(t, a, verdict{Record, ShuttingOut})
	if e, _ := a.Next.Replica("b"); e.Fenced != e4 {
		t.Errorf("its word is about %v", e.Fenced)
	}
}
