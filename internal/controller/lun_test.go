package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase"
	"berth.dev/berth/internal/usecase/volumes"
)

// array has LUNs of a class of its own, and controllers of shared disks with the rights that the chart gives them.
type array struct {
	*apitest.Environment
	t         *testing.T
	class     string
	processes []*controllertest.Process
}

func newArray(t *testing.T, controllers int) *array {
	t.Helper()
	a := &array{Environment: apitest.Start(t), t: t, class: strings.ToLower(v1alpha1.VolumeName(t.Name()))}
	config := a.ControllerConfig(t)
	for _, role := range []string{"controller", "oversight"} {
		a.Grant(t, role, "controller")
	}
	for range controllers {
		a.processes = append(a.processes, controllertest.Start(t, a.Environment, controllertest.WithDriver(driver.Disk()),
			controllertest.WithConfig(config), controllertest.WithLeaderElection()))
	}
	return a
}

func persistent(l *v1alpha1.LUN) { l.Spec.Persistent = true }

// lun declares a LUN of so many GiB.
func (a *array) lun(name string, gib int, change ...func(*v1alpha1.LUN)) *v1alpha1.LUN {
	a.t.Helper()
	l := &v1alpha1.LUN{ObjectMeta: metav1.ObjectMeta{Name: a.class + "-" + name}, Spec: v1alpha1.LUNSpec{
		Disk:     v1alpha1.SharedDisk{Handle: "sim:///" + a.class + "/" + name, Identity: a.class + name},
		Capacity: resource.MustParse(fmt.Sprintf("%dGi", gib)), PoolClass: a.class,
	}}
	for _, c := range change {
		c(l)
	}
	if err := a.Client.Create(a.t.Context(), l); err != nil {
		a.t.Fatal(err)
	}
	return l
}

func (a *array) request() volumes.Request {
	return volumes.Request{Name: "pvc-" + string(uuid.NewUUID()), Size: volumes.Size{Required: gi}, Mode: v1alpha1.Block,
		PoolClass: a.class, Attachments: &volumes.Attachments{MaxShares: 2, Factor: 2}}
}

// becomes waits until a LUN has a state, and a volume or none.
func (a *array) becomes(l *v1alpha1.LUN, state v1alpha1.LUNState, volume string) *v1alpha1.LUN {
	a.t.Helper()
	now := &v1alpha1.LUN{}
	err := wait.PollUntilContextTimeout(a.t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		next := &v1alpha1.LUN{}
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(l), next); err != nil {
			return false, err
		}
		now = next
		has := ""
		if now.Status.Volume != nil {
			has = now.Status.Volume.Name
		}
		return now.Status.State == state && has == volume, nil
	})
	if err != nil {
		a.t.Fatalf("LUN %s is %+v, want %s of volume %q: %v", l.Name, now.Status, state, volume, err)
	}
	return now
}

func TestALUNIsHandedOutOnceAndNotAgain(t *testing.T) {
	a := newArray(t, 1)
	p := a.processes[0]
	small, large := a.lun("small", 2), a.lun("large", 5)
	a.becomes(small, v1alpha1.LUNAvailable, "")

	r := a.request()
	v, err := p.LUNs.Create(t.Context(), r)
	if err != nil || v.ID != r.Name || v.Capacity != 2*gi {
		t.Fatalf("%+v, %v", v, err)
	}
	a.becomes(small, v1alpha1.LUNBound, v.ID)
	made := controllertest.Volume(t, a.Environment, v.ID)
	if d := made.Spec.Replication.Attachments.Disk; d == nil || *d != small.Spec.Disk || made.Spec.Driver != driver.Disk().Name {
		t.Errorf("the Volume is %+v", made.Spec)
	}
	if listed, _, err := p.LUNs.List(t.Context(), "", 0); err != nil || len(listed) != 1 || listed[0].ID != v.ID || listed[0].Capacity != 2*gi {
		t.Errorf("listed are %+v, %v", listed, err)
	}

	// A declared disk does not vanish while a volume has it.
	if err := a.Client.Delete(t.Context(), large); err != nil {
		t.Fatal(err)
	}
	if err := a.Client.Delete(t.Context(), small); err != nil {
		t.Fatal(err)
	}
	a.becomes(small, v1alpha1.LUNBound, v.ID)
	if _, err := p.LUNs.Create(t.Context(), a.request()); !errors.Is(err, usecase.ErrUnplaceable) {
		t.Errorf("another volume: %v", err)
	}

	if err := p.LUNs.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, a.Environment, v.ID, controllertest.Gone)
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := a.Client.Get(ctx, client.ObjectKeyFromObject(small), &v1alpha1.LUN{})
		return err != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Errorf("the LUN that was deleted stays after its volume: %v", err)
	}
}

