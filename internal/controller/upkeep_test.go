package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
)

func TestLostLabelsAndFinalizersComeBack(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	id := mustCreate(t, p, c.request(n)).ID
	stripped := controllertest.Volume(t, c.Environment, id)
	stripped.Labels, stripped.Finalizers = nil, nil
	if err := c.Client.Update(t.Context(), stripped); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, c.Environment, id, func(v *v1alpha1.Volume) error {
		if len(v.Finalizers) != 1 {
			return fmt.Errorf("finalizers are %v", v.Finalizers)
		}
		return onlyOn(n)(v)
	})
	if n.Held(id) != gi {
		t.Error("the node dropped the data when the label was lost")
	}
}

func TestLabelsOfOthersAreLeftAlone(t *testing.T) {
	c := newCluster(t)
	a, b := c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(a)
	id := mustCreate(t, p, r).ID
	labelled := controllertest.Volume(t, c.Environment, id)
	labelled.Labels["team"] = "shop"
	if err := c.Client.Update(t.Context(), labelled); err != nil {
		t.Fatal(err)
	}
	mustCreate(t, p, on(r, b))
	controllertest.Eventually(t, c.Environment, id, func(v *v1alpha1.Volume) error {
		if len(v.Status.Replicas) != 1 || len(v.Labels) != 2 || v.Labels["team"] != "shop" {
			return fmt.Errorf("labels %v, entries %v", v.Labels, v.Status.Replicas)
		}
		return nil
	})
}

func TestAReportIsDeletedWithItsNodeAndTheVolumesStay(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	id := mustCreate(t, p, c.request(n)).ID

	if err := c.Client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}); err != nil {
		t.Fatal(err)
	}

	await(t, "the StorageNode to go", func() bool {
		return apierrors.IsNotFound(c.Client.Get(t.Context(), client.ObjectKey{Name: n.Name}, &v1alpha1.StorageNode{}))
	})
	if v := controllertest.Volume(t, c.Environment, id); v == nil || v.DeletionTimestamp != nil || n.Held(id) != gi {
		t.Errorf("the volume did not stay: %+v", v)
	}
}

func TestAPoolClassCountsItsNodes(t *testing.T) {
	c := newCluster(t)
	controllertest.Start(t, c.Environment)
	shows := func(nodes int32, status metav1.ConditionStatus) {
		t.Helper()
		await(t, fmt.Sprintf("%d nodes", nodes), func() bool {
			class := &v1alpha1.PoolClass{}
			if err := c.Client.Get(t.Context(), client.ObjectKey{Name: c.class}, class); err != nil {
				t.Fatal(err)
			}
			ready := meta.FindStatusCondition(class.Status.Conditions, v1alpha1.ConditionReady)
			return class.Status.Nodes == nodes && ready != nil && ready.Status == status
		})
	}
	shows(0, metav1.ConditionFalse)
	a := c.node(t, "a", gi)
	shows(1, metav1.ConditionTrue)
	c.node(t, "b", gi)
	shows(2, metav1.ConditionTrue)
	a.Report(t, "another", gi)
	shows(1, metav1.ConditionTrue)
}

func TestAVolumeThatNoNodeWasFoundForGoesWithItsClaim(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	n.SetTotal(0)
	p := controllertest.Start(t, c.Environment)
	claim := c.claim(t)
	r := c.requestFor(claim, n)
	if _, err := p.Volumes.Create(within(t), r); err == nil {
		t.Fatal("created on a full node")
	}
	held := controllertest.Volume(t, c.Environment, r.Name)
	if held == nil {
		t.Fatal("the volume was collected while its claim is there")
	}

	if err := c.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, c.Environment, r.Name, controllertest.Gone)
}

func TestAReservationGoesWithItsClaim(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	claim := c.claim(t)
	r := c.requestFor(claim, n)
	r.Reservation, r.Pool = true, controllertest.Pool
	mustCreate(t, p, r)

	if err := c.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, c.Environment, r.Name, controllertest.Gone)
	if held := n.Held(r.Name); held != 0 {
		t.Errorf("the node still holds %d bytes", held)
	}
}

func TestAVolumeWithDataIsKeptWithoutItsClaimAndSaysSo(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment, controllertest.WithClock(clock.RealClock{}, time.Millisecond))
	claim := c.claim(t)
	r := c.requestFor(claim, n)
	mustCreate(t, p, r)
	if err := c.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, c.Environment, r.Name, orphaned(metav1.ConditionTrue))

	pv := persistentVolume("moved-"+c.class, r.Name)
	if err := c.Client.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, c.Environment, r.Name, orphaned(metav1.ConditionFalse))
	if n.Held(r.Name) != gi {
		t.Error("the data is gone")
	}
}

func TestOnlyTheLeaderReconcilesAndEveryProcessServes(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	first := controllertest.Start(t, c.Environment, controllertest.WithLeaderElection())
	second := controllertest.Start(t, c.Environment, controllertest.WithLeaderElection())
	for _, p := range []*controllertest.Process{first, second} {
		mustDelete(t, p, mustCreate(t, p, c.request(n)).ID)
	}
	r := c.request(n)
	if a, b := mustCreate(t, first, r), mustCreate(t, second, r); a.ID != b.ID {
		t.Errorf("%s and %s", a.ID, b.ID)
	}
	first.Stop(t)
	mustDelete(t, second, r.Name)
}

// claim is a claim that no controller binds.
func (c *cluster) claim(t *testing.T, options ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	t.Helper()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.class},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	for _, option := range options {
		option(claim)
	}
	if err := c.Client.Create(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil // no controller runs that would remove the protection
	if err := c.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.IgnoreNotFound(c.Client.Delete(context.WithoutCancel(t.Context()), claim)) })
	return claim
}

func TestTheCapacityOfASilentNodeIsWithdrawn(t *testing.T) {
	c := newCluster(t)
	silent, alive := c.node(t, "silent", 10*gi), c.node(t, "alive", 10*gi)
	for _, n := range []*controllertest.Node{silent, alive} {
		object := &storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: apitest.Namespace, Name: n.Name, Labels: driver.Local().CapacityLabels(n.Name),
			},
			StorageClassName: c.class, NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TopologyKey: n.Name}},
		}
		if err := c.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	lease := &coordinationv1.Lease{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + silent.Name}, lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec.LeaseDurationSeconds = new(int32(1))
	if err := c.Client.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	controllertest.Start(t, c.Environment)
	is := func(n *controllertest.Node) bool {
		err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: apitest.Namespace, Name: n.Name}, &storagev1.CSIStorageCapacity{})
		if client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return err == nil
	}
	await(t, "the silent node's capacity to go", func() bool { return !is(silent) })
	if !is(alive) {
		t.Error("a node whose agent is heard of is not advertised any more")
	}
}
