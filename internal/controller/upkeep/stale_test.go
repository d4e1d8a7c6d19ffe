package upkeep

import (
	"context"
	"errors"
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
	"berth.dev/berth/internal/schedule"
)

var errBroken = errors.New("the API server is broken")

// deaf is a reader of an API server that does not answer about one kind.
type deaf struct {
	client.Reader
	to client.Object
}

func (d deaf) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if sameKind(o, d.to) {
		return errBroken
	}
	return d.Reader.Get(ctx, key, o, opts...)
}

func sameKind(a, b client.Object) bool {
	switch a.(type) {
	case *corev1.Node:
		_, same := b.(*corev1.Node)
		return same
	case *corev1.PersistentVolumeClaim:
		_, same := b.(*corev1.PersistentVolumeClaim)
		return same
	case *corev1.PersistentVolume:
		_, same := b.(*corev1.PersistentVolume)
		return same
	}
	return false
}

// look reconciles an object of a name once.
func look(t *testing.T, r reconcile.Reconciler, name string) error {
	t.Helper()
	_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
	return err
}

// there is whether the API server has an object.
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
		"its Node is gone":  {objects: []client.Object{aReport()}},
		"its Node is there": {objects: []client.Object{aReport(), aNode()}, stays: true},
		"its Node came, and the cache does not show it yet": {
			[]client.Object{aReport()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), aNode()))
			}, true},
		"its Node went, and the cache shows it still": {
			[]client.Object{aReport(), aNode()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Delete(t.Context(), aNode()))
			}, true},
		"another report has its name by now": {
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
			s.DeletedByUID(&v1alpha1.StorageNode{}) // whatever the agent has said meanwhile
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

func TestAReportStaysWhereNobodyAnswersForItsNode(t *testing.T) {
	s := lagging.New(t, aReport())
	if err := look(t, &StorageNodes{Client: s.Client(), Live: deaf{s.Live(), &corev1.Node{}}}, "n"); !errors.Is(err, errBroken) || !there(t, s, aReport()) {
		t.Errorf("got %v", err)
	}
}

// unclaimed is a Volume of the claim shop/data that nobody has ever reported on.
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
	s.Index(&corev1.PersistentVolume{}, HandleIndex, Handle)
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return s, &Claims{Client: s.Client(), Live: s.Live(), Clock: clock, Delay: time.Minute}
}

func TestWhichUnclaimedVolumesGo(t *testing.T) {
	for name, test := range map[string]struct {
		objects  []client.Object
		prepare  func(t *testing.T, s *lagging.Server)
		stays    bool
		orphaned bool
	}{
		"its claim is gone":               {objects: []client.Object{unclaimed()}},
		"its claim is there":              {objects: []client.Object{unclaimed(), theClaim()}, stays: true},
		"a claim of the name is not its":  {objects: []client.Object{unclaimed(), claimed(func(c *corev1.PersistentVolumeClaim) { c.UID = "w" })}},
		"a PersistentVolume refers to it": {objects: []client.Object{unclaimed(), exporting("theirs")}, stays: true},
		"a PersistentVolume has its name": {objects: []client.Object{unclaimed(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u"}}}, stays: true},
		"it has data":                     {objects: []client.Object{unclaimed(carved)}, stays: true, orphaned: true},
		"it is young":                     {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.CreationTimestamp = metav1.NewTime(time.Unix(950, 0)) })}, stays: true},
		"it is young, and on no node": {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) {
			v.CreationTimestamp = metav1.NewTime(time.Unix(950, 0))
			v.Spec.Replicas = nil
		})}},
		"it is reserved":                  {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Annotations = reserved().Annotations })}, stays: true},
		"it was made for no claim":        {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Spec.ClaimRef = nil })}, stays: true},
		"it was made for a claim by name": {objects: []client.Object{unclaimed(func(v *v1alpha1.Volume) { v.Spec.ClaimRef.UID = "" })}, stays: true},
		"its claim came, and the cache does not show it yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), theClaim()))
			}, true, false},
		"its PersistentVolume came, and the cache does not show it yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				must(t, s.Others().Create(t.Context(), exporting("pvc-u")))
			}, true, false},
		"its node has carved it, and the cache does not show it yet": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Hold()
				write(t, s, carved)
			}, true, false},
		"its node carves it just before": {
			[]client.Object{unclaimed()}, func(t *testing.T, s *lagging.Server) {
				s.Before = func(lagging.Write) error { write(t, s, carved); return nil }
			}, true, false},
		"another Volume has its name by now": {
			[]client.Object{unclaimed()}, replace, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := orphanage(t, test.objects...)
			if test.prepare != nil {
				test.prepare(t, s)
			}
			must(t, look(t, r, "pvc-u"))
			v := unclaimed()
			if there(t, s, v) != test.stays || test.stays && meta.IsStatusConditionTrue(v.Status.Conditions, ConditionOrphaned) != test.orphaned {
				t.Errorf("it stays: want %v; conditions %+v", test.stays, v.Status.Conditions)
			}
		})
	}
}

