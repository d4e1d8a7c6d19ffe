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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
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

// lun declares a LUN of so many GiB, and waits until controllers know it.
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
	return a.becomes(l, v1alpha1.LUNAvailable, "")
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
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, r := range requests { // a cache may lag: then the answer is that no LUN will do
			v, err := a.processes[0].LUNs.Create(ctx, r)
			if errors.Is(err, usecase.ErrUnplaceable) {
				continue
			}
			if err != nil {
				return false, err
			}
			d := controllertest.Volume(t, a.Environment, v.ID).Spec.Replication.Attachments.Disk
			if other, taken := served[d.Identity]; taken && other != v.ID {
				return false, fmt.Errorf("volumes %s and %s have one disk", other, v.ID)
			}
			served[d.Identity] = v.ID
		}
		return len(served) == luns, nil
	})
	if err != nil {
		t.Errorf("%d of %d LUNs are handed out: %v", len(served), luns, err)
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
