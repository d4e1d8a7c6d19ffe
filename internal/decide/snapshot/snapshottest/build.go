package snapshottest

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const (
	Here   = "n1"
	ID     = "snap-00000000-0000-0000-0000-000000000001"
	Volume = "pvc-00000000-0000-0000-0000-000000000001"
	GiB    = int64(1 << 30)
)

var (
	// VG0 is the pool of the snapshots.
	VG0 = provision.PoolRef{Type: "LVM", Name: "vg0"}
	// Moment is the time at which disks in memory take snapshots.
	Moment = time.Unix(1, 0).UTC()
)

// Option changes a Snapshot.
type Option func(*v1alpha1.Snapshot)

// Snapshot is a Snapshot of a volume of 1 GiB, wanted on node n1 in pool vg0.
func Snapshot(options ...Option) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{
		ObjectMeta: metav1.ObjectMeta{Name: ID, Labels: map[string]string{v1alpha1.ReplicaLabel(Here): ""}},
		Spec:       v1alpha1.SnapshotSpec{Volume: Volume, VolumeMode: v1alpha1.Block, PoolClass: "fast", Replicas: []v1alpha1.ReplicaSpec{{Node: Here, Pool: "vg0"}}},
	}
	for _, o := range options {
		o(s)
	}
	return s
}

// Deleting makes the Snapshot one that is being deleted.
func Deleting(s *v1alpha1.Snapshot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

// Adopted makes the Snapshot an adopted one.
func Adopted(s *v1alpha1.Snapshot) { s.Spec.Adopted = true }

// Unlabelled takes the labels of nodes off the Snapshot.
func Unlabelled(s *v1alpha1.Snapshot) { s.Labels = nil }

// On moves the wish to another node.
func On(node string) Option {
	return func(s *v1alpha1.Snapshot) { s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}} }
}

// Saying sets the entry of node n1.
func Saying(e *v1alpha1.SnapshotReplica) Option {
	return func(s *v1alpha1.Snapshot) { s.Status.Replicas = []v1alpha1.SnapshotReplica{*e} }
}

// Took is an entry of a snapshot that was taken.
func Took(state v1alpha1.SnapshotState, reason string) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{
		Node: Here, Pool: "vg0", State: state, Reason: reason,
		Taken: new(metav1.NewTime(Moment)), RestoreSize: new(resource.MustParse("1Gi")),
	}
	if state == v1alpha1.SnapshotReady || state == v1alpha1.SnapshotCopying {
		e.Allocated = new(resource.MustParse("1Gi"))
	}
	return e
}

// Ready is the entry of a snapshot that is there.
func Ready() *v1alpha1.SnapshotReplica { return Took(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken) }

// Failed is an entry of a snapshot that was never taken.
func Failed(reason string) *v1alpha1.SnapshotReplica {
	return &v1alpha1.SnapshotReplica{Node: Here, Pool: "vg0", State: v1alpha1.SnapshotFailed, Reason: reason}
}

// RecordOption changes a record.
type RecordOption func(*provision.Snapshot)

// Record is the record of the snapshot.
func Record(options ...RecordOption) *provision.Snapshot {
	r := &provision.Snapshot{ID: ID, Volume: Volume, Pool: VG0, Size: GiB, Allocated: GiB, Filesystem: "ext4", Taken: Moment}
	for _, o := range options {
		o(r)
	}
	return r
}

// Copying makes the record that of a snapshot whose data is being copied.
func Copying(r *provision.Snapshot) { r.Copying = true }

// Later makes the record that of a snapshot that was taken later.
func Later(r *provision.Snapshot) { r.Taken = Moment.Add(time.Second) }

// Larger makes the record that of a larger volume.
func Larger(r *provision.Snapshot) { r.Size = 2 * GiB }

// Broken gives the record a problem.
func Broken(r *provision.Snapshot) { r.Problem = "a disk is missing" }

// Says says whether an entry of node n1 has a state and a reason; an empty state is for no entry.
func Says(e *v1alpha1.SnapshotReplica, state v1alpha1.SnapshotState, reason string) bool {
	if e == nil {
		return state == ""
	}
	return e.State == state && e.Reason == reason && e.Node == Here
}
