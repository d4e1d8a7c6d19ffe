package schedule

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// uidOf makes a claim's UID from a short name: ids of volumes are made of UIDs.
func uidOf(name string) types.UID {
	return types.UID("00000000-0000-0000-0000-00000000000" + name)
}

// storageNode has one pool vg0 with 4Mi extents that serves the class "fast".
func storageNode(name string, total int64, options ...func(*v1alpha1.StorageNode)) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "1"}}
	n.Status.Pools = []v1alpha1.Pool{{
		Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
		Total: quantity(total), AllocationUnit: quantity(4 * mi),
	}}
	for _, option := range options {
		option(n)
	}
	return n
}

func poolClass(spare int64) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", ResourceVersion: "1"}}
	c.Spec.Spare = new(quantity(spare))
	c.Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}}
	return c
}

func storageClass(name, driver string, mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:  metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Provisioner: driver, VolumeBindingMode: &mode, Parameters: map[string]string{"poolClass": "fast"},
	}
}

// local is the StorageClass that claims name unless they say otherwise.
func local() *storagev1.StorageClass {
	return storageClass("local", v1alpha1.LocalDriverName, storagev1.VolumeBindingWaitForFirstConsumer)
}

func pvc(name string, bytes int64, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uidOf(name), ResourceVersion: "1"}}
	c.Spec.StorageClassName = new("local")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity(bytes)}
	for _, option := range options {
		option(c)
	}
	return c
}

func selected(node string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{SelectedNode: node} }
}

func boundTo(pv string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = pv }
}

func ofClass(name string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &name }
}

// volumeFor is the Volume of a claim, on a node that has carved it.
func volumeFor(claim, node string, bytes int64) *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uidOf(claim)), UID: "v-" + uidOf(claim), ResourceVersion: "1"}}
	v.Spec.Capacity, v.Spec.PoolClass = quantity(bytes), "fast"
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: claim, UID: uidOf(claim)}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{
		Node: node, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonCarved,
		Capacity: new(quantity(bytes)), Requested: new(quantity(bytes)),
	}}
	return v
}

func pvFor(claim, node string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uidOf(claim)), ResourceVersion: "1"}}
	pv.Spec.StorageClassName = "local"
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity(gi)}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: pv.Name}
	pv.Spec.ClaimRef = &corev1.ObjectReference{UID: uidOf(claim)}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	return pv
}

// podWith is a pod with volumes.
func podWith(volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"},
		Spec:       corev1.PodSpec{Volumes: volumes},
	}
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

func ephemeralVolume(name, class string) corev1.Volume {
	template := &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}}}
}

func inlineVolume(name, driver string, attributes map[string]string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver, VolumeAttributes: attributes}}}
}

func scratch(size string) corev1.Volume {
	return inlineVolume("scratch", v1alpha1.LocalDriverName, map[string]string{"poolClass": "fast", "size": size})
}

// beats maps nodes to why they are away.
type beats struct {
	away  map[string]string
	heard func(string)
}

func (b *beats) Away(node string) string        { return b.away[node] }
func (b *beats) Notify(heard func(node string)) { b.heard = heard }

// fed is a feeder that was told of a class, its StorageClass and a node of 10Gi.
type fed struct {
	*feeder
	t        *testing.T
	beats    *beats
	returned []string
}

func newFed(t *testing.T) *fed {
	t.Helper()
	f := &fed{t: t, beats: &beats{away: map[string]string{}}}
	from := Informers{Driver: driver.Local(), Heartbeats: f.beats, Clock: clock.RealClock{}, Returned: func(node string) { f.returned = append(f.returned, node) }}
	f.feeder = newFeeder(NewBook(), from)
	f.beats.Notify(f.heard)
	f.observeStorageClass(local())
	f.observePoolClass(poolClass(0))
	f.observeNode(storageNode("n1", 10*gi))
	f.book.setSynced()
	return f
}

// wantFree checks the size of the largest volume that node n1 takes.
func (f *fed) wantFree(want int64) {
	f.t.Helper()
	if got := f.book.Room("n1", "fast").Largest; got != want {
		f.t.Errorf("%d MiB are free, want %d", got/mi, want/mi)
	}
}

func (f *fed) reserve(pod string, demands ...ledger.Demand) {
	f.t.Helper()
	r, _ := f.book.Request(ledger.RequestOptions{Pod: pod}, demands...)
	if _, verdict := f.book.Reserve("n1", r); !verdict.Fits() {
		f.t.Fatalf("not reserved: %v", verdict.Reason)
	}
}

func demand(claim string, bytes int64) ledger.Demand {
	return ledger.Demand{Owner: ledger.Claim(string(uidOf(claim))), Class: "fast", Bytes: bytes}
}

// objects are the objects that a Reader finds.
type objects struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	pvs     map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	pools   map[string]*v1alpha1.PoolClass
	volumes map[string]*v1alpha1.Volume
	// berth are the Snapshots, and snapshots the VolumeSnapshots by namespace and
	// name; nil means that the cluster does not know those.
	berth     map[string]*v1alpha1.Snapshot
	snapshots map[string]*VolumeSnapshot
}

func (o *objects) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return o.claims[namespace+"/"+name], nil
}

func (o *objects) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return o.pvs[name], nil
}

func (o *objects) StorageClass(_ context.Context, name string) (*storagev1.StorageClass, error) {
	return o.classes[name], nil
}

func (o *objects) PoolClass(_ context.Context, name string) (*v1alpha1.PoolClass, error) {
	return o.pools[name], nil
}

func (o *objects) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	return o.volumes[name], nil
}

func (o *objects) Snapshot(_ context.Context, name string) (*v1alpha1.Snapshot, error) {
	return o.berth[name], nil
}

func (o *objects) VolumeSnapshot(_ context.Context, namespace, name string) (*VolumeSnapshot, error) {
	if o.snapshots == nil {
		return nil, ErrNoVolumeSnapshots
	}
	return o.snapshots[namespace+"/"+name], nil
}

// taken adds a snapshot of Berth's that is on a node.
func (o *objects) taken(name, node string) {
	id := "snap-" + string(uidOf(name))
	o.snapshots["shop/"+name] = &VolumeSnapshot{Ready: true, Driver: v1alpha1.LocalDriverName, Handle: id}
	o.berth[id] = snapshotOn(node, v1alpha1.SnapshotReady)
}

// snapshotOn is a snapshot with the report of a node.
func snapshotOn(node string, state v1alpha1.SnapshotState) *v1alpha1.Snapshot {
	s := &v1alpha1.Snapshot{}
	s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}}
	s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: node, Pool: "vg0", State: state}}
	return s
}

func now() *metav1.Time { return &metav1.Time{Time: time.Unix(1e9, 0)} }
