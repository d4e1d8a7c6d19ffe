package oversight

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

const (
	id        = "pvc-00000000-0000-0000-0000-000000000001"
	namespace = "berth-system"
	boot      = "boot-1"
)

// epochs is a driver whose volumes have replicas.
var epochs = driver.Driver{Name: "disk.berth.dev", Kind: ownership.Snapshots}

var (
	e1    = lineage.Epoch{Number: 1, ID: "one"}
	e2    = lineage.Epoch{Number: 2, ID: "two"}
	first = lineage.Point{Epoch: e1, Seq: 1}
)

// copies is a volume with copies on n1, n2 and n3. n1 owns epoch 2.
func copies(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := &ownership.Volume{
		Kind: ownership.Snapshots, Factor: 3, Epoch: e2, RecoveryPoint: first,
		Lineage:  lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: first}},
		Primary:  ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Active},
		Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Minute},
	}
	for _, n := range []string{"n1", "n2", "n3"} {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.Ready, Point: first})
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

// shared is a shared disk that is attached to n1 and n2. n1 owns epoch 2.
func shared(edits ...func(*ownership.Volume)) *ownership.Volume {
	v := copies()
	v.Kind, v.Factor, v.RecoveryPoint = ownership.Attachments, 2, lineage.Point{}
	v.Sharing = ownership.Sharing{MaxShares: 2}
	v.Lineage = lineage.Lineage{{Epoch: e1}, {Epoch: e2}}
	v.Replicas = []ownership.Replica{{Node: "n1", State: ownership.Ready}, {Node: "n2", State: ownership.Ready}}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func phase(p ownership.Phase) func(*ownership.Volume) {
	return func(v *ownership.Volume) { v.Primary.Phase = p }
}

// object is the Volume with a record.
func object(t testing.TB, v *ownership.Volume) *v1alpha1.Volume {
	t.Helper()
	o := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: id, UID: "v", Finalizers: []string{v1alpha1.VolumeFinalizer}}}
	o.Spec.Driver, o.Spec.Sharing, o.Spec.PoolClass = epochs.Name, v1alpha1.Exclusive, "fast"
	o.Spec.Placement = v1alpha1.PlacementVolume
	o.Spec.Replication = v1alpha1.Replication{
		Factor: int32(v.Factor), Kind: v1alpha1.ReplicationKind(v.Kind.String()),
		Failover: &v1alpha1.Failover{Automatic: v.Failover.Automatic, MaxDataLoss: &metav1.Duration{Duration: v.Failover.MaxDataLoss}},
	}
	if v.Sharing.ManyWriters {
		o.Spec.Sharing, o.Spec.VolumeMode = v1alpha1.Shared, v1alpha1.Block
	}
	if v.Kind.Traits().Attaches {
		o.Spec.Replication.Attachments = &v1alpha1.Attachments{MaxShares: int32(v.Sharing.MaxShares), Persistent: v.Sharing.Persistent}
	}
	written, err := record.Into(o, v)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim"},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: id},
	}
}

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: id}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: epochs.Name, VolumeHandle: id}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"}
	return pv
}

// pod is a pod on a node that uses the claim.
func pod(name, node string, edits ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	p.Spec.Volumes = []corev1.Volume{{Name: "d", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	for _, edit := range edits {
		edit(p)
	}
	return p
}

func pending(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }

func leaving(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"test/stays"}
}

func node(name string, edits ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.SystemUUID = "machine-of-" + name
	for _, edit := range edits {
		edit(n)
	}
	return n
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute})
}

func switchedOff(machine, boot string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.PoweredOffAnnotation, `{"machine":"`+machine+`","boot":"`+boot+`","since":"2026-01-01T00:00:00Z"}`)
	}
}

// cluster is a volume with its claim, and three storage nodes.
func cluster(t testing.TB, v *ownership.Volume, more ...client.Object) []client.Object {
	objects := []client.Object{object(t, v), claim(), persistentVolume()}
	for _, n := range []string{"n1", "n2", "n3"} {
		objects = append(objects, node(n), &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n}})
	}
	return append(objects, more...)
}
