package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/controller/nodegone"
	"berth.dev/berth/internal/driver"
)

// departure is a node with a volume of the test's claim, of a class that releases
// claims after an hour.
type departure struct {
	*cluster
	t      *testing.T
	node   string
	volume string
	claim  *corev1.PersistentVolumeClaim
	clock  *testingclock.FakePassiveClock
	r      *nodegone.Reconciler
}

// depart prepares a departure, with two other nodes that stay.
func depart(t *testing.T) *departure {
	t.Helper()
	c := newCluster(t)
	c.releasing(t)
	d := &departure{cluster: c, t: t, node: c.class + "-n", clock: testingclock.NewFakePassiveClock(time.Now())}
	for _, name := range []string{d.node, c.class + "-x", c.class + "-y"} {
		d.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	d.claim = c.claim(t)
	d.volume = v1alpha1.VolumeName("pvc-" + string(d.claim.UID))
	d.claim.Spec.VolumeName = d.volume
	d.must(c.Client.Update(t.Context(), d.claim))
	d.put(d.object())
	pv := persistentVolume(d.volume, d.volume)
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: d.claim.Namespace, Name: d.claim.Name, UID: d.claim.UID}
	d.put(pv)
	d.r = &nodegone.Reconciler{Driver: driver.Local(), Client: c.Client, Live: c.Client, Clock: d.clock, Instance: "test"}
	return d
}

// releasing changes the class to release claims after an hour.
func (c *cluster) releasing(t *testing.T) {
	t.Helper()
	class := &v1alpha1.PoolClass{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: c.class}, class); err != nil {
		t.Fatal(err)
	}
	class.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: v1alpha1.NodeGoneReleaseClaims}
	if err := c.Client.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

// object returns the Volume as the controller makes it.
func (d *departure) object() *v1alpha1.Volume {
	r := d.requestFor(d.claim)
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: d.volume, Finalizers: []string{v1alpha1.VolumeFinalizer}, Labels: map[string]string{v1alpha1.ReplicaLabel(d.node): ""}},
		Spec: v1alpha1.VolumeSpec{
			Capacity: *persistentVolume("", "").Spec.Capacity.Storage(), VolumeMode: r.Mode, FSType: r.FSType, PoolClass: d.class, ClaimRef: r.Claim,
			Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode, Replication: v1alpha1.Replication{Factor: 1},
			Replicas: []v1alpha1.ReplicaSpec{{Node: d.node, Pool: controllertest.Pool}},
		},
	}
	return v
}

func (d *departure) must(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// put makes an object, and removes it with its finalizers when the test ends.
func (d *departure) put(o client.Object) {
	d.t.Helper()
	d.must(d.Client.Create(d.t.Context(), o))
	d.t.Cleanup(func() {
		ctx := context.WithoutCancel(d.t.Context())
		key := client.ObjectKeyFromObject(o)
		if d.Client.Get(ctx, key, o) != nil {
			return
		}
		o.SetFinalizers(nil)
		if err := errors.Join(d.Client.Update(ctx, o), client.IgnoreNotFound(d.Client.Delete(ctx, o))); err != nil {
			d.t.Error(err)
		}
	})
}

func (d *departure) goes() {
	d.t.Helper()
	d.must(d.Client.Delete(d.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.node}}))
}

func (d *departure) returns() {
	d.t.Helper()
	d.must(d.Client.Create(d.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: d.node}}))
}

// after lets time pass and reconciles.
func (d *departure) after(wait time.Duration) {
	d.t.Helper()
	d.clock.SetTime(d.clock.Now().Add(wait))
	_, err := d.r.Reconcile(d.t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: d.node}})
	d.must(err)
}

// shows checks the volume's mark, whether the claim exists, and the reclaim policy.
func (d *departure) shows(status metav1.ConditionStatus, reason string, claim bool, policy corev1.PersistentVolumeReclaimPolicy) {
	d.t.Helper()
	if err := nodeGone(status, reason)(controllertest.Volume(d.t, d.Environment, d.volume)); err != nil {
		d.t.Error(err)
	}
	err := d.Client.Get(d.t.Context(), client.ObjectKeyFromObject(d.claim), &corev1.PersistentVolumeClaim{})
	d.must(client.IgnoreNotFound(err))
	if (err == nil) != claim {
		d.t.Errorf("the claim is there: %v", err == nil)
	}
	pv := &corev1.PersistentVolume{}
	d.must(d.Client.Get(d.t.Context(), client.ObjectKey{Name: d.volume}, pv))
	if pv.DeletionTimestamp != nil || pv.Spec.PersistentVolumeReclaimPolicy != policy {
		d.t.Errorf("the PersistentVolume has policy %s, want %s; it is deleted: %v", pv.Spec.PersistentVolumeReclaimPolicy, policy, pv.DeletionTimestamp)
	}
}

