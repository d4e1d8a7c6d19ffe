package plugin

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
)

// restored makes a claim that is made from the snapshot "nightly", and its pod.
func (c *cluster) restored() *corev1.Pod {
	group := "snapshot.storage.k8s.io"
	c.claim("a", gi).Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "nightly"}
	return podWith("p", "a")
}

// cloned makes a claim that is made from claim "source", and its pod.
func (c *cluster) cloned() *corev1.Pod {
	c.claim("a", gi).Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "source"}
	return podWith("p", "a")
}

func TestTheRefusalOfAPodNamesTheNodeOfItsSource(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi), node("n2", 10*gi))
	c.objects.snapshots["nightly"] = "n2"
	pod := c.restored()
	state := c.begin(t, pod)
	status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n1"))
	want := `node(s) did not have the source: claim "a" is made from snapshot "nightly", which is on node n2`
	if status.Code() != fwk.UnschedulableAndUnresolvable || status.Message() != want {
		t.Errorf("got %v, want %q", status, want)
	}
	if status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n2")); !status.IsSuccess() {
		t.Errorf("where it is: %v", status)
	}
	if status := c.RunReservePluginsReserve(t.Context(), state, pod, "n2"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if pool, _ := c.Plugin.Book.Held(ledger.Claim("uid-a"), "n2"); pool != "vg0" {
		t.Errorf("room is held in %q, want the snapshot's pool", pool)
	}
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n2"); !status.IsSuccess() || len(c.creator.made) > 0 {
		t.Errorf("%v; %v were made, which only CreateVolume can", status, c.creator.made)
	}
}

// told runs PreFilter of a pod that has to wait, and returns why.
func (c *cluster) told(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	_, status := c.Plugin.PreFilter(t.Context(), framework.NewCycleState(), pod, nil)
	if status.Code() != fwk.UnschedulableAndUnresolvable {
		t.Fatalf("got %v, want a refusal", status)
	}
	return status.Message()
}

// moved is whether the one pod that waits would be woken.
func (c *cluster) moved(t *testing.T) bool {
	t.Helper()
	waiting := c.Refusals.Pods()
	if len(waiting) != 1 || !c.Refusals.Sourced() {
		t.Fatalf("%d pods wait, and for a source: %t", len(waiting), c.Refusals.Sourced())
	}
	moved, err := Moved(t.Context(), c.Plugin.Book, c.Plugin.Reader, waiting[0])
	must(t, err)
	return moved
}

func TestAPodThatWaitsForASnapshotIsWokenWhenThatChanges(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi), node("n2", gi/2))
	pod := c.restored()
	if told := c.told(t, pod); !strings.Contains(told, "which does not exist") {
		t.Errorf("told %q", told)
	}
	if c.moved(t) {
		t.Error("it is woken before anything has changed")
	}
	c.objects.snapshots["nightly"] = "n2"
	if !c.moved(t) {
		t.Error("it is not woken when the snapshot is there")
	}
	state := c.begin(t, pod) // it is ready, and where it is there is no room
	if status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n2")); status.IsSuccess() {
		t.Fatal("it fits")
	}
	if c.moved(t) {
		t.Error("it is woken although there is no room where the snapshot is")
	}
	c.objects.snapshots["nightly"] = "n1"
	if !c.moved(t) {
		t.Error("it is not woken when the snapshot is where there is room")
	}
	delete(c.objects.snapshots, "nightly")
	if !c.moved(t) {
		t.Error("it is not told that the snapshot is lost")
	}
	c.Refusals.Forget(pod)
	if c.Refusals.Sourced() {
		t.Error("it is remembered for ever")
	}
}

func TestAPodIsNotWokenByTheSourcesOfOtherPods(t *testing.T) {
	c := newCluster(t, node("n1", gi))
	c.claim("a", 2*gi)
	pod := podWith("p", "a")
	c.RunFilterPlugins(t.Context(), c.begin(t, pod), pod, c.info("n1"))
	waiting := c.Refusals.Pods()
	if len(waiting) != 1 || c.Refusals.Sourced() {
		t.Fatalf("%d pods wait, and for a source: %t", len(waiting), c.Refusals.Sourced())
	}
	if moved, err := Moved(t.Context(), c.Plugin.Book, c.Plugin.Reader, waiting[0]); moved || err != nil {
		t.Errorf("it is woken: %t, %v", moved, err)
	}
}

func TestNoNodeIsRememberedOnceNoPodWaits(t *testing.T) {
	r, pod := NewRefusals(func() {}), podWith("p", "a")
	for _, node := range []string{"n1", "n2", "n3"} { // nodes that come and go
		each := r.begin(pod, &schedule.PodVolumes{})
		r.refuse(each, node, ledger.NoRoom)
		if on := r.On(r.Pods()[0], map[string]bool{"n1": true, "n2": true, "n3": true}); len(on) != 1 || on[0] != node {
			t.Errorf("the pod was refused on %v, want %s", on, node)
		}
		if r.Forget(pod); len(r.numbers) != 0 {
			t.Errorf("remembers %v", r.numbers)
		}
	}
}

func TestAClaimThatAnotherIsMadeFromWakesThePod(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.claim("source", gi)
	pod := c.cloned()
	if told := c.told(t, pod); !strings.Contains(told, `claim "a" is made from claim "source", which is not bound yet`) {
		t.Errorf("told %q", told)
	}
	named := func(name string) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	}
	volumeOf := func(name string) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}}
	}
	elsewhere := named("source")
	elsewhere.Namespace = "other"
	for name, test := range map[string]struct {
		resource fwk.EventResource
		object   any
		wakes    bool
	}{
		"the source changes":             {fwk.PersistentVolumeClaim, named("source"), true},
		"the source's volume appears":    {fwk.PersistentVolume, volumeOf("source"), true},
		"another claim changes":          {fwk.PersistentVolumeClaim, named("b"), false},
		"another claim's volume appears": {fwk.PersistentVolume, volumeOf("b"), false},
		"one of another namespace":       {fwk.PersistentVolumeClaim, elsewhere, false},
	} {
		if got := c.hint(t, pod, test.resource, fwk.Update, nil, test.object); got != test.wakes {
			t.Errorf("%s: the pod is woken: %t, want %t", name, got, test.wakes)
		}
	}
}
