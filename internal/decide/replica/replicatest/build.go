package replicatest

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const (
	Here = "n1"
	ID   = "pvc-00000000-0000-0000-0000-000000000001"
	GiB  = int64(1 << 30)
)

// VG0 is the pool of the volume.
var VG0 = provision.PoolRef{Type: "LVM", Name: "vg0"}

// Option changes a Volume.
type Option func(*v1alpha1.Volume)

// Volume is a Filesystem volume of 1 GiB, wanted on node n1 in pool vg0.
func Volume(options ...Option) *v1alpha1.Volume {
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: ID, Labels: map[string]string{v1alpha1.ReplicaLabel(Here): ""}},
		Spec: v1alpha1.VolumeSpec{
			Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: "fast", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{Factor: 1},
			Replicas:    []v1alpha1.ReplicaSpec{{Node: Here, Pool: "vg0"}},
		},
	}
	for _, o := range options {
		o(v)
	}
	return v
}

// Deleting makes the Volume one that is being deleted.
func Deleting(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// Adopted makes the Volume an adopted one.
func Adopted(v *v1alpha1.Volume) { v.Spec.Adopted = true }

// Block makes the volume a raw block volume.
func Block(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" }

// Of sets the capacity that is wanted.
func Of(capacity string) Option {
	return func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse(capacity) }
}

// On moves the wish to other nodes, all in pool vg0.
func On(nodes ...string) Option {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = nil
		for _, n := range nodes {
			v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: n, Pool: "vg0"})
		}
	}
}

// Saying sets the entry of node n1.
func Saying(e *v1alpha1.ReplicaStatus) Option {
	return func(v *v1alpha1.Volume) { v.Status.Replicas = []v1alpha1.ReplicaStatus{*e} }
}

// Ready is the entry of a replica that is as the spec wanted it.
func Ready(capacity, requested string) *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{
		Node: Here, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonCarved,
		Capacity: new(resource.MustParse(capacity)), Allocated: new(resource.MustParse(capacity)), Requested: new(resource.MustParse(requested)),
	}
}

// Failed is an entry of a replica that cannot be used.
func Failed(reason string) *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{
		Node: Here, Pool: "vg0", State: v1alpha1.ReplicaFailed, Reason: reason, Requested: new(resource.MustParse("1Gi")),
	}
}

// Gone is the entry of a replica that was removed.
func Gone() *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{Node: Here, Pool: "vg0", State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
}

// Source is a snapshot of a volume of 1 GiB.
const (
	Source   = "snap-00000000-0000-0000-0000-00000000000a"
	Original = "pvc-00000000-0000-0000-0000-00000000000a"
)

// Restored makes the volume a copy of the snapshot.
func Restored(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Snapshot: Source} }

// CopyUnderWay is the entry of a restored volume that does not hold its data yet.
func CopyUnderWay() *v1alpha1.ReplicaStatus {
	e := Ready("1Gi", "1Gi")
	e.State, e.Ready, e.Reason = v1alpha1.ReplicaCopying, false, v1alpha1.ReasonCopying
	e.Message = "node n1: the data of snapshot " + Source + " is being copied"
	return e
}

// RecordOption changes a record.
type RecordOption func(*provision.Volume)

// Carved is the record of a formatted volume of 1 GiB in vg0.
func Carved(options ...RecordOption) *provision.Volume {
	r := &provision.Volume{ID: ID, Pool: VG0, Size: GiB, Content: provision.Content{Source: "/dev/vg0/" + ID}, Filesystem: provision.Ext4}
	for _, o := range options {
		o(r)
	}
	return r
}

// FromSnapshot makes the record that of a restored volume.
func FromSnapshot(r *provision.Volume) { r.Source = provision.Source{Snapshot: Source} }

// Copying makes the record that of an unfinished copy.
func Copying(r *provision.Volume) { r.Copying = true }

// Blank makes the record that of a volume on which no filesystem was made.
func Blank(r *provision.Volume) { r.Filesystem = "" }

// Inline makes the record that of a pod's inline volume.
func Inline(r *provision.Volume) {
	r.ID, r.Inline = "inline-1", provision.Inline{PodUID: "uid", Name: "scratch"}
}

// Sized sets the size of the record.
func Sized(n int64) RecordOption { return func(r *provision.Volume) { r.Size = n } }

// Marked makes the Volume a reservation.
func Marked(v *v1alpha1.Volume) {
	v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
}

// In places the wish in another pool.
func In(pool string) Option {
	return func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = pool }
}

// InPool sets the pool of the record.
func InPool(name string) RecordOption { return func(r *provision.Volume) { r.Pool.Name = name } }

// Bears sets the filesystem of the record.
func Bears(what string) RecordOption { return func(r *provision.Volume) { r.Filesystem = what } }

// Broken gives the record a problem.
func Broken(r *provision.Volume) { r.Problem = "a disk is missing" }

// Because is a ready entry with another reason.
func Because(reason string) *v1alpha1.ReplicaStatus {
	e := Ready("1Gi", "1Gi")
	e.Reason = reason
	return e
}

// Stuck is an entry of data that should go and cannot.
func Stuck(reason string) *v1alpha1.ReplicaStatus {
	e := Ready("1Gi", "1Gi")
	e.State, e.Ready, e.Reason, e.Requested = v1alpha1.ReplicaFailed, false, reason, nil
	return e
}

// Says says whether an entry of node n1 has a state and a reason; an empty state is for no entry.
func Says(e *v1alpha1.ReplicaStatus, state v1alpha1.ReplicaState, reason string) bool {
	if e == nil {
		return state == ""
	}
	return e.State == state && e.Reason == reason && e.Ready == (state == v1alpha1.ReplicaReady) && e.Node == Here
}
