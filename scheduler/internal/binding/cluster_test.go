package binding

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"

	"berth.dev/berth/api/v1alpha1"
)

const namespace = "default"

// cluster is an API in memory with the nodes n1 and n2, a class of Berth's, one
// of another driver, and a pod that was placed on n1.
type cluster struct {
	*fake.Clientset
	factory informers.SharedInformerFactory
	binder  *Binder
	pod     *corev1.Pod
	changed chan struct{}
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p"}}, changed: make(chan struct{}, 100)}
	c.Clientset = fake.NewClientset(
		node("n1"), node("n2"), class("ours", v1alpha1.LocalDriverName), class("theirs", "example.com/other"), c.pod,
	)
	version := int64(1000)
	c.PrependReactor("*", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		// The fake leaves versions as they are; a real server never does.
		if write, ok := action.(clienttesting.UpdateAction); ok {
			claim, _ := write.GetObject().(*corev1.PersistentVolumeClaim)
			claim.ResourceVersion = strconv.FormatInt(atomic.AddInt64(&version, 1), 10)
		}
		return false, nil, nil
	})
	c.pod = c.pod.DeepCopy()
	c.pod.Spec.NodeName = "n1" // assumed, as in the scheduler
	c.factory = informers.NewSharedInformerFactory(c.Clientset, 0)
	var err error
	if c.binder, err = NewBinder(upstream{}, c.Clientset, c.factory, time.Minute); err != nil {
		t.Fatal(err)
	}
	c.binder.podEvery = time.Millisecond
	changed := func(any) { c.changed <- struct{}{} }
	_, err = c.factory.Core().V1().PersistentVolumeClaims().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, o any) { changed(o) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	c.factory.Start(ctx.Done())
	t.Cleanup(func() { stop(); c.factory.Shutdown() })
	c.factory.WaitForCacheSync(ctx.Done())
	return c
}

// provision is the assumption of upstream's binder: a claim with its node.
func (c *cluster) provision(t *testing.T, name, class string) *volumebinding.DynamicProvision {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
	}
	claim, err := c.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.awaitLister(t, name, func(*corev1.PersistentVolumeClaim) bool { return true })
	assumed := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&assumed.ObjectMeta, volume.AnnSelectedNode, "n1")
	return &volumebinding.DynamicProvision{PVC: assumed}
}

func (c *cluster) volumes(t *testing.T, names ...string) *volumebinding.PodVolumes {
	t.Helper()
	volumes := &volumebinding.PodVolumes{}
	for _, name := range names {
		volumes.DynamicProvisions = append(volumes.DynamicProvisions, c.provision(t, name, "ours"))
	}
	return volumes
}

func (c *cluster) bind(ctx context.Context, timeout time.Duration, volumes *volumebinding.PodVolumes) <-chan error {
	c.binder.timeout = timeout
	done := make(chan error, 1)
	go func() { done <- c.binder.BindPodVolumes(ctx, c.pod, volumes) }()
	return done
}

// awaitLister waits until the binder's cache shows something of a claim.
func (c *cluster) awaitLister(t *testing.T, name string, shows func(*corev1.PersistentVolumeClaim) bool) {
	t.Helper()
	for {
		claim, err := c.binder.claims.PersistentVolumeClaims(namespace).Get(name)
		if err == nil && shows(claim) {
			return
		}
		select {
		case <-c.changed:
		case <-t.Context().Done():
			t.Fatalf("claim %s was never seen so", name)
		}
	}
}

func (c *cluster) awaitSelected(t *testing.T, name string) {
	t.Helper()
	c.awaitLister(t, name, func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Annotations[volume.AnnSelectedNode] == "n1"
	})
}

func (c *cluster) change(t *testing.T, name string, change func(*corev1.PersistentVolumeClaim)) {
	t.Helper()
	claims := c.CoreV1().PersistentVolumeClaims(namespace)
	claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	change(claim)
	if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// bound does the work of the provisioner and the PersistentVolume controller.
func (c *cluster) bound(t *testing.T, name string) {
	t.Helper()
	c.persistentVolume(t, name, "n1")
	c.change(t, name, bindTo("pv-"+name))
}

func bindTo(pv string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.VolumeName = pv
		claim.Annotations[volume.AnnBindCompleted] = "yes"
		claim.Status.Phase = corev1.ClaimBound
	}
}

func (c *cluster) persistentVolume(t *testing.T, claim, node string) {
	t.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: claim},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
			}}}},
		},
	}
	if _, err := c.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deleteClaim(t *testing.T, name string) {
	t.Helper()
	if err := c.CoreV1().PersistentVolumeClaims(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) deletePod(t *testing.T) {
	t.Helper()
	if err := c.CoreV1().Pods(namespace).Delete(t.Context(), c.pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.TopologyKey: name}}}
}

func class(name, driver string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: driver}
}
