package nodegone

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone"
	"berth.dev/berth/internal/decide/gone/gonetest"
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

// drop deletes an object as another client does.
func (w *world) drop(o client.Object) {
	w.t.Helper()
	if err := w.Delete(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// lonely is a Volume without PersistentVolume and claim: it only shows that its node is gone.
func lonely(node string) *v1alpha1.Volume {
	v := gonetest.Volume()
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
	w.drop(gonetest.Claim())
	again := gonetest.Claim()
	again.UID = "another"
	w.put(again)
	w.wait(10 * hour)
	w.expect("True ClaimKept", true)
}

func TestAnAbsenceWithABreakIsNotTakenForOne(t *testing.T) {
	w := newWorld(t, shop()...)
	w.wait(0)
	w.put(node(gonetest.Node))
	w.before = w.writes + 1 // the write of the mark that the node is back fails
	w.clock.SetTime(start.Add(hour - time.Minute))
	if _, err := w.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: gonetest.Node}}); !errors.Is(err, errKilled) {
		t.Fatalf("error %v", err)
	}
	w.before, w.killed = 0, false // the write failed, but the process lives
	w.drop(node(gonetest.Node))
	w.wait(time.Minute)
	w.expect("True ReleasePending", true)
	w.wait(gone.Settle)
	w.expect("True ClaimReleased", false)
}

func TestAClaimThatPodsUseIsDeletedOnce(t *testing.T) {
	used := gonetest.Claim()
	used.Finalizers = []string{"kubernetes.io/pvc-protection"}
	objects := []client.Object{gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), gonetest.PersistentVolume(), used, node("n2"), node("n3")}
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

func TestAVolumeWithoutAPersistentVolumeIsMarkedOnlyOnce(t *testing.T) {
	other := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}}
	other.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "theirs", VolumeHandle: gonetest.ID}
	w := newWorld(t, gonetest.Volume(), gonetest.Class(v1alpha1.NodeGoneReleaseClaims), other, node("n2"), node("n3"))
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
	if err := w.Get(t.Context(), types.NamespacedName{Name: gonetest.ID}, v); err != nil {
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
