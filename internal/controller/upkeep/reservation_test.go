package upkeep

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumetest"
)

// reserved is a carved Volume that a scheduler made for the claim with UID u.
func reserved() *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u", UID: "v", Annotations: map[string]string{v1alpha1.ReservedAnnotation: ""}}}
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: "u"}
	v.Spec.Capacity, v.Spec.Replicas = resource.MustParse("1Gi"), []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg"}}
	return saying(v, v1alpha1.ReplicaReady, "")
}

func saying(v *v1alpha1.Volume, state v1alpha1.ReplicaState, reason string) *v1alpha1.Volume {
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n", State: state, Reason: reason, Requested: new(v.Spec.Capacity)}}
	if state == v1alpha1.ReplicaReady {
		v.Status.Replicas[0].Capacity = new(v.Spec.Capacity)
	}
	return v
}

func standingFor(pv, volume string) *corev1.PersistentVolume {
	o := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: pv}}
	o.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: volume}
	return o
}

func claimed(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u"}}
	change(c)
	return c
}

// tidying is a reconciler with its objects.
type tidying struct {
	*Reservations
	server *lagging.Server
	t      *testing.T
	clock  *clocktesting.FakePassiveClock
}

func newTidying(t *testing.T, objects ...client.Object) *tidying {
	t.Helper()
	s := lagging.New(t, objects...)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return &tidying{&Reservations{Driver: driver.Local(), Client: s.Client(), Live: s.Live(), Clock: clock, Delay: time.Minute}, s, t, clock}
}

// look reconciles, and then lets time pass.
func (d *tidying) look(wait time.Duration) ctrl.Result {
	d.t.Helper()
	result, err := d.Reconcile(d.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "pvc-u"}})
	if err != nil {
		d.t.Fatal(err)
	}
	d.clock.SetTime(d.clock.Now().Add(wait))
	return result
}

func (d *tidying) gone() bool {
	return apierrors.IsNotFound(d.Client.Get(context.WithoutCancel(d.t.Context()), client.ObjectKey{Name: "pvc-u"}, &v1alpha1.Volume{}))
}

// off is whether the reservation is there and has no node.
func (d *tidying) off() bool {
	v := &v1alpha1.Volume{}
	return d.Live.Get(context.WithoutCancel(d.t.Context()), client.ObjectKey{Name: "pvc-u"}, v) == nil && len(v.Spec.Replicas) == 0
}

// choosing is a claim of class fast that names its node.
func choosing() *corev1.PersistentVolumeClaim {
	return claimed(func(c *corev1.PersistentVolumeClaim) {
		c.Spec.StorageClassName, c.Annotations = new("fast"), map[string]string{schedule.SelectedNode: "n"}
	})
}

// provisionedBy is StorageClass fast of a driver.
func provisionedBy(driver string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver}
}

func TestADeletionIsNotDecidedByAnOldClass(t *testing.T) {
	d := newTidying(t, reserved(), provisionedBy(foreign().Name), choosing())
	d.Live = lagging.New(t, reserved(), provisionedBy(v1alpha1.LocalDriverName), choosing()).Live()
	d.look(time.Minute)
	if d.look(0); d.gone() {
		t.Error("it went by what the cache showed of the class")
	}
}

