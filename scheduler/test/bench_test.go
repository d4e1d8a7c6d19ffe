package test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
)

// bench is a test's own class, nodes and pods on the shared API server.
type bench struct {
	*apitest.Environment
	// class is the name of the PoolClass, the StorageClass and the namespace.
	class  string
	totals map[string]int64 // of the nodes' pools
}

var tests atomic.Int32

// nextName is the name of a class that no other test has.
func nextName() string { return fmt.Sprintf("t%d", tests.Add(1)) }

func newBench(t *testing.T, e *apitest.Environment) *bench {
	t.Helper()
	b := &bench{Environment: e, class: nextName(), totals: map[string]int64{}}
	b.install(t)
	return b
}

// install makes the objects that the chart and an administrator would make.
func (b *bench) install(t *testing.T) {
	t.Helper()
	controllertest.NewClass(t, b.Environment, b.class)
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	b.create(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: b.class}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": b.class, "csi.storage.k8s.io/fstype": "ext4"}, VolumeBindingMode: &mode,
	})
	b.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.class}})
	b.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.class, Name: "default"}})
	for _, object := range []client.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LocalDriverName}, Spec: storagev1.CSIDriverSpec{
			// No process publishes capacity here: a scheduler that looked at it
			// would place nothing.
			StorageCapacity: new(true), AttachRequired: new(false), PodInfoOnMount: new(true),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
	} {
		if err := client.IgnoreAlreadyExists(b.Client.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bench) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := b.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

func (b *bench) get(t *testing.T, name, namespace string, into client.Object) {
	t.Helper()
	if err := b.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
}

// node adds a node that pods can run on, as far as the API server knows.
func (b *bench) node(t *testing.T, suffix string, total int64) *controllertest.Node {
	t.Helper()
	n := controllertest.NewNode(t, b.Environment, b.class+"-"+suffix, b.class, total)
	b.totals[n.Name] = total
	node := &corev1.Node{}
	b.get(t, n.Name, "", node)
	node.Spec.Taints = nil // no kubelet and no controller would take them off
	node.Labels = map[string]string{v1alpha1.TopologyKey: n.Name, "test": b.class}
	if err := b.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi")}
	node.Status.Capacity = node.Status.Allocatable
	if err := b.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	b.create(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: v1alpha1.LocalDriverName, NodeID: n.Name, TopologyKeys: []string{v1alpha1.TopologyKey}},
	}}})
	return n
}

// clean keeps other tests' schedulers from finding pods of this one. The test's
// context has ended by then.
func (b *bench) clean(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := b.Client.DeleteAllOf(ctx, kind, client.InNamespace(b.class), client.GracePeriodSeconds(0)); err != nil {
			t.Errorf("removing all %T: %v", kind, err)
		}
	}
}
