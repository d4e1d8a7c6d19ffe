package nodegone

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone/gonetest"
	"berth.dev/berth/internal/driver"
)

// serving makes the world's process serve a driver.
func (w *world) serving(d driver.Driver) {
	w.r = &Reconciler{Driver: d, Client: w.server.Client(), Live: d.Live(named{w.server.Live()}), Clock: w.clock, Instance: "test"}
}

// soldBy is the shop with a volume of a driver, and a PersistentVolume of a driver.
func soldBy(volume, exported driver.Driver) []client.Object {
	objects := shop()
	for _, o := range objects {
		switch o := o.(type) {
		case *v1alpha1.Volume:
			o.Spec.Driver = volume.Name
		case *corev1.PersistentVolume:
			o.Spec.CSI.Driver = exported.Name
		}
	}
	return objects
}

func TestAClaimOfAnotherDriverStaysWhenItsNodeIsGone(t *testing.T) {
	other := driver.Local()
	other.Name = "other.example.org"
	for name, test := range map[string]struct {
		serves, volume, exported driver.Driver
		touched                  bool
		claim                    bool
	}{
		"the volume is the other driver's":                   {driver.Local(), other, other, false, true},
		"only the PersistentVolume is the other driver's":    {driver.Local(), driver.Local(), other, true, true},
		"the other driver is served":                         {other, other, other, true, false},
		"the other driver is served, and this volume is not": {other, driver.Local(), driver.Local(), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, soldBy(test.volume, test.exported)...)
			w.serving(test.serves)
			w.run()
			w.pass(hour)
			if got := w.ending(); got.Claim != test.claim || (w.writes > 0) != test.touched {
				t.Errorf("%d writes, ended as %+v", w.writes, got)
			}
		})
	}
}

// Three of five nodes are gone: that looks like a mistake, also if only another driver has
// volumes on two of them.
func TestTheVolumesOfAllDriversSayHowManyNodesAreGone(t *testing.T) {
	other := driver.Local()
	other.Name = "other.example.org"
	objects := shop()
	for _, on := range []string{"n4", "n5"} {
		v := gonetest.Volume()
		v.Name, v.UID, v.Labels, v.Spec.Driver = "pvc-on-"+on, types.UID(on), map[string]string{v1alpha1.ReplicaLabel(on): ""}, other.Name
		v.Spec.Replicas[0].Node, v.Status.Replicas[0].Node = on, on
		objects = append(objects, v)
	}
	w := newWorld(t, objects...)
	w.run()
	w.pass(hour)
	if got := w.ending(); !got.Claim {
		t.Errorf("the claim was released: %+v", got)
	}
}
