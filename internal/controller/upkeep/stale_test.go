package upkeep

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

// look reconciles an object of a name once.
func look(t *testing.T, r reconcile.Reconciler, name string) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	return err
}

// there reports whether the API server has an object.
func there(t *testing.T, s *lagging.Server, o client.Object) bool {
	t.Helper()
	err := s.Live().Get(t.Context(), client.ObjectKeyFromObject(o), o)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func aNode() *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}} }

func aReport() *v1alpha1.StorageNode {
	return &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "first"}}
}

func TestWhichReportsGo(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		prepare func(t *testing.T, s *lagging.Server)
		stays   bool
	}{
		"the Node is gone": {objects: []client.Object{aReport()}},
		"the Node exists":  {objects: []client.Object{aReport(), aNode()}, stays: true},
		"the Node came, and the cache does not show the Node yet": {
			[]client.Object{aReport()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), aNode()))
			}, true},
		"the Node went, and the cache still shows the Node": {
			[]client.Object{aReport(), aNode()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Delete(t.Context(), aNode()))
			}, true},
		"a new report has the name of the old report": {
			[]client.Object{aReport()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Delete(t.Context(), aReport()))
				again := aReport()
				again.UID = "second"
				must(t, s.Others().Create(t.Context(), again))
			}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := lagging.New(t, test.objects...)
			s.DeletedByUID(&v1alpha1.StorageNode{}) // even if the agent has reported meanwhile
			if test.prepare != nil {
				test.prepare(t, s)
			}
			must(t, look(t, &StorageNodes{Client: s.Client(), Live: s.Live()}, "n"))
			if there(t, s, aReport()) != test.stays {
				t.Errorf("the report stays: %v, want %v", !test.stays, test.stays)
			}
		})
	}
}

// unclaimed is a Volume of the claim shop/data. No node has ever reported on it.
func unclaimed(options ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := reserved()
	v.Annotations, v.Status.Replicas = nil, nil
	v.CreationTimestamp = metav1.NewTime(time.Unix(100, 0))
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg0"}}
	for _, option := range options {
		option(v)
	}
	return v
}

func carved(v *v1alpha1.Volume) {
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n", State: v1alpha1.ReplicaReady, Capacity: resource.NewQuantity(1, resource.BinarySI)}}
}

func theClaim() *corev1.PersistentVolumeClaim {
	return claimed(func(*corev1.PersistentVolumeClaim) {})
}

// bound is that claim, bound to a PersistentVolume that stands for the Volume.
func bound() *corev1.PersistentVolumeClaim {
	return claimed(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "theirs" })
}

// exporting is a PersistentVolume of some name that stands for the Volume.
func exporting(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: "pvc-u"}
	return pv
}

// orphanage is a Claims reconciler ten minutes after the Volume was made.
func orphanage(t *testing.T, objects ...client.Object) (*lagging.Server, *Claims) {
	t.Helper()
	s := lagging.New(t, objects...)
	s.Index(&corev1.PersistentVolume{}, HandleIndex, Handles(driver.Local()))
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return s, &Claims{Driver: driver.Local(), Client: s.Client(), Live: s.Live(), Clock: clock, Delay: time.Minute}
}

func TestWhichUnclaimedVolumesGo(t *testing.T) {
	for name, test := range map[string]struct {
		objects  []client.Object
		prepare  func(t *testing.T, s *lagging.Server)
		stays    bool
		orphaned bool
	}{
		"the claim is gone":                             {objects: []client.Object{unclaimed()}},
		"the claim exists":                              {objects: []client.Object{unclaimed(), theClaim()}, stays: true},
		"a new claim has the name of the old claim":     {objects: []client.Object{unclaimed(), claimed(func(c *corev1.PersistentVolumeClaim) { c.UID = "w" })}},
		"a PersistentVolume refers to the volume":       {objects: []client.Object{unclaimed(), exporting("theirs")}, stays: true},
		"a PersistentVolume has the name of the volume": {objects: []client.Object{unclaimed(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u"}}}, stays: true},
		"the volume has data":                           {objects: []client.Object{unclaimed(carved)}, stays: true, orphaned: true},
		"the volume is young":                           {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.CreationTimestamp = metav1.NewTime(time.Unix(950, 0)) })}, stays: true},
		"the volume is young and on no node": {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) {
			v.CreationTimestamp = metav1.NewTime(time.Unix(950, 0))
			v.Spec.Replicas = nil
		})}},
		"the volume is reserved":                  {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Annotations = reserved().Annotations })}, stays: true},
		"the volume was made for no claim":        {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Spec.ClaimRef = nil })}, stays: true},
		"the volume was made for a claim by name": {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Spec.ClaimRef.UID = "" })}, stays: true},
		"the claim came, and the cache does not show the claim yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), theClaim()))
			}, true, false},
		"the PersistentVolume came, and the cache does not show the PersistentVolume yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), exporting("pvc-u")))
			}, true, false},
		"the node has carved the volume, and the cache does not show the data yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				write(t, s, carved)
			}, true, false},
		"the node carves the volume just before the deletion": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Before = func(lagging.Write) error { write(t, s, carved); return nil }
			}, true, false},
		"a new Volume has the name of the old Volume": {
			[]client.Object{unclaimed()}, replace, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := orphanage(t, test.objects...)
			if test.prepare != nil {
				test.prepare(t, s)
			}
			must(t, look(t, r, "pvc-u"))
			v := unclaimed()
			if there(t, s, v) != test.stays || test.stays && (meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionOrphaned) != nil) != test.orphaned {
				t.Errorf("it stays: want %v; conditions %+v", test.stays, v.Status.Conditions)
			}
		})
	}
}

