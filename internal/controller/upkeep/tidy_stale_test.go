package upkeep

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
)

// kept is a kind whose finalizer, labels and entries a reconciler keeps.
type kept struct {
	make       func() client.Object
	reconciler func(c client.Client, live client.Reader) reconcile.Reconciler
	// report makes the node say that it has the object, or that it has let go of it.
	report func(o client.Object, has bool)
}

var kinds = map[string]kept{
	"volume": {
		make: func() client.Object {
			v := volume()
			v.Name, v.UID = "o", "first"
			return v
		},
		reconciler: func(c client.Client, live client.Reader) reconcile.Reconciler {
			return &Volumes{Client: c, Live: live, Nodes: everyone}
		},
		report: func(o client.Object, has bool) {
			state := v1alpha1.ReplicaGone
			if has {
				state = v1alpha1.ReplicaReady
			}
			o.(*v1alpha1.Volume).Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n", State: state}}
		},
	},
	"snapshot": {
		make: func() client.Object {
			s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: "o", UID: "first", Finalizers: []string{v1alpha1.SnapshotFinalizer}}}
			s.Labels = map[string]string{v1alpha1.ReplicaLabel("n"): ""}
			s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n", Pool: "vg"}}
			return s
		},
		reconciler: func(c client.Client, live client.Reader) reconcile.Reconciler { return &Snapshots{c, live, everyone} },
		report: func(o client.Object, has bool) {
			state := v1alpha1.SnapshotGone
			if has {
				state = v1alpha1.SnapshotReady
			}
			o.(*v1alpha1.Snapshot).Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "n", State: state}}
		},
	},
}

// say makes the node report.
func (k kept) say(t *testing.T, s *lagging.Server, has bool) {
	t.Helper()
	o := k.make()
	if !there(t, s, o) {
		t.Fatal("it is gone")
	}
	k.report(o, has)
	must(t, s.Others().Status().Update(t.Context(), o))
}

func TestAnObjectIsLetGoOfWhenNoNodeHasAnything(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(t *testing.T, k kept, s *lagging.Server)
		stays   bool
		again   bool
		failed  error
	}{
		"the node has removed the data": {func(t *testing.T, k kept, s *lagging.Server) { k.say(t, s, false) }, false, true, nil},
		"the node has the data":         {func(t *testing.T, k kept, s *lagging.Server) { k.say(t, s, true) }, true, true, nil},
		"the node has the data again, and the cache does not show the data": {func(t *testing.T, k kept, s *lagging.Server) {
			k.say(t, s, false)
			s.Hold()
			k.say(t, s, true)
		}, true, true, nil},
		"the API server is broken": {func(t *testing.T, k kept, s *lagging.Server) {
			k.say(t, s, false)
			s.Before = func(lagging.Write) error { return errBroken }
		}, true, false, errBroken},
		"the object is gone, and the cache still shows the object": {func(t *testing.T, k kept, s *lagging.Server) {
			k.say(t, s, false)
			s.Hold()
			o := k.make()
			there(t, s, o)
			o.SetFinalizers(nil)
			must(t, s.Others().Update(t.Context(), o))
		}, false, true, nil},
	} {
		for kind, k := range kinds {
			t.Run(kind+": "+name, func(t *testing.T) {
				s := lagging.New(t, k.make())
				must(t, s.Others().Delete(t.Context(), k.make()))
				test.prepare(t, k, s)
				result, err := k.reconciler(s.Client(), s.Live()).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "o"}})
				if there(t, s, k.make()) != test.stays || !errors.Is(err, test.failed) {
					t.Errorf("it stays: %v, %v", !test.stays, err)
				}
				if conflicts := kind == "volume" && name != "the node has removed the data" && name != "the node has the data"; !conflicts && (result.RequeueAfter == lookAgain) != test.again {
					t.Errorf("looks again in %s", result.RequeueAfter)
				}
			})
		}
	}
}

func TestAnObjectThatLostItsMarksGetsThemBack(t *testing.T) {
	for lost, lose := range map[string]func(o client.Object){
		"the finalizer":                func(o client.Object) { o.SetFinalizers(nil) },
		"the labels":                   func(o client.Object) { o.SetLabels(nil) },
		"the finalizer and the labels": func(o client.Object) { o.SetFinalizers(nil); o.SetLabels(nil) },
	} {
		for kind, k := range kinds {
			t.Run(kind+": "+lost, func(t *testing.T) {
				o := k.make()
				lose(o)
				s := lagging.New(t, o)
				result, err := k.reconciler(s.Client(), s.Live()).Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: "o"}})
				got := k.make()
				if _, labelled := got.GetLabels()[v1alpha1.ReplicaLabel("n")]; !there(t, s, got) || !labelled || len(got.GetFinalizers()) != 1 {
					t.Errorf("labels %v, finalizers %v", got.GetLabels(), got.GetFinalizers())
				}
				if err != nil || result.RequeueAfter != 0 {
					t.Errorf("looks again in %s, %v: an object that lives waits for no time", result.RequeueAfter, err)
				}
				s.Before = func(w lagging.Write) error { t.Errorf("%s though nothing was wrong", w.Verb); return nil }
				must(t, look(t, k.reconciler(s.Client(), s.Live()), "o"))
				must(t, look(t, k.reconciler(s.Client(), s.Live()), "another"))
			})
		}
	}
}