// nodeGone checks the condition of that name, and that the volume stays.
func nodeGone(status metav1.ConditionStatus, reason string) func(*v1alpha1.Volume) error {
	return func(v *v1alpha1.Volume) error {
		if v == nil || v.DeletionTimestamp != nil || len(v.Finalizers) != 1 {
			return fmt.Errorf("the volume does not stay: %+v", v)
		}
		c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionNodeGone)
		if c == nil || c.Status != status || c.Reason != reason {
			return fmt.Errorf("the volume says %+v, want %s %s", c, status, reason)
		}
		return nil
	}
}

// told returns the kinds of the objects that have an event of a reason.
func (d *departure) told(reason string) map[string]bool {
	d.t.Helper()
	var list eventsv1.EventList
	d.must(d.Client.List(d.t.Context(), &list))
	kinds := map[string]bool{}
	for _, e := range list.Items {
		if e.Reason == reason && (e.Regarding.Name == d.volume || e.Regarding.Name == d.claim.Name) {
			kinds[e.Regarding.Kind] = true
		}
	}
	return kinds
}

const (
	retain = corev1.PersistentVolumeReclaimRetain
	remove = corev1.PersistentVolumeReclaimDelete
)

func TestTheClaimOfANodeThatStaysAwayIsReleasedAndTheDataKept(t *testing.T) {
	d := depart(t)
	d.goes()
	d.after(0)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonReleasePending, true, remove)
	d.after(time.Hour - time.Second)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonReleasePending, true, remove)
	d.after(2 * time.Second)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonClaimReleased, false, retain)
	if told := d.told(v1alpha1.ReasonClaimReleased); len(told) != 3 {
		t.Errorf("told of it were %v", told)
	}
	d.returns()
	d.after(0)
	d.shows(metav1.ConditionFalse, v1alpha1.ReasonNodeReturned, false, retain)
}

func TestTheClaimOfANodeThatReturnsIsKept(t *testing.T) {
	d := depart(t)
	d.goes()
	d.after(0)
	d.returns()
	d.after(2 * time.Hour)
	d.shows(metav1.ConditionFalse, v1alpha1.ReasonNodeReturned, true, remove)
	d.goes()
	d.after(0)
	d.after(time.Hour / 2)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonReleasePending, true, remove)
}

func TestAControllerThatWasDownCountsOnAndWaitsALittle(t *testing.T) {
	d := depart(t)
	d.goes()
	d.after(0)
	d.r = &nodegone.Reconciler{Driver: driver.Local(), Client: d.Client, Live: d.Client, Clock: d.clock, Instance: "next"}
	d.after(10 * time.Hour)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonReleasePending, true, remove)
	d.after(10 * time.Minute)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonClaimReleased, false, retain)
}

func TestAClaimThatPodsUseGoesWhenTheyHaveGone(t *testing.T) {
	d := depart(t)
	d.claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	d.must(d.Client.Update(t.Context(), d.claim))
	d.goes()
	d.after(0)
	d.after(time.Hour)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonReleasingClaim, true, retain)
	d.must(d.Client.Get(t.Context(), client.ObjectKeyFromObject(d.claim), d.claim))
	d.claim.Finalizers = nil
	d.must(d.Client.Update(t.Context(), d.claim))
	d.after(time.Minute)
	d.shows(metav1.ConditionTrue, v1alpha1.ReasonClaimReleased, false, retain)
}

func TestTheControllerMarksTheVolumesOfADeletedNode(t *testing.T) {
	d := depart(t)
	controllertest.Start(t, d.Environment)
	for range 2 {
		d.goes()
		controllertest.Eventually(t, d.Environment, d.volume, nodeGone(metav1.ConditionTrue, v1alpha1.ReasonReleasePending))
		d.returns()
		controllertest.Eventually(t, d.Environment, d.volume, nodeGone(metav1.ConditionFalse, v1alpha1.ReasonNodeReturned))
	}
}

func TestTheControllerMarksTheVolumesOfANodeThatWasDeletedWhileItWasDown(t *testing.T) {
	d := depart(t)
	d.goes()
	p := controllertest.Start(t, d.Environment)
	controllertest.Eventually(t, d.Environment, d.volume, nodeGone(metav1.ConditionTrue, v1alpha1.ReasonReleasePending))
	p.Stop(t)
	d.returns()
	controllertest.Start(t, d.Environment)
	controllertest.Eventually(t, d.Environment, d.volume, nodeGone(metav1.ConditionFalse, v1alpha1.ReasonNodeReturned))
}

func TestAVolumeThatComesToANodeThatIsGoneIsMarked(t *testing.T) {
	d := depart(t)
	d.goes()
	controllertest.Start(t, d.Environment)
	restored := d.object() // from a backup without labels
	restored.Name, restored.Labels = "pvc-"+string(uuid.NewUUID()), nil
	d.put(restored)
	controllertest.Eventually(t, d.Environment, restored.Name, nodeGone(metav1.ConditionTrue, v1alpha1.ReasonClaimKept))
}