// write changes the Volume's status as its node does.
func write(t *testing.T, s *lagging.Server, change func(*v1alpha1.Volume)) {
	t.Helper()
	v := unclaimed()
	if there(t, s, v) {
		change(v)
		must(t, s.Others().Status().Update(t.Context(), v))
	}
}

// replace deletes the Volume and makes another of its name, while the cache shows the first.
func replace(t *testing.T, s *lagging.Server) {
	t.Helper()
	s.Hold()
	must(t, s.Others().Delete(t.Context(), unclaimed()))
	again := unclaimed()
	again.UID = "another"
	must(t, s.Others().Create(t.Context(), again))
}

func TestAVolumeThatIsWantedAgainIsNoOrphan(t *testing.T) {
	s, r := orphanage(t, unclaimed(carved))
	must(t, look(t, r, "pvc-u"))
	for name, wanted := range map[string]client.Object{"a claim": theClaim(), "a PersistentVolume": exporting("theirs")} {
		must(t, s.Others().Create(t.Context(), wanted))
		must(t, look(t, r, "pvc-u"))
		v := unclaimed()
		if !there(t, s, v) || !meta.IsStatusConditionFalse(v.Status.Conditions, v1alpha1.ConditionOrphaned) {
			t.Errorf("%s: %+v", name, v.Status.Conditions)
		}
		must(t, s.Others().Delete(t.Context(), wanted))
		must(t, look(t, r, "pvc-u"))
		if v := unclaimed(); !there(t, s, v) || !meta.IsStatusConditionTrue(v.Status.Conditions, v1alpha1.ConditionOrphaned) {
			t.Errorf("without %s: %+v", name, v.Status.Conditions)
		}
	}
}

func TestAReservationThatIsUsedMeanwhileStays(t *testing.T) {
	selected := func(t *testing.T, s *lagging.Server) {
		t.Helper()
		c := theClaim()
		there(t, s, c)
		c.Annotations = map[string]string{schedule.SelectedNode: "n"}
		must(t, s.Others().Update(t.Context(), c))
	}
	for name, use := range map[string]func(t *testing.T, s *lagging.Server){
		"a scheduler chose a node for the claim, and the cache does not show the choice yet": func(t *testing.T, s *lagging.Server) { s.Hold(); selected(t, s) },
		"the claim was bound to a PersistentVolume that the cache does not show yet": func(t *testing.T, s *lagging.Server) {
			s.Hold()
			c := theClaim()
			there(t, s, c)
			c.Spec.VolumeName = "theirs"
			must(t, s.Others().Update(t.Context(), c))
			must(t, s.Others().Create(t.Context(), exporting("theirs")))
		},
		"the PersistentVolume came, and the cache does not show the PersistentVolume yet": func(t *testing.T, s *lagging.Server) {
			s.Hold()
			must(t, s.Others().Create(t.Context(), exporting("pvc-u")))
		},
		"a call returned the volume, and the cache does not show the answer yet": func(t *testing.T, s *lagging.Server) {
			s.Hold()
			publish(t, s)
		},
		"a call returns the volume just before the write": func(t *testing.T, s *lagging.Server) {
			s.Before = func(lagging.Write) error { publish(t, s); return nil }
		},
		"a new Volume has the name of the old Volume": replace,
	} {
		t.Run(name, func(t *testing.T) {
			s := lagging.New(t, reserved(), theClaim())
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			r := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: s.Live(), Clock: clock, Delay: time.Minute}
			must(t, look(t, r, "pvc-u"))
			clock.SetTime(clock.Now().Add(time.Minute))
			use(t, s)
			must(t, look(t, r, "pvc-u"))
			if v := reserved(); !there(t, s, v) || len(v.Spec.Replicas) == 0 {
				t.Error("it is gone, or off its node")
			}
		})
	}
}

// publish makes the write that CreateVolume makes before it returns a reservation.
func publish(t *testing.T, s *lagging.Server) {
	t.Helper()
	v := reserved()
	if there(t, s, v) {
		v.Annotations = nil
		must(t, s.Others().Update(t.Context(), v))
	}
}
