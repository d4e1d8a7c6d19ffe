package quarantine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// line is an orphan in a form that is easy to read.
func line(o Orphan) string {
	s := fmt.Sprintf("%s/%s %s %s lacks %s: %s", o.Node, o.Pool, o.Name, o.Size.String(), o.Missing, o.Reason)
	if o.Since != nil {
		s += fmt.Sprintf(" since %d", o.Since.Unix())
	}
	if o.Forgotten != nil {
		s += fmt.Sprintf(", forgotten at %d", o.Forgotten.Unix())
	}
	return s
}

// saying is a Volume of n1 with the node's entry, written at 2000.
func saying(state v1alpha1.ReplicaState, reason string) v1alpha1.Volume {
	v := volume(lost, "n1")
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n1", Pool: "vg0", State: state, Reason: reason}}
	at := metav1.Unix(2000, 0)
	v.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "agent-n2", Subresource: "status", Time: &since}, {Manager: "agent-n1", Time: &since}, {Manager: "agent-n1", Subresource: "status", Time: &at}}
	return *v
}

func photographed(state v1alpha1.SnapshotState, reason string) v1alpha1.Snapshot {
	s := v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: photo}}
	size := resource.MustParse("2Gi")
	s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}}
	s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "n1", State: state, Reason: reason, RestoreSize: &size}}
	return s
}

// moved is a node whose pool has another name now.
func moved(n *v1alpha1.StorageNode) *v1alpha1.StorageNode {
	n.Status.Pools[0].Name = "vg1"
	return n
}

func madeBefore(v v1alpha1.Volume) v1alpha1.Volume {
	v.Status.Replicas[0].Capacity = new(resource.MustParse("1Gi"))
	return v
}

func takenBefore(s v1alpha1.Snapshot) v1alpha1.Snapshot {
	s.Status.Replicas[0].Taken = &since
	return s
}

func ofUnknownSize(s v1alpha1.Snapshot) v1alpha1.Snapshot {
	s.Status.Replicas[0].RestoreSize = nil
	return s
}

