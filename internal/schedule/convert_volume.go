package schedule

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

// volume converts a Volume: its wanted replicas, and those that still exist elsewhere.
func volume(v *v1alpha1.Volume) ledger.VolumeObject {
	out := ledger.VolumeObject{Name: v.Name, Class: v.Spec.PoolClass, Capacity: v.Spec.Capacity.Value(), Revision: revision(v.ResourceVersion)}
	if v.Spec.ClaimRef != nil {
		out.Claim = string(v.Spec.ClaimRef.UID)
	}
	for _, wanted := range v.Spec.Replicas {
		out.Replicas = append(out.Replicas, wantedReplica(v, wanted))
	}
	for i := range v.Status.Replicas {
		entry := &v.Status.Replicas[i]
		if v.Wish(entry.Node) != nil {
			continue
		}
		// This replica is to be removed, and will not grow to the size in the spec.
		left := ledger.Replica{Node: entry.Node, Pool: entry.Pool, State: ledger.Refused, Actual: value(entry.Capacity), Taken: value(entry.Allocated)}
		if entry.State == v1alpha1.ReplicaGone {
			left.State = ledger.Gone
		}
		out.Replicas = append(out.Replicas, left)
	}
	return out
}

// wantedReplica merges a replica of the spec with its node's report.
func wantedReplica(v *v1alpha1.Volume, wanted v1alpha1.ReplicaSpec) ledger.Replica {
	r := ledger.Replica{Node: wanted.Node, Pool: wanted.Pool, Yields: yields(v, wanted.Node)}
	entry := v.Entry(wanted.Node)
	switch {
	case entry == nil:
		return r
	case entry.State == v1alpha1.ReplicaGone:
		if v.DeletionTimestamp != nil {
			r.State = ledger.Gone
		}
		return r // otherwise the entry answers an older request
	}
	r.Actual, r.Taken = value(entry.Capacity), value(entry.Allocated)
	if entry.Capacity == nil { // other data of that name is in the pool
		r.Actual = r.Taken
	}
	answered := entry.Requested != nil && entry.Requested.Cmp(v.Spec.Capacity) == 0
	switch {
	case answered && slices.Contains(refusals, entry.Reason):
		r.State = ledger.Refused
	case answered && entry.State == v1alpha1.ReplicaReady:
		r.State = ledger.Ready
	}
	return r
}

// yields is whether the volume's replica on a node gives its slot up to a volume that needs one: it
// is not an owner's, nor the first, for which the volume was placed, while there is no owner.
func yields(v *v1alpha1.Volume, node string) bool {
	if a := v.Spec.Replication.Attachments; a == nil || !a.Yields {
		return false
	}
	if owners := v.Status.Ownership.Owners(); len(owners) > 0 {
		return !slices.Contains(owners, node)
	}
	return node != v.Spec.Replicas[0].Node
}

// refusals are the reasons why a node will not make a replica larger than it is: it
// lacks room, it never will, or something has to be changed first.
var refusals = []string{
	v1alpha1.ReasonNoSpace, v1alpha1.ReasonDeviceMissing, v1alpha1.ReasonConflict, v1alpha1.ReasonInvalid, v1alpha1.ReasonUnsupported,
}

// persistentVolume converts a PersistentVolume of the driver; false if it is another
// driver's. Only its Volume says where it is.
func persistentVolume(d driver.Driver, pv *corev1.PersistentVolume) (ledger.PVObject, bool) {
	handle := d.Handle(pv)
	if handle == "" {
		return ledger.PVObject{}, false
	}
	out := ledger.PVObject{Name: pv.Name, Volume: handle}
	if pv.Spec.ClaimRef != nil {
		out.Claim = string(pv.Spec.ClaimRef.UID)
	}
	return out, true
}

// nodeOf returns the one node that a PersistentVolume is bound to, or empty.
func nodeOf(pv *corev1.PersistentVolume) string {
	if pv.Spec.NodeAffinity == nil || pv.Spec.NodeAffinity.Required == nil {
		return ""
	}
	terms := pv.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 {
		return ""
	}
	for _, e := range terms[0].MatchExpressions {
		if e.Key == v1alpha1.TopologyKey && e.Operator == corev1.NodeSelectorOpIn && len(e.Values) == 1 {
			return e.Values[0]
		}
	}
	return ""
}
