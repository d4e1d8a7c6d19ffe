package nodegone

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

// due is a world in which the delay of the volume's mark is over.
func due(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, shop()...)
	w.wait(0)
	w.expect("True ReleasePending", true)
	w.clock.SetTime(w.clock.Now().Add(hour))
	return w
}

// changed reads an object, changes it and writes it.
func changed[T client.Object](w *world, o T, change func(T)) {
	w.t.Helper()
	if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		w.t.Fatal(err)
	}
	change(o)
	if err := w.Update(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// replaced deletes the PersistentVolume and makes it again with a change, for the same claim.
func replaced(change func(*corev1.PersistentVolumeSpec)) func(*world) {
	return func(w *world) {
		w.drop(gonetest.PersistentVolume())
		pv := gonetest.PersistentVolume()
		change(&pv.Spec)
		w.put(pv)
	}
}

func TestAClaimStaysIfTheReasonForItsReleaseNoLongerHolds(t *testing.T) {
	for name, others := range map[string]func(w *world){
		"the node is back": func(w *world) { w.put(node(gonetest.Node)) },
		"the PersistentVolume belongs to another claim by now": func(w *world) {
			changed(w, gonetest.PersistentVolume(), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
		},
		"the PersistentVolume is gone by now":              func(w *world) { w.drop(gonetest.PersistentVolume()) },
		"the PersistentVolume is of no driver by now":      replaced(func(s *corev1.PersistentVolumeSpec) { s.CSI = nil }),
		"the PersistentVolume is of another driver by now": replaced(func(s *corev1.PersistentVolumeSpec) { s.CSI.Driver = "theirs" }),
		"the PersistentVolume is of another volume by now": replaced(func(s *corev1.PersistentVolumeSpec) { s.CSI.VolumeHandle = "pvc-x" }),
		"the PersistentVolume names no claim by now":       replaced(func(s *corev1.PersistentVolumeSpec) { s.ClaimRef = nil }),
		"the Volume is on another node by now": func(w *world) {
			v := gonetest.Volume()
			if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
				w.t.Fatal(err)
			}
			v.Spec.Replicas[0].Node = "n2"
			if err := w.Update(w.t.Context(), v); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := due(t)
			w.server.Hold() // the watches show none of the changes
			others(w)
			w.run()
			c := gonetest.Claim()
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || c.DeletionTimestamp != nil {
				t.Errorf("it was deleted: %v", err)
			}
		})
	}
}

// Only the live read of the Node prevents the deletion: neither the claim nor its
// PersistentVolume changes when a node comes back.
func TestAClaimStaysIfItsNodeIsBackAndTheWatchDoesNotShowIt(t *testing.T) {
	w := due(t)
	w.server.Hold(&corev1.Node{})
	w.put(node(gonetest.Node))
	w.run()
	w.expect("False NodeReturned", true)
}

// beforeDeletion runs a function just before the process deletes an object.
func (w *world) beforeDeletion(do func()) {
	count := w.server.Before
	w.server.Before = func(wr lagging.Write) error {
		if wr.Verb == "delete" && do != nil {
			once := do
			do = nil
			once()
		}
		return count(wr)
	}
}

func TestAClaimThatTookTheNameOfADeletedOneStays(t *testing.T) {
	w := due(t)
	w.beforeDeletion(func() {
		w.drop(gonetest.Claim())
		again := gonetest.Claim()
		again.UID = "another"
		w.put(again)
	})
	w.run()
	c := gonetest.Claim()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || c.UID != "another" {
		t.Errorf("claim %s: %v", c.UID, err)
	}
}

func TestAClaimThatOthersDeleteFirstIsReleasedAllTheSame(t *testing.T) {
	w := due(t)
	w.beforeDeletion(func() { w.drop(gonetest.Claim()) })
	w.run()
	w.expect("True ClaimReleased", false)
}

func TestAClaimIsReleasedThoughItsPersistentVolumeIsFreedMeanwhile(t *testing.T) {
	w := due(t)
	count := w.server.After
	w.server.After = func(wr lagging.Write) error {
		if wr.Verb == "delete" {
			changed(w, gonetest.PersistentVolume(), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" })
		}
		return count(wr)
	}
	w.run()
	w.expect("True ClaimReleased", false)
}

func TestAClaimThatIsWrittenMeanwhileIsLookedAtAnew(t *testing.T) {
	w := due(t)
	kept := false
	w.beforeDeletion(func() {
		changed(w, gonetest.Claim(), func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"team": "shop"} })
		w.put(node(gonetest.Node))
		kept = true
	})
	w.run()
	if !kept || !w.ending().Claim {
		t.Errorf("it was to be deleted: %v; it is there: %v", kept, w.ending().Claim)
	}
}

func TestAPersistentVolumeIsRetainedAsItWasRead(t *testing.T) {
	w := due(t)
	count := w.server.Before
	var clashed bool
	w.server.Before = func(wr lagging.Write) error {
		if wr.Verb == "patch" && !clashed {
			clashed = true
			changed(w, gonetest.PersistentVolume(), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" })
		}
		return count(wr)
	}
	w.run()
	pv := gonetest.PersistentVolume()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
		t.Fatal(err)
	}
	if got := w.ending(); !clashed || pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || !got.Claim {
		t.Errorf("clashed: %v, policy %s, claim there: %v", clashed, pv.Spec.PersistentVolumeReclaimPolicy, got.Claim)
	}
}

func TestAVolumeThatIsGoneIsLeftAlone(t *testing.T) {
	w := due(t)
	w.server.Hold()
	v := gonetest.Volume()
	changed(w, v, func(o *v1alpha1.Volume) { o.Finalizers = nil })
	w.drop(v)
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}}); err != nil {
		t.Error(err)
	}
	c := gonetest.Claim()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		t.Errorf("its claim: %v", err)
	}
}
