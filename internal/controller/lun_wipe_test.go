package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// worker is a node with an agent of shared disks, as far as the API server knows.
func (a *array) worker(name string) string {
	a.t.Helper()
	name = a.class + "-" + name
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver.Disk().Name, NodeID: name}}}}
	for _, o := range []client.Object{n, c} {
		if err := a.Client.Create(a.t.Context(), o); err != nil {
			a.t.Fatal(err)
		}
		a.t.Cleanup(func() { _ = a.Client.Delete(context.WithoutCancel(a.t.Context()), o) })
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := a.Client.Status().Update(a.t.Context(), n); err != nil {
		a.t.Fatal(err)
	}
	return name
}

func ignoreUnplaceable(err error) error {
	if errors.Is(err, usecase.ErrUnplaceable) {
		return nil
	}
	return err
}

// made makes a volume of a claim, and waits until it has a record.
func (a *array) made() volumes.Volume {
	a.t.Helper()
	r, v := a.request(), volumes.Volume{}
	err := wait.PollUntilContextTimeout(a.t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		made, err := a.processes[0].LUNs.Create(ctx, r)
		v = made
		return err == nil, ignoreUnplaceable(err) // its cache may lag
	})
	if err != nil {
		a.t.Fatal(err)
	}
	controllertest.Eventually(a.t, a.Environment, v.ID, func(v *v1alpha1.Volume) error {
		if v == nil || v.Status.Ownership == nil {
			return errors.New("it has no record")
		}
		return nil
	})
	return v
}

// used lets a node own a volume for an epoch, and release it.
func (a *array) used(volume, node string) {
	a.t.Helper()
	v := controllertest.Volume(a.t, a.Environment, volume)
	o := v.Status.Ownership
	o.Epoch = v1alpha1.Epoch{Number: o.Epoch.Number + 1, ID: "used"}
	o.Primary, o.Clean = v1alpha1.Primary{Node: node, Boot: "boot", Phase: v1alpha1.PrimaryPreparing}, false
	o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: o.Epoch})
	o.Keys = append(o.Keys, v1alpha1.ReservationKey{Node: node, Epoch: o.Epoch})
	o.Replicas = []v1alpha1.OwnedReplica{{Node: node, State: v1alpha1.OwnedSyncing}}
	if err := a.Controller(a.t).Status().Update(a.t.Context(), v); err != nil {
		a.t.Fatal(err)
	}
	a.agentSays(volume, node, func(o *v1alpha1.Ownership) bool {
		o.Primary.Phase, o.Clean = v1alpha1.PrimaryReleased, true
		return true
	})
}

// agentSays lets the agent of a node change a record, once it may.
func (a *array) agentSays(volume, node string, change func(o *v1alpha1.Ownership) bool) {
	a.t.Helper()
	controllertest.Eventually(a.t, a.Environment, volume, func(v *v1alpha1.Volume) error {
		if v == nil || !change(v.Status.Ownership) {
			return errors.New("the agent waits")
		}
		return a.Agent(a.t, node).Status().Update(a.t.Context(), v)
	})
}

// ends deletes a volume that was used on a node, which detaches the disk.
func (a *array) ends(volume, node string) {
	a.t.Helper()
	if err := a.Client.Delete(a.t.Context(), controllertest.Volume(a.t, a.Environment, volume)); err != nil {
		a.t.Fatal(err)
	}
	a.agentSays(volume, node, func(o *v1alpha1.Ownership) bool {
		going := len(o.Replicas) == 1 && o.Replicas[0].State == v1alpha1.OwnedRemoving
		if going {
			o.Replicas[0].State = v1alpha1.OwnedGone
		}
		return going
	})
}