func TestAProblemIsWrittenOnce(t *testing.T) {
	v := volume(entry("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonDeviceMissing))
	v.Name = "o"
	s := lagging.New(t, v)
	r := &Volumes{Client: s.Client(), Nodes: everyone}
	must(t, look(t, r, "o"))
	c := (*metav1.Condition)(nil)
	if there(t, s, v) {
		c = meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionReady)
	}
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonDeviceMissing {
		t.Errorf("condition is %+v", c)
	}
	s.Before = func(w lagging.Write) error { t.Errorf("%s though it is said already", w.Verb); return nil }
	must(t, look(t, r, "o"))
}

func TestTheEntryOfANodeThatAVolumeHasLeftIsDropped(t *testing.T) {
	v := volume(entry("n", v1alpha1.ReplicaReady, "Carved"), entry("m", v1alpha1.ReplicaGone, "Removed"))
	v.Name = "o"
	s := lagging.New(t, v)
	r := &Volumes{Client: s.Client(), Nodes: everyone}
	s.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, r, "o"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	s.Before = nil
	must(t, look(t, r, "o"))
	if got := (&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "o"}}); !there(t, s, got) || len(got.Status.Replicas) != 1 || got.Entry("n") == nil {
		t.Errorf("%+v", got.Status.Replicas)
	}
}

func TestOnlyPersistentVolumesOfBerthAreOfAVolume(t *testing.T) {
	theirs := exporting("theirs")
	theirs.Spec.CSI.Driver = "theirs"
	none := exporting("none")
	none.Spec.CSI = nil
	for _, o := range []client.Object{theirs, none, &corev1.Node{}} {
		if got := Handles(driver.Local())(o); got != nil {
			t.Errorf("%T %s: %v", o, o.GetName(), got)
		}
	}
	if got := Handles(driver.Local())(exporting("ours")); len(got) != 1 || got[0] != "pvc-u" {
		t.Errorf("got %v", got)
	}
}

func TestAVolumeOrAReservationThatGoesIsNotLookedAtAnyMore(t *testing.T) {
	for name, options := range map[string][]func(*v1alpha1.Volume){"a volume": nil, "a reservation": {func(v *v1alpha1.Volume) { v.Annotations = reserved().Annotations }}} {
		t.Run(name, func(t *testing.T) {
			v := unclaimed(append(options, func(v *v1alpha1.Volume) { v.Finalizers = []string{v1alpha1.VolumeFinalizer} })...)
			s, claims := orphanage(t, v)
			must(t, s.Others().Delete(t.Context(), v))
			s.Before = func(w lagging.Write) error { t.Errorf("%s", w.Verb); return nil }
			tidy := &Reservations{Driver: driver.Local(), Client: s.Client(), Live: s.Live(), Clock: claims.Clock}
			for _, each := range []string{"pvc-u", "pvc-none"} {
				must(t, look(t, claims, each))
				must(t, look(t, tidy, each))
			}
		})
	}
}

func TestAnOrphanSaysOnceWhoseItWasAndHowToUseIt(t *testing.T) {
	s, r := orphanage(t, unclaimed(carved))
	must(t, look(t, r, "pvc-u"))
	v := unclaimed()
	there(t, s, v)
	if c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionOrphaned); c == nil ||
		!strings.Contains(c.Message, "claim shop/data is gone") || !strings.Contains(c.Message, "volumeHandle pvc-u") {
		t.Errorf("condition is %+v", c)
	}
	s.Before = func(w lagging.Write) error { t.Errorf("%s though it is said already", w.Verb); return nil }
	must(t, look(t, r, "pvc-u"))
}

func TestAnOrphanThatCannotBeMarkedIsAnError(t *testing.T) {
	s, r := orphanage(t, unclaimed(carved))
	s.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	s.Before = nil
	s.Hold()
	write(t, s, func(v *v1alpha1.Volume) { v.Status.Replicas[0].Message = "news" })
	must(t, look(t, r, "pvc-u")) // the event of the other write brings it back
	must(t, s.Others().Delete(t.Context(), unclaimed()))
	must(t, look(t, r, "pvc-u"))
}

func TestAVolumeOrAReportThatCannotBeDeletedIsAnError(t *testing.T) {
	s, r := orphanage(t, unclaimed(), aReport())
	s.DeletedByUID(&v1alpha1.StorageNode{})
	s.Before = func(lagging.Write) error { return errBroken }
	if err := look(t, r, "pvc-u"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	if err := look(t, &StorageNodes{Client: s.Client(), Live: s.Live()}, "n"); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
	s.Before = nil
	must(t, look(t, &StorageNodes{Client: s.Client(), Live: s.Live()}, "another"))
	s.Hold()
	must(t, s.Others().Delete(t.Context(), aReport()))
	must(t, s.Others().Delete(t.Context(), unclaimed()))
	must(t, look(t, &StorageNodes{Client: s.Client(), Live: s.Live()}, "n")) // it is gone already
	must(t, look(t, r, "pvc-u"))
}