func TestWhichReservationsGo(t *testing.T) {
	public, anyones, byName, silent := reserved(), reserved(), reserved(), reserved()
	silent.Status.Replicas = nil
	idle := choosing()
	idle.Annotations = nil
	public.Annotations, anyones.Spec.ClaimRef, byName.Spec.ClaimRef.UID = nil, nil, ""
	tests := map[string]struct {
		objects []client.Object
		goes    string
	}{
		"the claim is gone": {[]client.Object{reserved()}, "at once"},
		"the claim is gone, and the reservation knew only the claim's name": {[]client.Object{byName}, "at once"},
		"the reservation was made for no claim":                             {[]client.Object{anyones}, "never"},
		"a new claim has the name of the old claim": {
			[]client.Object{reserved(), claimed(func(c *corev1.PersistentVolumeClaim) {
				c.UID, c.Annotations = "w", map[string]string{schedule.SelectedNode: "n"}
			})}, "at once"},
		"no scheduler has chosen a node for the claim": {[]client.Object{reserved(), theClaim()}, "off its node after the delay"},
		"no scheduler has chosen a node, and the claim's class is the driver's": {
			[]client.Object{reserved(), provisionedBy(v1alpha1.LocalDriverName), idle}, "off its node after the delay"},
		"no scheduler has chosen a node, and the claim's class has become another driver's": {
			[]client.Object{reserved(), provisionedBy(foreign().Name), idle}, "after the delay"},
		"no scheduler has chosen a node, and the reserved node refuses": {
			[]client.Object{saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace), theClaim()}, "off its node after the delay"},
		"no scheduler has chosen a node, and the reserved node has not answered": {[]client.Object{silent, theClaim()}, "never"},
		"the claim names the reserved node": {
			[]client.Object{reserved(), claimed(func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{schedule.SelectedNode: "n"}
			})}, "never"},
		"the claim's class has become another driver's": {
			[]client.Object{reserved(), provisionedBy(foreign().Name), choosing()}, "after the delay"},
		"the claim's class has become another driver's, and a PersistentVolume refers to the reservation": {
			[]client.Object{reserved(), provisionedBy(foreign().Name), choosing(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u"}}}, "never"},
		"the claim's class is the driver's": {[]client.Object{reserved(), provisionedBy(v1alpha1.LocalDriverName), choosing()}, "never"},
		"the claim's class is gone":         {[]client.Object{reserved(), choosing()}, "never"},
		"the claim is bound to the reservation": {
			[]client.Object{reserved(), claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pvc-u" })}, "never"},
		"the claim is bound to the reservation by another PersistentVolume": {
			[]client.Object{reserved(), standingFor("pv", "pvc-u"), claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" })}, "never"},
		"the claim is bound to another volume": {
			[]client.Object{reserved(), standingFor("pv", "pvc-other"), claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" })}, "after the delay"},
		"the claim is bound to another volume and names the reserved node": {
			[]client.Object{reserved(), standingFor("pv", "pvc-other"), claimed(func(c *corev1.PersistentVolumeClaim) {
				c.Spec.VolumeName, c.Annotations = "pv", map[string]string{schedule.SelectedNode: "n"}
			})}, "after the delay"},
		"a node has found data of the same name":                        {[]client.Object{saying(reserved(), v1alpha1.ReplicaReady, v1alpha1.ReasonFound)}, "never"},
		"a node keeps foreign data of the same name":                    {[]client.Object{saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict)}, "never"},
		"a node has no room for the reservation, and the claim is gone": {[]client.Object{saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace)}, "at once"},
		"a PersistentVolume refers to the reservation": {
			[]client.Object{reserved(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u"}}}, "never"},
		"a call returned the volume to the user": {[]client.Object{public}, "never"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d := newTidying(t, test.objects...)
			goes := "never"
			for _, look := range []struct {
				wait time.Duration
				when string
			}{{59 * time.Second, "at once"}, {time.Second, "too early"}, {0, "after the delay"}} {
				d.look(look.wait)
				switch {
				case goes != "never":
				case d.gone():
					goes = look.when
				case d.off():
					goes = "off its node " + look.when
				}
			}
			if goes != test.goes {
				t.Errorf("it goes %s", goes)
			}
		})
	}
}

func TestAReservationThatIsUsedMeanwhileIsIdleAnew(t *testing.T) {
	d := newTidying(t, reserved(), claimed(func(*corev1.PersistentVolumeClaim) {}))
	d.look(time.Minute)
	v := &v1alpha1.Volume{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: "pvc-u"}, v); err != nil {
		t.Fatal(err)
	}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "m", Pool: "vg0"}} // placed on another node
	if err := d.Client.Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	v.Status.Replicas[0].Node = "m"
	must(t, d.Client.Status().Update(t.Context(), v))
	if result := d.look(time.Minute); d.off() || result.RequeueAfter != time.Minute {
		t.Errorf("off its node is %v, looks again in %s", d.off(), result.RequeueAfter)
	}
	d.look(0)
	if !d.off() {
		t.Error("it stayed")
	}
}

func TestAReservationThatWasWantedMeanwhileIsIdleAnew(t *testing.T) {
	c := theClaim()
	d := newTidying(t, reserved(), c)
	for _, selected := range []map[string]string{nil, {schedule.SelectedNode: "n"}, nil} {
		must(t, d.Live.Get(t.Context(), client.ObjectKeyFromObject(c), c))
		c.Annotations = selected
		must(t, d.Client.Update(t.Context(), c))
		d.look(time.Minute)
		if d.off() {
			t.Fatalf("it is off its node at once after its claim bore %v", selected)
		}
	}
	d.look(0)
	if !d.off() {
		t.Error("it stayed")
	}
}

// The volume that is made for the claim has the reservation's name.
func TestTheReservationOfAClaimThatWaitsDoesNotKeepItsNameFromTheClaim(t *testing.T) {
	v := reserved()
	v.Finalizers, v.Labels = []string{v1alpha1.VolumeFinalizer}, map[string]string{v1alpha1.ReplicaLabel("n"): ""}
	d := newTidying(t, v, theClaim())
	d.look(time.Minute)
	d.look(time.Minute)
	up := &Volumes{Client: d.Client, Live: d.Live, Nodes: volumetest.Nodes{"n": "is silent"}} // and stays so
	must(t, look(t, up, "pvc-u"))
	must(t, d.Live.Get(t.Context(), client.ObjectKeyFromObject(v), v))
	if _, labelled := v.Labels[v1alpha1.ReplicaLabel("n")]; v.DeletionTimestamp != nil || len(v.Spec.Replicas) > 0 || !labelled {
		t.Errorf("under deletion since %v, on %v, the node is remembered: %v", v.DeletionTimestamp, v.Spec.Replicas, labelled)
	}
	d.server.Before = func(w lagging.Write) error { t.Errorf("%s though it is done", w.Verb); return nil }
	for range 3 {
		if result := d.look(time.Minute); result.RequeueAfter == 0 {
			t.Error("nobody looks whether the claim gets another volume")
		}
	}
}

func TestAReservationThatCannotBeTakenOffItsNodeIsAnErrorUnlessTheVolumeChanges(t *testing.T) {
	d := newTidying(t, reserved(), theClaim())
	d.look(time.Minute)
	d.server.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, d.Reservations, "pvc-u"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	d.server.Before = func(lagging.Write) error { publish(t, d.server); return nil }
	if d.look(0); d.off() {
		t.Error("a volume that a call returned is off its node")
	}
}

func TestEachReservationHasADelayOfItsOwn(t *testing.T) {
	other, its := reserved(), theClaim()
	other.Name, other.Spec.ClaimRef.Name, other.Spec.ClaimRef.UID = "pvc-w", "more", "w"
	its.Name, its.UID = "more", "w"
	d := newTidying(t, reserved(), theClaim(), other, its)
	for range 2 {
		for _, name := range []string{"pvc-u", "pvc-w"} {
			must(t, look(t, d.Reservations, name))
		}
		d.clock.SetTime(d.clock.Now().Add(time.Minute))
	}
	var list v1alpha1.VolumeList
	must(t, d.Client.List(t.Context(), &list))
	for i := range list.Items {
		if v := &list.Items[i]; len(v.Spec.Replicas) > 0 {
			t.Errorf("%s stayed", v.Name)
		}
	}
}

func TestNothingIsRememberedOfAReservationThatIsOver(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *lagging.Server){
		"a call returned the volume to the user": publish,
		"a client deleted the reservation":       func(t *testing.T, s *lagging.Server) { t.Helper(); must(t, s.Others().Delete(t.Context(), reserved())) },
	} {
		t.Run(name, func(t *testing.T) {
			s := lagging.New(t, reserved(), theClaim())
			r := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: s.Live(), Clock: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), Delay: time.Minute}
			must(t, look(t, r, "pvc-u"))
			end(t, s)
			must(t, look(t, r, "pvc-u"))
			if len(r.idle) != 0 {
				t.Errorf("remembers %v", r.idle)
			}
		})
	}
}

func TestAReservationThatIsWantedIsLookedAtAgain(t *testing.T) {
	d := newTidying(t, reserved(), claimed(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{schedule.SelectedNode: "n"}
	}))
	if result := d.look(0); result.RequeueAfter != time.Minute {
		t.Errorf("looks again in %s", result.RequeueAfter)
	}
}

