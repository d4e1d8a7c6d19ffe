package nodegone

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/decide/gone"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

// mark returns the volume's mark from the API server.
func (w *world) mark() metav1.Condition {
	w.t.Helper()
	v := &v1alpha1.Volume{}
	if err := w.Get(w.t.Context(), types.NamespacedName{Name: gonetest.ID}, v); err != nil {
		w.t.Fatal(err)
	}
	return gone.MarkOf(v)
}

func TestANodeThatIsGoneStaysSoSinceThenThoughItsClaimIsKeptForAnotherReason(t *testing.T) {
	w := newWorld(t, gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), node("n2"), node("n3"))
	w.wait(0)
	before := w.mark()
	w.keep()
	w.wait(hour)
	if m := w.mark(); m.Message == before.Message || !m.LastTransitionTime.Equal(&before.LastTransitionTime) {
		t.Errorf("before %+v, after %+v", before, m)
	}
}

// A count begins with a write. The process may not know that the write was done.
func TestACountWhoseBeginningWasNotAnsweredIsSeenFromThenOn(t *testing.T) {
	objects := shop()
	objects[1] = gonetest.Class(v1alpha1.NodeGoneKeep)
	w := newWorld(t, objects...)
	w.wait(0)
	w.wait(10 * hour)
	w.release(hour)
	answer := w.server.After
	w.server.After = func(wr lagging.Write) error {
		if wr.Verb == "update status" {
			w.server.After = answer
			return errAway
		}
		return answer(wr)
	}
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}}); !errors.Is(err, errAway) {
		t.Fatalf("error %v", err)
	}
	v := gonetest.Volume()
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(v), v); err != nil {
		t.Fatal(err)
	}
	v.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-10 * hour)) // as if the clock had jumped
	if err := w.Status().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	w.wait(0)
	w.expect("True ReleasePending", true)
	w.wait(gone.Settle)
	w.expect("True ClaimReleased", false)
}

func TestAProcessThatStartsAnewSeesTheAbsenceForAWhileBeforeItReleases(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	w.restart()
	w.wait(10 * hour)
	w.expect("True ReleasePending", true)
	w.wait(gone.Settle)
	w.expect("True ClaimReleased", false)
}

func TestAClaimIsReleasedNoSoonerAfterItsClassSaysSoForAProcessThatStartsAnew(t *testing.T) {
	objects := shop()
	objects[1] = gonetest.Class(v1alpha1.NodeGoneKeep)
	w := newWorld(t, objects...)
	w.wait(0)
	w.wait(10 * hour)
	w.release(hour)
	w.wait(0)
	w.expect("True ReleasePending", true)
	w.restart()
	w.wait(0)
	w.wait(hour - time.Second)
	w.expect("True ReleasePending", true)
	w.wait(time.Second)
	w.expect("True ClaimReleased", false)
}

func TestANodeIsLookedAtAgainWhenTheFirstOfItsVolumesIsDue(t *testing.T) {
	objects := []client.Object{gonetest.Class(v1alpha1.NodeGoneReleaseClaims), node("n2"), node("n3")}
	for name, exported := range map[string]bool{"pvc-1": true, "pvc-2": false, "pvc-3": true, "pvc-4": false} {
		v, pv, c := lonely(gonetest.Node), gonetest.PersistentVolume(), gonetest.Claim()
		v.Name, v.UID = name, types.UID(name)
		pv.Name, pv.UID, pv.Spec.CSI.VolumeHandle = name, types.UID("pv-"+name), name
		c.Name, c.UID, c.Spec.VolumeName = name, types.UID("c-"+name), name
		pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = c.Name, c.UID
		if objects = append(objects, v); exported {
			objects = append(objects, pv, c)
		}
		if name == "pvc-4" {
			v.Spec.PoolClass = "none"
		}
	}
	w := newWorld(t, objects...)
	result, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}})
	if err != nil || result.RequeueAfter != gone.LookSeldom {
		t.Errorf("it is looked at after %s, %v", result.RequeueAfter, err)
	}
}

func TestANodeThatIsThereCostsNoLookAtTheClusterAndIsNotRemembered(t *testing.T) {
	w := newWorld(t, append(shop(), lonely("n2"))...)
	w.wait(0)
	w.put(node(gonetest.Node))
	w.wait(0)
	b := &breaking{w: w}
	w.r.Client = breakingCache{w.r.Client, b}
	for _, name := range []string{"n2", gonetest.Node} {
		b.read = 0
		if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil || b.read != 1 {
			t.Errorf("%s: %d reads, %v", name, b.read, err)
		}
	}
	if len(w.r.seen) != 0 {
		t.Errorf("it remembers %v", w.r.seen)
	}
}
