package replica

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const (
	here = "n1"
	id   = "pvc-00000000-0000-0000-0000-000000000001"
	gib  = int64(1 << 30)
)

var vg0 = provision.PoolRef{Type: "LVM", Name: "vg0"}

type option func(*v1alpha1.Volume)

// volume is a Filesystem volume of 1 GiB, wanted on node n1 in pool vg0.
func volume(options ...option) *v1alpha1.Volume {
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: id, Labels: map[string]string{v1alpha1.ReplicaLabel(here): ""}},
		Spec: v1alpha1.VolumeSpec{
			Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: "fast", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{Factor: 1},
			Replicas:    []v1alpha1.ReplicaSpec{{Node: here, Pool: "vg0"}},
		},
	}
	for _, o := range options {
		o(v)
	}
	return v
}

func deleting(v *v1alpha1.Volume) { v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }

func adopted(v *v1alpha1.Volume) { v.Spec.Adopted = true }

func block(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" }

func of(capacity string) option {
	return func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse(capacity) }
}

// on moves the wish to other nodes, all in pool vg0.
func on(nodes ...string) option {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = nil
		for _, n := range nodes {
			v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: n, Pool: "vg0"})
		}
	}
}

func saying(e *v1alpha1.ReplicaStatus) option {
	return func(v *v1alpha1.Volume) { v.Status.Replicas = []v1alpha1.ReplicaStatus{*e} }
}

func ready(capacity, requested string) *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{
		Node: here, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonCarved,
		Capacity: new(resource.MustParse(capacity)), Allocated: new(resource.MustParse(capacity)), Requested: new(resource.MustParse(requested)),
	}
}

func failed(reason string) *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{
		Node: here, Pool: "vg0", State: v1alpha1.ReplicaFailed, Reason: reason, Requested: new(resource.MustParse("1Gi")),
	}
}

func gone() *v1alpha1.ReplicaStatus {
	return &v1alpha1.ReplicaStatus{Node: here, Pool: "vg0", State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
}

// source is a snapshot of a volume of 1 GiB.
const (
	source   = "snap-00000000-0000-0000-0000-00000000000a"
	original = "pvc-00000000-0000-0000-0000-00000000000a"
)

// restored makes the volume a copy of the snapshot.
func restored(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Snapshot: source} }

func copyUnderWay() *v1alpha1.ReplicaStatus {
	e := ready("1Gi", "1Gi")
	e.State, e.Ready, e.Reason = v1alpha1.ReplicaCopying, false, v1alpha1.ReasonCopying
	e.Message = "node n1: the data of snapshot " + source + " is being copied"
	return e
}

type recordOption func(*provision.Volume)

// carved is the record of a formatted volume of 1 GiB in vg0.
func carved(options ...recordOption) *provision.Volume {
	r := &provision.Volume{ID: id, Pool: vg0, Size: gib, Content: provision.Content{Source: "/dev/vg0/" + id}, Filesystem: provision.Ext4}
	for _, o := range options {
		o(r)
	}
	return r
}

func fromSnapshot(r *provision.Volume) { r.Source = provision.Source{Snapshot: source} }

func copying(r *provision.Volume) { r.Copying = true }

func blank(r *provision.Volume) { r.Filesystem = "" }

// inline makes the record that of a pod's inline volume.
func inline(r *provision.Volume) {
	r.ID, r.Inline = "inline-1", provision.Inline{PodUID: "uid", Name: "scratch"}
}

func sized(n int64) recordOption { return func(r *provision.Volume) { r.Size = n } }