func TestAVolumeWithFoundDataIsNoReservation(t *testing.T) {
	d := newTidying(t, saying(reserved(), v1alpha1.ReplicaReady, v1alpha1.ReasonFound))
	d.look(0)
	v := &v1alpha1.Volume{}
	if err := d.Client.Get(t.Context(), client.ObjectKey{Name: "pvc-u"}, v); err != nil || v.Reserved() {
		t.Errorf("marked: %v, %v", v.Reserved(), err)
	}
}

func TestAMarkThatCannotBeTakenOffIsAnErrorUnlessTheVolumeChanges(t *testing.T) {
	found := saying(reserved(), v1alpha1.ReplicaReady, v1alpha1.ReasonFound)
	s := lagging.New(t, found)
	r := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: s.Live()}
	s.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	s.Before = nil
	s.Hold()
	write(t, s, func(v *v1alpha1.Volume) { v.Status.Replicas[0].Message = "news" })
	must(t, look(t, r, "pvc-u")) // the event of the other write brings it back
	must(t, s.Others().Delete(t.Context(), found))
	must(t, look(t, r, "pvc-u"))
}

func TestAVolumeThatMayHaveDataIsKeptWhenItsClaimIsGone(t *testing.T) {
	adopted := saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace)
	adopted.Spec.Adopted, adopted.Status.Replicas = true, nil
	for name, tc := range map[string]struct {
		volume *v1alpha1.Volume
		claims []client.Object
		kept   bool
	}{
		"ready":                                  {volume: reserved(), kept: true},
		"the volume group was renamed":           {volume: saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict), kept: true},
		"found":                                  {volume: saying(reserved(), v1alpha1.ReplicaReady, v1alpha1.ReasonFound), kept: true},
		"adopted, and the node has not reported": {volume: adopted, kept: true},
		"there was no room":                      {volume: saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace)},
		"there was no room, and the claim waits": {volume: saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace), kept: true,
			claims: []client.Object{claimed(func(*corev1.PersistentVolumeClaim) {})}},
		"there was no room, and the claim has another volume": {volume: saying(reserved(), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace),
			claims: []client.Object{standingFor("pv", "pvc-other"), claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" })}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.volume.Annotations = nil
			tc.volume.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg"}}
			server := lagging.New(t, append(tc.claims, tc.volume)...)
			server.Index(&corev1.PersistentVolume{}, HandleIndex, Handles(driver.Local()))
			r := &Claims{Driver: driver.Local(), Client: server.Client(), Live: server.Live(), Clock: clocktesting.NewFakePassiveClock(time.Unix(1e6, 0)), Delay: time.Minute}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: tc.volume.Name}}); err != nil {
				t.Fatal(err)
			}
			if kept := !apierrors.IsNotFound(server.Live().Get(t.Context(), client.ObjectKey{Name: tc.volume.Name}, tc.volume)); kept != tc.kept {
				t.Errorf("kept: %v", kept)
			}
		})
	}
}