func TestALUNOfADeletedVolumeWaitsForAnAdministrator(t *testing.T) {
	a := newArray(t, 1)
	p := a.processes[0]
	l := a.lun("only", 2)
	v, err := p.LUNs.Create(t.Context(), a.request())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.LUNs.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	if now := a.becomes(l, v1alpha1.LUNReleased, v.ID); !strings.Contains(now.Status.Message, "wipe") {
		t.Errorf("it says %q", now.Status.Message)
	}
	if _, err := p.LUNs.Create(t.Context(), a.request()); !errors.Is(err, usecase.ErrUnplaceable) || !strings.Contains(err.Error(), "1 released") {
		t.Errorf("the next volume: %v", err)
	}
	if err := a.Client.Delete(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := a.Client.Get(ctx, client.ObjectKeyFromObject(l), &v1alpha1.LUN{})
		return err != nil, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	a.lun("only", 2)
	if _, err := p.LUNs.Create(t.Context(), a.request()); err != nil {
		t.Errorf("declared anew it is not handed out: %v", err)
	}
}

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

// made makes a volume of a claim, and waits until it has a record.
func (a *array) made() volumes.Volume {
	a.t.Helper()
	v, err := a.processes[0].LUNs.Create(a.t.Context(), a.request())
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
	l := a.lun("new", 2)
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

// A person takes the finalizer off a Volume whose record says that a node has the disk.
func TestAVolumeThatVanishesLeavesItsLUNToAnAdministrator(t *testing.T) {
	a := newArray(t, 1)
	node := a.worker("one")
	l := a.lun("torn", 2, persistent)
	v := controllertest.Volume(t, a.Environment, a.made().ID)
	v.Status.Ownership.Replicas = []v1alpha1.OwnedReplica{{Node: node, State: v1alpha1.OwnedReserved}}
	if err := a.Controller(t).Status().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	if err := a.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, a.Environment, v.Name, func(v *v1alpha1.Volume) error {
		if v == nil || len(v.Status.Ownership.Replicas) != 1 || v.Status.Ownership.Replicas[0].State != v1alpha1.OwnedRemoving {
			return errors.New("its attachment is not asked to go")
		}
		return nil
	})
	a.becomes(l, v1alpha1.LUNBound, v.Name)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := a.Client.Patch(t.Context(), v, patch); err != nil {
		t.Fatal(err)
	}
	if now := a.becomes(l, v1alpha1.LUNReleased, v.Name); now.Status.Wipe != nil || !strings.Contains(now.Status.Message, "nothing proves") {
		t.Errorf("it is to be wiped: %+v", now.Status)
	}
}

func TestAVolumeThatWasMadeByHandHasItsLUN(t *testing.T) {
	a := newArray(t, 1)
	l := a.lun("named", 2)
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName("hand" + t.Name())}, Spec: v1alpha1.VolumeSpec{
		Driver: driver.Disk().Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: "none",
		Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		Replication: v1alpha1.Replication{Factor: 1, Kind: v1alpha1.ReplicationAttachments, Attachments: &v1alpha1.Attachments{
			MaxShares: 1, Disk: &v1alpha1.SharedDisk{Handle: "sim:///elsewhere", Identity: l.Spec.Disk.Identity}}},
	}}
	if err := a.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	a.becomes(l, v1alpha1.LUNBound, v.Name)
	if _, err := a.processes[0].LUNs.Create(t.Context(), a.request()); !errors.Is(err, usecase.ErrUnplaceable) {
		t.Errorf("it is handed out: %v", err)
	}
	if err := a.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	a.becomes(l, v1alpha1.LUNReleased, v.Name)
}

// Three processes are asked for more volumes than there are LUNs, each volume by all of them.
func TestProcessesThatHandOutTheSameLUNsAgree(t *testing.T) {
	const luns, claims = 5, 8
	a := newArray(t, 3)
	for i := range luns {
		a.lun(fmt.Sprint(i), 1+i)
	}
	requests := make([]volumes.Request, claims)
	for i := range requests {
		requests[i] = a.request()
	}
	var work sync.WaitGroup
	for _, p := range a.processes {
		for _, r := range requests {
			work.Go(func() {
				_, err := p.LUNs.Create(t.Context(), r)
				if err != nil && !errors.Is(err, usecase.ErrUnplaceable) && !errors.Is(err, provision.ErrConflict) {
					t.Error(err)
				}
			})
		}
	}
	work.Wait()
	served := map[string]string{}
	for _, r := range requests {
		v, err := a.processes[0].LUNs.Create(t.Context(), r)
		if errors.Is(err, usecase.ErrUnplaceable) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		d := controllertest.Volume(t, a.Environment, v.ID).Spec.Replication.Attachments.Disk
		if other, taken := served[d.Identity]; taken {
			t.Errorf("volumes %s and %s have one disk", other, v.ID)
		}
		served[d.Identity] = v.ID
	}
	if len(served) != luns {
		t.Errorf("%d of %d LUNs are handed out", len(served), luns)
	}
}

// Volumes that no claim waits for any more do not stay without a disk.
func TestAVolumeWithoutADiskGoesWithItsClaim(t *testing.T) {
	a := newArray(t, 1)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "gone"}}
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(uuid.NewUUID())}, Spec: v1alpha1.VolumeSpec{
		Driver: driver.Disk().Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Block, PoolClass: a.class,
		Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
		ClaimRef: &v1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name, UID: "1"},
		Replication: v1alpha1.Replication{Factor: 1, Kind: v1alpha1.ReplicationAttachments,
			Attachments: &v1alpha1.Attachments{MaxShares: 1, Blank: true}},
	}}
	if err := a.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	controllertest.Eventually(t, a.Environment, v.Name, controllertest.Gone)
}