func TestFind(t *testing.T) {
	kept := v1alpha1.InventoryItem{Snapshot: photo, Allocated: resource.MustParse("1Gi")}
	for name, tc := range map[string]struct {
		nodes     []v1alpha1.StorageNode
		volumes   []v1alpha1.Volume
		snapshots []v1alpha1.Snapshot
		want      []string
	}{
		"an empty cluster": {},
		"data without an object": {
			nodes: []v1alpha1.StorageNode{*node(orphaned(lost))}, want: []string{"n1/vg0 " + lost + " 1Gi lacks Object: NoObject since 1000"}},
		"a snapshot without an object": {
			nodes: []v1alpha1.StorageNode{*node(orphaned(photo))}, want: []string{"n1/vg0 " + photo + " 1Gi lacks Object: NoObject since 1000"}},
		"data with an order to forget": {
			nodes: []v1alpha1.StorageNode{*forgetting(node(orphaned(lost)), lost)},
			want:  []string{"n1/vg0 " + lost + " 1Gi lacks Object: NoObject since 1000, forgotten at 1500"}},
		"data beside data with an order to forget": {
			nodes: []v1alpha1.StorageNode{*forgetting(node(orphaned(lost), orphaned(other)), other)},
			want: []string{
				"n1/vg0 " + lost + " 1Gi lacks Object: NoObject since 1000",
				"n1/vg0 " + other + " 1Gi lacks Object: NoObject since 1000, forgotten at 1500"}},
		"data of another time than the order": {
			nodes: []v1alpha1.StorageNode{*forgetting(node(orphaned(lost, func(o *v1alpha1.Orphan) { o.Since = metav1.Unix(1001, 0) })), lost)},
			want:  []string{"n1/vg0 " + lost + " 1Gi lacks Object: NoObject since 1001"}},
		"data of another size than the order": {
			nodes: []v1alpha1.StorageNode{*forgetting(node(orphaned(lost, func(o *v1alpha1.Orphan) { o.Size = resource.MustParse("2Gi") })), lost)},
			want:  []string{"n1/vg0 " + lost + " 2Gi lacks Object: NoObject since 1000"}},
		"data in another pool than the order": {
			nodes: []v1alpha1.StorageNode{*moved(forgetting(node(orphaned(lost)), lost))},
			want:  []string{"n1/vg1 " + lost + " 1Gi lacks Object: NoObject since 1000"}},
		"a volume under copy on a gone node": {
			volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaCopying, "Copying")}, want: []string{"n1/vg0 " + lost + " 1Gi lacks Data: NodeGone"}},
		"a volume with missing data on a gone node": {
			volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaFailed, "DeviceMissing")}, want: []string{"n1/vg0 " + lost + " 1Gi lacks Data: NodeGone"}},
		"a volume whose pool is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{madeBefore(saying(v1alpha1.ReplicaFailed, "PoolMissing"))},
			want: []string{"n1/vg0 " + lost + " 1Gi lacks Data: PoolMissing since 2000"}},
		"a volume that was never made, whose pool is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaFailed, "PoolMissing")}},
		"a volume that could not be removed": {
			nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{madeBefore(saying(v1alpha1.ReplicaFailed, "InUse"))}},
		"a volume that is there again": {
			nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaReady, "DeviceMissing")}},
		"a snapshot under copy on a gone node": {
			snapshots: []v1alpha1.Snapshot{photographed(v1alpha1.SnapshotCopying, "Copying")}, want: []string{"n1/vg0 " + photo + " 2Gi lacks Data: NodeGone"}},
		"a snapshot whose pool is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{takenBefore(photographed(v1alpha1.SnapshotFailed, "PoolMissing"))},
			want: []string{"n1/vg0 " + photo + " 2Gi lacks Data: PoolMissing"}},
		"a snapshot that was never taken, whose pool is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{photographed(v1alpha1.SnapshotFailed, "PoolMissing")}},
		"a snapshot that could not be taken": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{takenBefore(photographed(v1alpha1.SnapshotFailed, "NoSpace"))}},
		"a snapshot that is there again": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{photographed(v1alpha1.SnapshotReady, "DeviceMissing")}},
		"a snapshot that no node has reported": {nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{*photoOf("n1")}},
		"a snapshot of unknown size whose data is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{ofUnknownSize(photographed(v1alpha1.SnapshotFailed, "DeviceMissing"))},
			want: []string{"n1/vg0 " + photo + " 0 lacks Data: DeviceMissing"}},
		"an inventory without orphans": {nodes: []v1alpha1.StorageNode{*node(kept)}},
		"a volume whose data exists":   {nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaReady, "Carved")}},
		"a volume that found no room":  {nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaFailed, "NoSpace")}},
		"a volume whose data is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaFailed, "DeviceMissing")},
			want: []string{"n1/vg0 " + lost + " 1Gi lacks Data: DeviceMissing since 2000"}},
		"a volume whose node is gone": {
			volumes: []v1alpha1.Volume{saying(v1alpha1.ReplicaReady, "Carved")}, want: []string{"n1/vg0 " + lost + " 1Gi lacks Data: NodeGone"}},
		"a volume that was never made on a node that is gone": {volumes: []v1alpha1.Volume{*volume(lost, "n1")}},
		"a snapshot whose data is missing": {
			nodes: []v1alpha1.StorageNode{*node()}, snapshots: []v1alpha1.Snapshot{photographed(v1alpha1.SnapshotFailed, "DeviceMissing")},
			want: []string{"n1/vg0 " + photo + " 2Gi lacks Data: DeviceMissing"}},
		"a snapshot whose node is gone": {
			snapshots: []v1alpha1.Snapshot{photographed(v1alpha1.SnapshotReady, "Taken")}, want: []string{"n1/vg0 " + photo + " 2Gi lacks Data: NodeGone"}},
		"several orphans, in order": {
			nodes: []v1alpha1.StorageNode{*node(orphaned(other), orphaned(lost))},
			want:  []string{"n1/vg0 " + lost + " 1Gi lacks Object: NoObject since 1000", "n1/vg0 " + other + " 1Gi lacks Object: NoObject since 1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for _, o := range Find(tc.nodes, tc.volumes, tc.snapshots) {
				lines = append(lines, line(o))
			}
			if diff := cmp.Diff(tc.want, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLostDataIsListedWithTheMessageOfItsNode(t *testing.T) {
	v, s := saying(v1alpha1.ReplicaFailed, "DeviceMissing"), photographed(v1alpha1.SnapshotFailed, "DeviceMissing")
	v.Status.Replicas[0].Message, s.Status.Replicas[0].Message = "no logical volume", "no snapshot"
	const away = "node n1 does not report: its data is where the node is, and is found when the node returns"
	for name, tc := range map[string]struct {
		nodes []v1alpha1.StorageNode
		want  map[string]string
	}{
		"the data is missing": {[]v1alpha1.StorageNode{*node()}, map[string]string{lost: "no logical volume", photo: "no snapshot"}},
		"the node is gone":    {nil, map[string]string{lost: away, photo: away}},
	} {
		t.Run(name, func(t *testing.T) {
			said := map[string]string{}
			for _, o := range Find(tc.nodes, []v1alpha1.Volume{v}, []v1alpha1.Snapshot{s}) {
				said[o.Name] = o.Message
			}
			if diff := cmp.Diff(tc.want, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}