// says is what the agent of the node that wipes a LUN writes.
func (a *array) says(l *v1alpha1.LUN, node string, change func(w *v1alpha1.LUNWipe)) {
	a.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the controller tells of the progress meanwhile
		now := &v1alpha1.LUN{}
		if err := a.Client.Get(a.t.Context(), client.ObjectKeyFromObject(l), now); err != nil {
			return err
		}
		change(now.Status.Wipe)
		return a.Agent(a.t, node).Status().Update(a.t.Context(), now)
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

func TestALUNIsWipedAndGivenToTheNextClaim(t *testing.T) {
	a := newArray(t, 2)
	l := a.lun("only", 2, persistent)
	v := a.made()
	a.used(v.ID, "far")
	a.ends(v.ID, "far")
	if now := a.becomes(l, v1alpha1.LUNReleased, v.ID); now.Status.Wipe == nil || now.Status.Wipe.Node != "" {
		t.Errorf("ordered is %+v", now.Status.Wipe)
	}
	// The Volume waits for a Node that does not exist. The proof is in the LUN.
	if err := a.Client.Patch(t.Context(), controllertest.Volume(t, a.Environment, v.ID), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	node := a.worker("one")
	now := a.becomes(l, v1alpha1.LUNWiping, v.ID)
	if w := now.Status.Wipe; w.Node != node || w.Epoch.Number < 2 || len(w.Keys) == 0 {
		t.Errorf("ordered is %+v", w)
	}
	if _, err := a.processes[0].LUNs.Create(t.Context(), a.request()); !errors.Is(err, usecase.ErrUnplaceable) || !strings.Contains(err.Error(), "1 released") {
		t.Errorf("a claim gets it before it is wiped: %v", err)
	}
	a.says(l, node, func(w *v1alpha1.LUNWipe) { w.Done, w.Outcome = 2*gi, v1alpha1.LUNWiped })
	a.says(l, node, func(w *v1alpha1.LUNWipe) { w.Outcome = v1alpha1.LUNCleared })
	a.becomes(l, v1alpha1.LUNWiping, v.ID)
	a.says(l, node, func(w *v1alpha1.LUNWipe) { w.Node = "" })
	if now := a.becomes(l, v1alpha1.LUNAvailable, ""); now.Status.Wipe != nil {
		t.Errorf("a free LUN has %+v", now.Status.Wipe)
	}
	next := a.made()
	a.becomes(l, v1alpha1.LUNBound, next.ID)
}

func TestALUNThatWasNeverWrittenIsFreeAtOnce(t *testing.T) {
	a := newArray(t, 1)
	l := a.lun("new", 2, persistent)
	v := a.made()
	if err := a.processes[0].LUNs.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	a.becomes(l, v1alpha1.LUNAvailable, "")
	a.becomes(l, v1alpha1.LUNBound, a.made().ID)
}

func TestTheLUNOfARetainedVolumeIsNotWiped(t *testing.T) {
	a := newArray(t, 1)
	a.worker("one")
	l := a.lun("kept", 2, persistent)
	v := a.made()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.ID}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver.Disk().Name, VolumeHandle: v.ID}},
	}}
	if err := a.Client.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Client.Delete(context.WithoutCancel(t.Context()), pv) })
	// A person deletes the Volume that the PersistentVolume stands for.
	if err := a.Client.Delete(t.Context(), controllertest.Volume(t, a.Environment, v.ID)); err != nil {
		t.Fatal(err)
	}
	if now := a.becomes(l, v1alpha1.LUNReleased, v.ID); now.Status.Wipe != nil || !strings.Contains(now.Status.Message, "retained") {
		t.Errorf("it is to be wiped: %+v", now.Status)
	}
	controllertest.Eventually(t, a.Environment, v.ID, controllertest.Gone)
	if now := a.becomes(l, v1alpha1.LUNReleased, v.ID); now.Status.Wipe != nil {
		t.Errorf("it is wiped later: %+v", now.Status)
	}
}

// A claim is deleted after its volume has taken a LUN, and before the Volume names the disk.
func TestALUNThatWasTakenInVainIsFreeAgain(t *testing.T) {
	a := newArray(t, 1)
	l := a.lun("half", 2)
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uuid.NewUUID()), Finalizers: []string{v1alpha1.VolumeFinalizer}},
		Spec: v1alpha1.VolumeSpec{
			Driver: driver.Disk().Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: a.class,
			Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{Factor: 1, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{MaxShares: 1, Blank: true}},
		},
	}
	if err := a.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	l.Status = v1alpha1.LUNStatus{State: v1alpha1.LUNBound, Volume: &v1alpha1.LUNVolume{Name: v.Name, UID: v.UID}}
	if err := a.Controller(t).Status().Update(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := a.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, a.Environment, v.Name, controllertest.Gone)
	a.becomes(l, v1alpha1.LUNAvailable, "")
	a.becomes(l, v1alpha1.LUNBound, a.made().ID)
}
