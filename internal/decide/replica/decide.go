package replica

import (
	"errors"
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

// Facts are the node's knowledge of one volume, besides its entry.
type Facts = placed.Facts[provision.Volume]

// Answer is the node's decision about one volume, and its report on it.
type Answer = placed.Answer[v1alpha1.ReplicaStatus]

var to = placed.To[v1alpha1.ReplicaStatus]

type view = placed.View[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]

// rules are those for a volume that is not this package's, for a replica that should not be on the node, for one that should and is
// missing, and for one that should and is there.
var rules = decide.Chain[view, Answer]{
	{When: isOwned, Then: func(view) Answer { return to(decide.None) }},
	{When: view.Unconcerned, Then: func(view) Answer { return to(decide.None) }},
	{When: view.Away, Then: func(v view) Answer { return report(v, awayEntry(v)) }},
	{When: view.Gone, Then: func(v view) Answer { return report(v, goneEntry(v)) }},
	{When: removable, Then: func(view) Answer { return to(decide.Remove) }},
	{When: view.Unwanted, Then: keep},

	{When: unmade, Then: func(view) Answer { return to(decide.Create) }},
	{When: view.Missing, Then: missing},

	{When: isAnother, Then: func(v view) Answer { return report(v, conflictEntry(v)) }},
	{When: isBroken, Then: func(v view) Answer { return report(v, brokenEntry(v)) }},
	{When: isCopying, Then: func(v view) Answer { return report(v, copyingEntry(v)) }},
	{When: isSmall, Then: func(view) Answer { return to(decide.Expand) }},
	{When: found, Then: func(v view) Answer { return report(v, foundEntry(v)) }},
	{Then: finished},
}

// Kind holds the decisions about replicas.
var Kind = placed.Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]{
	What: "volume", Decide: Decide, Refusal: refusal, Settled: departed, Says: says,
	Unsure: unsure, MayExist: mayExist, Describe: describe, Records: recordsOf, Possible: fits,
}

// Decide decides what a node does next about its replica of a volume.
func Decide(v view) Answer { return rules.Decide(v) }

// unsure is false for a filesystem: its record says whether it was made, and a volume that was
// just made has none.
func unsure(v *v1alpha1.Volume) bool {
	return v.Spec.VolumeMode != v1alpha1.Filesystem || v.Spec.Source != nil
}

// mayExist is true for a conflict: a replica that an earlier run made may have another size by now.
func mayExist(err error) bool { return errors.Is(err, provision.ErrConflict) }

// departed says whether a replica should not be on a node and the entry says that it is not.
func departed(v view) bool {
	return v.Unwanted() && v.Entry != nil && v.Entry.State == v1alpha1.ReplicaGone
}

func says(e *v1alpha1.ReplicaStatus) (pool string, data, gone bool) {
	if e == nil {
		return "", false, false
	}
	return e.Pool, e.HasData(), e.State == v1alpha1.ReplicaGone
}

func describe(r *provision.Volume, node string) (data orphan.Record, noObject string) {
	return orphan.Record{Name: r.ID, Pool: r.Pool.Name, Size: r.Size},
		fmt.Sprintf("volume %s on node %s has no Volume object: the data is kept; adopt it, forget it, or restore the object", r.ID, node)
}

// unmade says whether there is no data, and the entry does not prove that it was here once. An
// unfinished copy does not count: no pod could use it, and its source is still there.
func unmade(v view) bool {
	carved := v.Entry != nil && (v.Entry.State == v1alpha1.ReplicaReady || v.Entry.Reason == v1alpha1.ReasonDeviceMissing)
	return v.Missing() && !carved && !v.Object.Spec.Adopted
}

// isOwned says whether the volume has copies on several nodes. The rules of ownership alone make them, and decide
// which of them goes: a standby cannot be mounted, is not broken, and its head looks like data that no pod has had.
func isOwned(v view) bool { return v.Object.Spec.Replication.Kind != "" }

func isAnother(v view) bool { return difference(v) != "" }
func isBroken(v view) bool  { return v.Record.Problem != "" }
func isCopying(v view) bool { return v.Record.Copying }
func isSmall(v view) bool   { return v.Record.Size < v.Object.Spec.Capacity.Value() }

func keep(v view) Answer {
	d := to(decide.Keep)
	if v.Owed() {
		d = report(v, keptApartEntry(v))
	}
	d.Decision = decide.Decision{Verb: decide.Keep, Reason: string(v1alpha1.OrphanNotPlaced), Message: fmt.Sprintf(
		"volume %s in pool %s of node %s is kept: the Volume object does not want it, may come from an old backup, and nothing proves that the data is its own and that no process was told of it; %s",
		v.Object.Name, v.Record.Pool.Name, v.Node, v.Remedy("Volume"))}
	return d
}

func missing(v view) Answer {
	return report(v, failedEntry(v, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
		"node %s: pool %s no longer has volume %s; it is not made again, because its data would be missing", v.Node, v.Wish.Pool, v.Object.Name)))
}

func finished(v view) Answer {
	d, spec := report(v, readyEntry(v)), v.Object.Spec
	if v.Record.Filesystem == "" && !v.Object.Reserved() {
		d.Format = provision.FormatRequest{ID: v.Object.Name, Filesystem: string(spec.FSType), Options: spec.MkfsOptions}
	}
	return d
}

// refusal is the node's report on a step that failed.
func refusal(v view, verb decide.Verb, reason, message string) Answer {
	switch {
	case verb == decide.Create:
		return report(v, failedEntry(v, reason, message))
	case verb == decide.Expand:
		return report(v, unexpandedEntry(v, reason, message))
	case reason == v1alpha1.ReasonPoolMissing && v.Entry.HasData():
		return report(v, awayEntry(v)) // whether the provisioner remembers the pool or not
	default:
		return report(v, stuckEntry(v, reason, message))
	}
}

func report(v view, next *v1alpha1.ReplicaStatus) Answer {
	return placed.Say(next, !same(v.Entry, next), next.Reason, next.Message)
}
