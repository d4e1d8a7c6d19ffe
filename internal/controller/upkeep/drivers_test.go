package upkeep

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/volumetest"
)

// foreign is a second driver that the same process serves.
func foreign() driver.Driver {
	d := driver.Local()
	d.Name = "other.example.org"
	return d
}

// theirs makes a Volume the other driver's.
func theirs(v *v1alpha1.Volume) { v.Spec.Driver = foreign().Name }

// reconcilersOf returns the reconcilers of a driver, as its controller makes them, by the name of an
// object that each of them would write for that driver.
func reconcilersOf(d driver.Driver, s *lagging.Server) map[string]reconcile.Reconciler {
	c, live, clock := d.View(s.Client()), d.Live(s.Live()), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	return map[string]reconcile.Reconciler{
		"pvc-u":      &Claims{Driver: d, Client: c, Live: live, Clock: clock, Delay: time.Minute},
		"pvc-idle":   &Reservations{Driver: d, Client: c, Live: live, Clock: clock, Delay: time.Minute},
		"pvc-ending": &Volumes{Client: c, Live: live, Nodes: volumetest.Nodes{}},
		"snap-s":     &Snapshots{Client: c, Live: live, Nodes: volumetest.Nodes{}},
	}
}

// otherDrivers are objects of the other driver, each of which its upkeep writes.
func otherDrivers() []client.Object {
	idle := unclaimed(theirs, func(v *v1alpha1.Volume) { v.Name, v.Annotations = "pvc-idle", reserved().Annotations })
	ending := unclaimed(theirs, func(v *v1alpha1.Volume) {
		v.Name, v.DeletionTimestamp, v.Finalizers = "pvc-ending", &metav1.Time{Time: time.Unix(1, 0)}, []string{v1alpha1.VolumeFinalizer}
		v.Spec.Replicas = nil
	})
	snapshot := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: "snap-s"}, Spec: v1alpha1.SnapshotSpec{Driver: foreign().Name}}
	return []client.Object{unclaimed(theirs), idle, ending, snapshot}
}

func TestTheUpkeepOfADriverLeavesTheObjectsOfTheOtherOneAlone(t *testing.T) {
	for name, test := range map[string]struct {
		driver driver.Driver
		writes bool
	}{
		"the local driver": {driver.Local(), false},
		"the other one":    {foreign(), true}, // or this test would show nothing
	} {
		for object := range reconcilersOf(test.driver, lagging.New(t)) {
			t.Run(name+" and "+object, func(t *testing.T) {
				s := lagging.New(t, otherDrivers()...)
				s.Index(&corev1.PersistentVolume{}, HandleIndex, Handles(test.driver))
				writes := 0
				s.Before = func(lagging.Write) error { writes++; return nil }
				must(t, look(t, reconcilersOf(test.driver, s)[object], object))
				if (writes > 0) != test.writes {
					t.Errorf("%d writes", writes)
				}
			})
		}
	}
}

// A PersistentVolume of the other driver that names the volume is no reason to keep it.
func TestAPersistentVolumeOfAnotherDriverDoesNotReferToAVolume(t *testing.T) {
	pv := exporting("other")
	pv.Spec.CSI.Driver = foreign().Name
	s, r := orphanage(t, unclaimed(), pv)
	must(t, look(t, r, "pvc-u"))
	if there(t, s, unclaimed()) {
		t.Error("it is kept")
	}
}
