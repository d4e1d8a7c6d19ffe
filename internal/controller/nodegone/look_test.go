package nodegone

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

// graveyard is a cluster of two live nodes and of nodes that are gone for two days. Each
// gone node has a claim, of a class that keeps claims.
func graveyard(t *testing.T, dead int) (*world, func(time.Duration)) {
	t.Helper()
	objects := []client.Object{gonetest.Class(v1alpha1.NodeGoneKeep)}
	var names []string
	for i := range dead {
		name := fmt.Sprintf("dead-%d", i)
		v, pv, c := lonely(name), gonetest.PersistentVolume(), gonetest.Claim()
		pv.Name, pv.UID, pv.Spec.CSI.VolumeHandle = v.Name, types.UID("pv-"+name), v.Name
		c.Name, c.UID, c.Spec.VolumeName = name, types.UID("c-"+name), v.Name
		pv.Spec.ClaimRef.Name, pv.Spec.ClaimRef.UID = c.Name, c.UID
		objects, names = append(objects, v, pv, c), append(names, name)
	}
	for i := range 8 {
		objects = append(objects, node(fmt.Sprintf("alive-%d", i)))
	}
	w := newWorld(t, objects...)
	wait := func(d time.Duration) {
		t.Helper()
		w.clock.SetTime(w.clock.Now().Add(d))
		for _, name := range names {
			if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	wait(0)
	wait(48 * hour)
	return w, wait
}

// release tells the class to release claims, at once or after a delay.
func (w *world) release(after time.Duration) {
	w.t.Helper()
	c := &v1alpha1.PoolClass{}
	if err := w.Get(w.t.Context(), types.NamespacedName{Name: "fast"}, c); err != nil {
		w.t.Fatal(err)
	}
	c.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: v1alpha1.NodeGoneReleaseClaims, After: &metav1.Duration{Duration: after}}
	if err := w.Update(w.t.Context(), c); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wantClaims(want int) {
	w.t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := w.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	if len(list.Items) != want {
		w.t.Errorf("%d claims are left, want %d", len(list.Items), want)
	}
}

func TestAClassThatIsToldToReleaseClaimsLaterBeginsToCountThen(t *testing.T) {
	w, wait := graveyard(t, 2)
	w.release(hour)
	wait(time.Second)
	w.wantClaims(2)
	wait(hour - time.Second)
	w.wantClaims(2)
	wait(time.Second)
	w.wantClaims(0)
}

func TestManyNodesThatWentLongAgoAreACrowdOnceTheirClaimsAreToGo(t *testing.T) {
	w, wait := graveyard(t, 4)
	w.release(0)
	for range 3 {
		wait(hour)
	}
	w.wantClaims(4)
}

func TestNodesThatWentLongAgoAreNoCrowdWhileTheirClaimsStay(t *testing.T) {
	exportOf := func(name string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: lonely(name).Name}}
	}
	replace := func(w *world, change func(*corev1.PersistentVolume)) func(string) {
		return func(name string) {
			pv := exportOf(name)
			if err := w.Get(w.t.Context(), client.ObjectKeyFromObject(pv), pv); err != nil {
				w.t.Fatal(err)
			}
			w.drop(pv)
			pv.ResourceVersion = ""
			change(pv)
			w.put(pv)
		}
	}
	for name, decay := range map[string]func(*world) func(string){
		"the PersistentVolumes were deleted": func(w *world) func(string) { return func(name string) { w.drop(exportOf(name)) } },
		"the PersistentVolumes have no claim": func(w *world) func(string) {
			return replace(w, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })
		},
		"the PersistentVolumes are of another driver": func(w *world) func(string) {
			return replace(w, func(pv *corev1.PersistentVolume) { pv.Spec.CSI.Driver = "theirs" })
		},
		"the PersistentVolumes are of no driver": func(w *world) func(string) {
			return replace(w, func(pv *corev1.PersistentVolume) { pv.Spec.CSI = nil })
		},
		"new claims have the names of the old claims": func(w *world) func(string) {
			return func(name string) {
				c := gonetest.Claim()
				c.Name, c.Spec.VolumeName = name, exportOf(name).Name
				w.drop(c)
				c.UID = "another"
				w.put(c)
			}
		},
		"the Volumes are being deleted": func(w *world) func(string) { return func(name string) { w.drop(lonely(name)) } },
		"the class keeps claims":        func(w *world) func(string) { w.keep(); return func(string) {} },
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := graveyard(t, 4)
			w.release(hour)
			change := decay(w)
			for i := range 4 {
				change(fmt.Sprintf("dead-%d", i))
			}
			quick, v := gonetest.Class(v1alpha1.NodeGoneReleaseClaims), gonetest.Volume()
			quick.Name, v.Spec.PoolClass = "quick", "quick"
			for _, o := range []client.Object{quick, v, gonetest.PersistentVolume(), gonetest.Claim()} {
				w.put(o)
			}
			w.wait(0)
			if m := w.mark(); m.Reason != v1alpha1.ReasonReleasePending {
				t.Errorf("another node that goes is %+v", m)
			}
		})
	}
}

func TestPersistentVolumesOfOtherDriversDoNotHideAVolumesClaim(t *testing.T) {
	theirs, local := gonetest.PersistentVolume(), gonetest.PersistentVolume()
	theirs.Name, theirs.UID, theirs.Spec.CSI.Driver = "theirs", "theirs", "theirs"
	local.Name, local.UID, local.Spec.CSI = "local", "local", nil
	w := newWorld(t, append(shop(), theirs, local)...)
	w.wait(0)
	w.expect("True ReleasePending", true)
}

func TestAVolumeWhosePersistentVolumeIsForNoClaimStaysAsItIs(t *testing.T) {
	free := gonetest.PersistentVolume()
	free.Spec.ClaimRef = nil
	w := newWorld(t, gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), free, node("n2"), node("n3"))
	w.wait(0)
	w.wait(48 * hour)
	if m := w.mark(); m.Reason != v1alpha1.ReasonClaimKept {
		t.Errorf("%+v", m)
	}
}

// keep tells the class to keep claims.
func (w *world) keep() {
	w.t.Helper()
	changed(w, gonetest.Class(v1alpha1.NodeGoneKeep), func(c *v1alpha1.PoolClass) { c.Spec.OnNodeGone.Policy = v1alpha1.NodeGoneKeep })
}

func TestAClaimThatGoesIsToldOfThoughItsClassKeepsClaimsByNow(t *testing.T) {
	used := gonetest.Claim()
	used.Finalizers = []string{"kubernetes.io/pvc-protection"}
	w := newWorld(t, gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), gonetest.PersistentVolume(), used, node("n2"), node("n3"))
	w.wait(0)
	w.wait(hour)
	w.expect("True ReleasingClaim", true)
	w.keep()
	changed(w, gonetest.Claim(), func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
	w.wait(0)
	w.expect("True ClaimReleased", false)
}
