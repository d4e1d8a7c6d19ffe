package snapshot

import (
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

// Facts are the node's knowledge of one snapshot, besides its entry.
type Facts = placed.Facts[provision.Snapshot]

// Answer is the node's decision about one snapshot, and its report on it.
type Answer = placed.Answer[v1alpha1.SnapshotReplica]

var to = placed.To[v1alpha1.SnapshotReplica]

type view = placed.View[*v1alpha1.Snapshot, v1alpha1.SnapshotReplica, provision.Snapshot]

// rules are those for a snapshot that should not be on the node, for one that should and is
// missing, and for one that should and is there.
var rules = decide.Chain[view, Answer]{
	{When: view.Unconcerned, Then: func(view) Answer { return to(decide.None) }},
	{When: view.Away, Then: func(v view) Answer { return report(v, awayEntry(v)) }},
	{When: view.Gone, Then: func(v view) Answer { return report(v, goneEntry(v)) }},
	{When: removable, Then: func(view) Answer { return to(decide.Remove) }},
	{When: view.Unwanted, Then: keep},

	{When: takenBefore, Then: missing},
	{When: refused, Then: func(v view) Answer { return report(v, v.Entry) }},
	{When: view.Missing, Then: func(view) Answer { return to(decide.Take) }},

	{When: another, Then: conflict},
	{Then: func(v view) Answer { return report(v, presentEntry(v)) }},
}

// Kind holds the decisions about snapshots.
var Kind = placed.Kind[*v1alpha1.Snapshot, v1alpha1.SnapshotReplica, provision.Snapshot]{
	What: "snapshot", Decide: Decide, Refusal: refusal, Says: says,
	Describe: describe, Records: recordsOf, Possible: possible,
	Settled:  settled,
	Unsure:   func(*v1alpha1.Snapshot) bool { return false }, // no pod writes to a snapshot
	MayExist: func(error) bool { return true },               // its volume may be gone by now
}

// Decide decides what a node does next about a snapshot.
func Decide(v view) Answer { return rules.Decide(v) }

func settled(v view) bool { return Decide(v).Verb == decide.None }

func says(e *v1alpha1.SnapshotReplica) (pool string, data, gone bool) {
	if e == nil {
		return "", false, false
	}
	gone = e.State == v1alpha1.SnapshotGone
	return e.Pool, e.Taken != nil && !gone, gone
}

func describe(r *provision.Snapshot, node string) (data orphan.Record, noObject string) {
	return orphan.Record{Name: r.ID, Pool: r.Pool.Name, Size: r.Size},
		fmt.Sprintf("snapshot %s on node %s has no Snapshot object: it is kept; adopt it, forget it, or restore the object", r.ID, node)
}

// removable says whether a snapshot that should not be here is the very one that the entry says
// was taken. The name proves nothing: the object may come from an old backup of the API server.
func removable(v view) bool {
	return v.Unwanted() && v.Entry != nil && v.Entry.Pool == v.Record.Pool.Name && v.Record.Volume == v.Object.Spec.Volume &&
		sameTaken(v.Entry, takenEntry(v))
}

// takenBefore says whether there is no snapshot, and another one would hold other data.
func takenBefore(v view) bool {
	return v.Missing() && (v.Object.Spec.Adopted || v.Entry != nil && v.Entry.Taken != nil)
}

// final are the reasons after which no second try to take the snapshot can help.
var final = []string{v1alpha1.ReasonUnsupported, v1alpha1.ReasonInvalid, v1alpha1.ReasonConflict}

// refused says whether the snapshot could not be taken, and cannot be.
func refused(v view) bool {
	return v.Missing() && v.Entry != nil && v.Entry.State == v1alpha1.SnapshotFailed && slices.Contains(final, v.Entry.Reason)
}

func another(v view) bool { return difference(v) != "" }

// difference says how the snapshot differs from the object's; empty if it does not.
func difference(v view) string {
	record := v.Record
	switch {
	case record.Volume != v.Object.Spec.Volume:
		return fmt.Sprintf("the snapshot is of volume %s, not of %s", record.Volume, v.Object.Spec.Volume)
	case record.Pool.Name != v.Wish.Pool:
		return fmt.Sprintf("the snapshot is in pool %s, not in %s", record.Pool.Name, v.Wish.Pool)
	case v.Entry != nil && v.Entry.Taken != nil && !sameTaken(v.Entry, takenEntry(v)):
		return fmt.Sprintf("the snapshot here is another one, taken %s: the one that was reported is not replaced by it", record.Taken)
	}
	return ""
}

func keep(v view) Answer {
	d := to(decide.Keep)
	if v.Owed() {
		d = report(v, keptApartEntry(v))
	}
	d.Decision = decide.Decision{Verb: decide.Keep, Reason: string(v1alpha1.OrphanNotPlaced), Message: fmt.Sprintf(
		"snapshot %s in pool %s of node %s is kept: nothing shows that it is the one of the Snapshot object, which does not want it and may come from an old backup; %s",
		v.Object.Name, v.Record.Pool.Name, v.Node, v.Remedy("Snapshot"))}
	return d
}

func missing(v view) Answer {
	return report(v, failedEntry(v, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
		"node %s: pool %s no longer has snapshot %s; it is not taken again, because it would hold other data", v.Node, v.Wish.Pool, v.Object.Name)))
}

func conflict(v view) Answer {
	return report(v, failedEntry(v, v1alpha1.ReasonConflict, v.KeptAsItIs("Snapshot", difference(v))))
}

// refusal is the node's report on a step that failed.
func refusal(v view, verb decide.Verb, reason, message string) Answer {
	switch {
	case verb == decide.Take:
		d := report(v, failedEntry(v, reason, message))
		d.Final = slices.Contains(final, reason)
		return d
	case reason == v1alpha1.ReasonPoolMissing: // whether the provisioner remembers the pool or not
		return report(v, awayEntry(v)) // there is an entry: without it nothing is removed
	default:
		return report(v, stuckEntry(v, reason, message))
	}
}

func report(v view, next *v1alpha1.SnapshotReplica) Answer {
	return placed.Say(next, !same(v.Entry, next), next.Reason, next.Message)
}
