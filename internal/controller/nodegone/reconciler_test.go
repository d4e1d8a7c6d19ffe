package nodegone

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// wait lets time pass and reconciles once.
func (w *world) wait(d time.Duration) {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(d))
	w.run()
}

// expect checks what the volume says and whether its claim is there.
func (w *world) expect(mark string, claim bool) {
	w.t.Helper()
	if got := w.ending(); got.Mark != mark || got.Claim != claim {
		w.t.Errorf("the volume says %q, want %q; its claim is there: %v", got.Mark, mark, got.Claim)
	}
}

func (w *world) put(o client.Object) {
	w.t.Helper()
	if err := w.Create(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// drop deletes something as others do.
func (w *world) drop(o client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// lonely is a volume that only shows that its node is gone.
func lonely(node string) *v1alpha1.Volume {
	v := volume()
	v.Name, v.UID = "vol-"+node, types.UID("v-"+node)
	v.Labels = map[string]string{v1alpha1.ReplicaLabel(node): ""}
	v.Spec.Replicas[0].Node, v.Status.Replicas[0].Node = node, node
	return v
}

func TestNodesThatComeBackOneByOneDoNotLeaveTheLastForLost(t *testing.T) {
	objects := append(shop(), node("n4"), node("n5"), node("n6"), node("n7"))
	for _, name := range []string{"a", "b", "c"} {
		objects = append(objects, lonely(name))
	}
	w := newWorld(t, objects...)
	w.wait(0)
	w.expect("Unknown TooManyNodesGone", true)
	w.wait(10 * hour)
	w.expect("Unknown TooManyNodesGone", true)
	w.put(node("a"))
	w.wait(0)
	w.expect("True ReleasePending", true)
	w.wait(hour - time.Second)
	w.expect("True ReleasePending", true)
	w.wait(2 * time.Second)
	w.expect("True ClaimReleased", false)
}

func TestAClaimOfTheSameNameIsNotTheOneThatWasBound(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	w.drop(claim())
	again := claim()
	again.UID = "another"
	w.put(again)
	w.wait(10 * hour)
	w.expect("True ClaimKept", true)
}

func TestAnAbsenceWithABreakIsNotTakenForOne(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	w.put(node(gone))
	w.before = w.writes + 1 // that the node is back is not marked
	w.clock.SetTime(start.Add(hour - time.Minute))
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gone}}); !errors.Is(err, errKilled) {
		t.Fatalf("error %v", err)
	}
	w.before, w.killed = 0, false // by a fault, and the process lives
	w.drop(node(gone))
	w.wait(time.Minute)
	w.expect("True ReleasePending", true)
	w.wait(settle)
	w.expect("True ClaimReleased", false)
}

func TestAClaimThatPodsUseIsDeletedOnce(t *testing.T) {
	used := claim()
	used.Finalizers = []string{"kubernetes.io/pvc-protection"}
	objects := []client.Object{volume(), class(v1alpha1.NodeGoneReleaseClaims), persistentVolume(), used, node("n2"), node("n3")}
	w := newWorld(t, objects...)
	w.wait(0)
	w.wait(hour)
	w.expect("True ReleasingClaim", true)
	writes := w.writes
	w.wait(hour)
	w.expect("True ReleasingClaim", true)
	if w.writes != writes {
		t.Errorf("%d writes while pods are waited for", w.writes-writes)
	}
}

func TestWhatIsNotThereOrKeptIsNotWrittenAgainAndAgain(t *testing.T) {
	other := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	other.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "theirs", VolumeHandle: id}
	w := newWorld(t, volume(), class(v1alpha1.NodeGoneReleaseClaims), other, node("n2"), node("n3"))
	w.wait(0)
	writes := w.writes
	for range 3 {
		w.wait(hour)
	}
	if writes != 1 || w.writes != writes {
		t.Errorf("%d writes at first, %d afterwards; want 1 and none", writes, w.writes-writes)
	}
}

func TestAProcessThatSawTheBeginningBelievesNoOlderMark(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	v := &v1alpha1.Volume{}
	if err := w.Get(t.Context(), types.NamespacedName{Name: id}, v); err != nil {
		t.Fatal(err)
	}
	v.Status.Conditions[0].LastTransitionTime = metav1.NewTime(start.Add(-10 * hour)) // as if the clock had jumped
	if err := w.Status().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	w.wait(hour - time.Second)
	w.expect("True ReleasePending", true)
	w.wait(time.Second)
	w.expect("True ClaimReleased", false)
}

// graveyard is a cluster of two nodes and as many others that are gone for two days, with a
// claim each, of a class that keeps claims.
func graveyard(t *testing.T, dead int) (*world, func(time.Duration)) {
	t.Helper()
	objects := []client.Object{class(v1alpha1.NodeGoneKeep)}
	var names []string
	for i := range dead {
		name := fmt.Sprintf("dead-%d", i)
		v, pv, c := lonely(name), persistentVolume(), claim()
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