// write is what the node reports.
func write(t *testing.T, s *lagging.Server, change func(*v1alpha1.Volume)) {
	t.Helper()
	v := unclaimed()
	if there(t, s, v) {
		change(v)
		must(t, s.Others().Status().Update(t.Context(), v))
	}
}

// replace makes another Volume of the name while the cache shows the one before.
func replace(t *testing.T, s *lagging.Server) {
	t.Helper()
	s.Hold()
	must(t, s.Others().Delete(t.Context(), unclaimed()))
	again := unclaimed()
	again.UID = "another"
	must(t, s.Others().Create(t.Context(), again))
}

func TestAVolumeStaysWhereNobodyAnswersForItsClaim(t *testing.T) {
	for name, to := range map[string]client.Object{"claim": &corev1.PersistentVolumeClaim{}, "PersistentVolume": &corev1.PersistentVolume{}} {
		t.Run(name, func(t *testing.T) {
			s, r := orphanage(t, unclaimed())
			r.Live = deaf{s.Live(), to}
			if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, unclaimed()) {
				t.Errorf("got %v", err)
			}
			tidy := &Reservations{Client: s.Client(), Live: r.Live, Clock: r.Clock, Delay: time.Minute}
			write(t, s, func(*v1alpha1.Volume) {})
			v := unclaimed()
			there(t, s, v)
			v.Annotations = reserved().Annotations
			must(t, s.Others().Update(t.Context(), v))
			if err := look(t, tidy, "pvc-u"); !errors.Is(err, errBroken) || !there(t, s, unclaimed()) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAVolumeThatIsWantedAgainIsNoOrphan(t *testing.T) {
	s, r := orphanage(t, unclaimed(carved))
	must(t, look(t, r, "pvc-u"))
	for name, wanted := range map[string]client.Object{"a claim": theClaim(), "a PersistentVolume": exporting("theirs")} {
		must(t, s.Others().Create(t.Context(), wanted))
		must(t, look(t, r, "pvc-u"))
		v := unclaimed()
		if !there(t, s, v) || !meta.IsStatusConditionFalse(v.Status.Conditions, ConditionOrphaned) {
			t.Errorf("%s: %+v", name, v.Status.Conditions)
		}
		must(t, s.Others().Delete(t.Context(), wanted))
		must(t, look(t, r, "pvc-u"))
		if v := unclaimed(); !there(t, s, v) || !meta.IsStatusConditionTrue(v.Status.Conditions, ConditionOrphaned) {
			t.Errorf("without %s: %+v", name, v.Status.Conditions)
		}
	}
}

func TestAReservationStaysWhoeverUsesItMeanwhile(t *testing.T) {
	selected := func(t *testing.T, s *lagging.Server) {
		t.Helper()
		c := theClaim()
		there(t, s, c)
		c.Annotations = map[string]string{schedule.SelectedNode: "n"}
		must(t, s.Others().Update(t.Context(), c))
	}
	for name, use := range map[string]func(t *testing.T, s *lagging.Server){
		"its claim got its node, and the cache does not show that yet": func(t *testing.T, s *lagging.Server) { s.Hold(); selected(t, s) },
		"its PersistentVolume came, and the cache does not show it yet": func(t *testing.T, s *lagging.Server) {
			s.Hold()
			must(t, s.Others().Create(t.Context(), exporting("pvc-u")))
		},
		"it was returned to its user, and the cache does not show that yet": func(t *testing.T, s *lagging.Server) {
			s.Hold()
			publish(t, s)
		},
		"it is returned to its user just before": func(t *testing.T, s *lagging.Server) {
			s.Before = func(lagging.Write) error { publish(t, s); return nil }
		},
		"another Volume has its name by now": replace,
	} {
		t.Run(name, func(t *testing.T) {
			s := lagging.New(t, reserved(), theClaim())
			clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			r := &Reservations{Client: s.Client(), Live: s.Live(), Clock: clock, Delay: time.Minute}
			must(t, look(t, r, "pvc-u"))
			clock.SetTime(clock.Now().Add(time.Minute))
			use(t, s)
			must(t, look(t, r, "pvc-u"))
			if !there(t, s, reserved()) {
				t.Error("it is gone")
			}
		})
	}
}

// publish is what CreateVolume does before it returns a reservation.
func publish(t *testing.T, s *lagging.Server) {
	t.Helper()
	v := reserved()
	if there(t, s, v) {
		v.Annotations = nil
		must(t, s.Others().Update(t.Context(), v))
	}
}
