package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

// Facts are the node's knowledge of one volume, besides its entry.
type Facts = placed.Facts[provision.Volume]

// Answer is the node's decision about one volume, and its report on it.
type Answer = placed.Answer[v1alpha1.ReplicaStatus]

type view = placed.View[*v1alpha1.Volume, v1alpha1.ReplicaStatus, provision.Volume]

// rules are those for a replica that should not be on the node, for one that should and is
// missing, and for one that should and is there.
var rules = decide.Chain[view, Answer]{
	{When: view.Unconcerned, Then: func(view) Answer { return placed.To[v1alpha1.ReplicaStatus](decide.None) }},
	{When: view.Away, Then: func(v view) Answer { return report(v, awayEntry(v)) }},
	{When: view.Gone, Then: func(v view) Answer { return report(v, goneEntry(v)) }},
	{When: removable, Then: func(view) Answer { return placed.To[v1alpha1.ReplicaStatus](decide.Remove) }},
	{When: view.Unwanted, Then: keep},

	{When: unmade, Then: func(view) Answer { return placed.To[v1alpha1.ReplicaStatus](decide.Create) }},
	{When: view.Missing, Then: missing},

	{When: isAnother, Then: conflict},
	{When: isBroken, Then: unusable},
	{When: isCopying, Then: func(v view) Answer { return report(v, copyingEntry(v)) }},
	{When: isSmall, Then: func(view) Answer { return placed.To[v1alpha1.ReplicaStatus](decide.Expand) }},
	{When: found, Then: func(v view) Answer { return report(v, foundEntry(v)) }},
	{When: decide.Always[view], Then: finished},
}

// Decide compares a volume with the facts of a node.
func Decide(v *v1alpha1.Volume, node string, f Facts) Answer { return rules.Decide(look(v, node, f)) }

func look(v *v1alpha1.Volume, node string, f Facts) view {
	return view{Facts: f, Object: v, Node: node, Wish: placed.Wish(v.Spec.Replicas, node), Entry: v.Entry(node)}
}

// Departed says whether a replica should not be on a node and the entry says that it is not.
func Departed(v *v1alpha1.Volume, node string) bool {
	at := look(v, node, Facts{})
	_, gone := Says(at.Entry)
	return at.Unwanted() && gone
}

// Doubt returns the pool that the entry names for data that should go. While that pool is not
// read, a missing record proves nothing.
func Doubt(v *v1alpha1.Volume, node string) (pool string, doubted bool) {
	at := look(v, node, Facts{})
	if at.Wanted() || !at.Entry.HasData() {
		return "", false
	}
	return at.Entry.Pool, true
}

// Says returns whether an entry says that the data is the object's own, and whether it says that
// nothing is left.
func Says(e *v1alpha1.ReplicaStatus) (data, gone bool) {
	return e.HasData(), e != nil && e.State == v1alpha1.ReplicaGone
}

// unmade says whether there is no data, and the entry does not prove that it was here once. An
// unfinished copy does not count: no pod could use it, and its source is still there.
func unmade(v view) bool {
	carved := v.Entry != nil && (v.Entry.State == v1alpha1.ReplicaReady || v.Entry.Reason == v1alpha1.ReasonDeviceMissing)
	return v.Missing() && !carved && !v.Object.Spec.Adopted
}

func isAnother(v view) bool { return difference(v) != "" }
func isBroken(v view) bool  { return v.Record.Problem != "" }
func isCopying(v view) bool { return v.Record.Copying }
func isSmall(v view) bool   { return v.Record.Size < v.Object.Spec.Capacity.Value() }

func keep(v view) Answer {
	d := placed.To[v1alpha1.ReplicaStatus](decide.Keep)
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

func conflict(v view) Answer {
	return report(v, conflictEntry(v, v.KeptAsItIs("Volume", difference(v))))
}

func unusable(v view) Answer {
	return report(v, unusableEntry(v, v1alpha1.ReasonDeviceMissing, fmt.Sprintf("node %s: %s", v.Node, v.Record.Problem)))
}

func finished(v view) Answer {
	d := report(v, readyEntry(v))
	if v.Record.Filesystem == "" && !v.Object.Reserved() {
		d.Format = v.Object.Spec.FSType
	}
	return d
}

// Refusal returns the node's report on a step that failed, for a reason.
func Refusal(v *v1alpha1.Volume, node string, f Facts, verb decide.Verb, reason, message string) Answer {
	at := look(v, node, f)
	switch verb {
	case decide.Create:
		return report(at, failedEntry(at, reason, message))
	case decide.Expand:
		return report(at, unexpandedEntry(at, reason, message))
	default:
		if reason == v1alpha1.ReasonPoolMissing && at.Entry.HasData() {
			return report(at, awayEntry(at)) // whether the provisioner remembers the pool or not
		}
		return report(at, stuckEntry(at, reason, message))
	}
}

func report(v view, next *v1alpha1.ReplicaStatus) Answer {
	return placed.Say(next, !same(v.Entry, next), next.Reason, next.Message)
}
