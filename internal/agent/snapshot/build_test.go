package snapshot

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const (
	here   = "n1"
	id     = "snap-00000000-0000-0000-0000-000000000001"
	volume = "pvc-00000000-0000-0000-0000-000000000001"
	gib    = int64(1 << 30)
)

var (
	vg0    = provision.PoolRef{Type: "LVM", Name: "vg0"}
	moment = time.Unix(1, 0).UTC() // at which disks in memory take snapshots
)

type option func(*v1alpha1.Snapshot)

// snapshot is a Snapshot of a volume of 1 GiB, wanted on node n1 in pool vg0.
func snapshot(options ...option) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{
		ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{v1alpha1.ReplicaLabel(here): ""}},
		Spec:       v1alpha1.SnapshotSpec{Volume: volume, VolumeMode: v1alpha1.Block, PoolClass: "fast", Replicas: []v1alpha1.ReplicaSpec{{Node: here, Pool: "vg0"}}},
	}
	for _, o := range options {
		o(s)
	}
	return s
}

func deleting(s *v1alpha1.Snapshot) { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func adopted(s *v1alpha1.Snapshot) { s.Spec.Adopted = true }

func unlabelled(s *v1alpha1.Snapshot) { s.Labels = nil }

// on moves the wish to another node.
func on(node string) option {
	return func(s *v1alpha1.Snapshot) { s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}} }
}

func saying(e *v1alpha1.SnapshotReplica) option {
	return func(s *v1alpha1.Snapshot) { s.Status.Replicas = []v1alpha1.SnapshotReplica{*e} }
}

func took(state v1alpha1.SnapshotState, reason string) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{
		Node: here, Pool: "vg0", State: state, Reason: reason,
		Taken: new(metav1.NewTime(moment)), RestoreSize: new(resource.MustParse("1Gi")),
	}
	if state == v1alpha1.SnapshotReady || state == v1alpha1.SnapshotCopying {
		e.Allocated = new(resource.MustParse("1Gi"))
	}
	return e
}

func ready() *v1alpha1.SnapshotReplica { return took(v1alpha1.SnapshotReady, v1alpha1.ReasonTaken) }

// failed is an entry of a snapshot that was never taken.
func failed(reason string) *v1alpha1.SnapshotReplica {
	return &v1alpha1.SnapshotReplica{Node: here, Pool: "vg0", State: v1alpha1.SnapshotFailed, Reason: reason}
}

type recordOption func(*provision.Snapshot)

func record(options ...recordOption) *provision.Snapshot {
	r := &provision.Snapshot{ID: id, Volume: volume, Pool: vg0, Size: gib, Allocated: gib, Filesystem: "ext4", Taken: moment}
	for _, o := range options {
		o(r)
	}
	return r
}

func copying(r *provision.Snapshot) { r.Copying = true }

func later(r *provision.Snapshot) { r.Taken = moment.Add(time.Second) }

func larger(r *provision.Snapshot) { r.Size = 2 * gib }

func broken(r *provision.Snapshot) { r.Problem = "a disk is missing" }
