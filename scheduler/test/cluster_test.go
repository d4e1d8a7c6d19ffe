package test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

const gi = controllertest.Gi

// cluster is a test's own class and nodes on the shared API server, with every
// process that takes part in scheduling a pod.
type cluster struct {
	*apitest.Environment
	// class is the name of the PoolClass, the StorageClass and the namespace.
	class       string
	totals      map[string]int64 // of the nodes' pools
	programs    controlplane.Programs
	controller  *controllertest.Process
	provisioner *controlplane.Process
	config      string // of the scheduler
	scheduler   *controlplane.Process
}

var tests atomic.Int32

// nextName is the name of a class that no other test has.
func nextName() string { return fmt.Sprintf("t%d", tests.Add(1)) }

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := withoutScheduler(t)
	c.config = c.installScheduler(t)
	c.startScheduler(t)
	return c
}

// withoutScheduler is a cluster to which the test adds schedulers of its own.
func withoutScheduler(t *testing.T, options ...controllertest.Option) *cluster {
	t.Helper()
	e := apitest.Start(t)
	c := &cluster{Environment: e, class: nextName(), totals: map[string]int64{}, programs: controlplane.Programs{Dir: t.TempDir(), Kubeconfig: kubeconfig(t, e.Config)}}
	c.install(t)
	manager, err := c.programs.ControllerManager()
	run(t, manager, err)
	c.startController(t, options...)
	t.Cleanup(func() { c.clean(t) })
	return c
}

// startController starts the processes of the controller's pod.
func (c *cluster) startController(t *testing.T, options ...controllertest.Option) {
	t.Helper()
	c.controller = controllertest.Start(t, c.Environment, options...)
	provisioner, err := c.programs.Provisioner(c.controller.Socket)
	c.provisioner = run(t, provisioner, err)
}

// stopController ends all processes of the pod.
func (c *cluster) stopController(t *testing.T) {
	t.Helper()
	c.provisioner.Kill()
	c.controller.Stop(t)
}

// install makes the objects that the chart and an administrator would make.
func (c *cluster) install(t *testing.T) {
	t.Helper()
	controllertest.NewClass(t, c.Environment, c.class)
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	c.create(t, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: c.class}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": c.class, "csi.storage.k8s.io/fstype": "ext4"}, VolumeBindingMode: &mode,
	})
	c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.class}})
	c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: c.class, Name: "default"}})
	for _, object := range []client.Object{
		&storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.LocalDriverName}, Spec: storagev1.CSIDriverSpec{
			// No process publishes capacity here: a scheduler that looked at it
			// would place nothing.
			StorageCapacity: new(true), AttachRequired: new(false), PodInfoOnMount: new(true),
			VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral},
		}},
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high"}, Value: 1000},
	} {
		if err := client.IgnoreAlreadyExists(c.Client.Create(t.Context(), object)); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *cluster) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := c.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("creating %T %s: %v", object, object.GetName(), err)
	}
}

func (c *cluster) startScheduler(t *testing.T) {
	t.Helper()
	scheduler, err := c.programs.Scheduler(c.config, "--secure-port=0")
	c.scheduler = run(t, scheduler, err)
}

// node adds a node that pods can run on, as far as the API server knows.
func (c *cluster) node(t *testing.T, suffix string, total int64) *controllertest.Node {
	t.Helper()
	n := controllertest.NewNode(t, c.Environment, c.class+"-"+suffix, c.class, total)
	c.totals[n.Name] = total
	node := &corev1.Node{}
	c.get(t, n.Name, "", node)
	node.Spec.Taints = nil // no kubelet and no controller would take them off
	node.Labels = map[string]string{v1alpha1.TopologyKey: n.Name, "test": c.class}
	if err := c.Client.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	node.Status.Allocatable = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("64Gi")}
	node.Status.Capacity = node.Status.Allocatable
	if err := c.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	c.create(t, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: v1alpha1.LocalDriverName, NodeID: n.Name, TopologyKeys: []string{v1alpha1.TopologyKey}},
	}}})
	return n
}

// clean keeps other tests' schedulers from finding pods of this one. The test's
// context has ended by then.
func (c *cluster) clean(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.PersistentVolumeClaim{}} {
		if err := c.Client.DeleteAllOf(ctx, kind, client.InNamespace(c.class), client.GracePeriodSeconds(0)); err != nil {
			t.Errorf("removing all %T: %v", kind, err)
		}
	}
}

func (c *cluster) get(t *testing.T, name, namespace string, into client.Object) {
	t.Helper()
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, into); err != nil {
		t.Fatal(err)
	}
}

// patience is how long a test waits for something before it counts as missing.
const patience = 40 * time.Second
