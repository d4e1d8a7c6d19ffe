package plugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/internal/usecase/volumes"
)

func TestReserveHoldsRoomForAllVolumesOrForNone(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.claim("a", 3*gi)
	c.claim("b", 3*gi)
	c.claim("c", 6*gi)
	if _, status := c.reserve(t, podWith("p", "a", "b"), "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if used := c.used("n1"); used != 6*gi {
		t.Errorf("%d GiB are held, want 6", used/gi)
	}
	pod := podWith("q", "c")
	state := c.begin(t, pod)
	if status := c.RunReservePluginsReserve(t.Context(), state, pod, "n1"); status.Code() != fwk.Unschedulable {
		t.Errorf("got %v, want a refusal", status)
	}
	if used := c.used("n1"); used != 6*gi {
		t.Errorf("%d GiB are held after a refusal, want 6 as before", used/gi)
	}
}

func TestReserveDecidesAgain(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.claim("a", 3*gi)
	c.claim("b", 3*gi)
	first, second := podWith("p", "a"), podWith("q", "b")
	one, two := c.begin(t, first), c.begin(t, second)
	for _, state := range []fwk.CycleState{one, two} {
		if status := c.RunFilterPlugins(t.Context(), state, first, c.info("n1")); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if status := c.RunReservePluginsReserve(t.Context(), one, first, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := c.RunReservePluginsReserve(t.Context(), two, second, "n1"); !strings.Contains(status.Message(), "not enough free space") {
		t.Errorf("got %v, want a refusal: what Filter saw is gone", status)
	}
}

func TestUnreserveGivesBackTheHeldRoomHoweverOftenItIsCalled(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi), node("n2", 10*gi))
	c.claim("a", 3*gi)
	pod := podWith("p", "a")
	state := c.begin(t, pod)
	c.RunReservePluginsUnreserve(t.Context(), state, pod, "n1") // without a Reserve
	for range 100 {                                             // as a pod group's simulations do
		for _, node := range []string{"n1", "n2"} {
			if status := c.RunReservePluginsReserve(t.Context(), state, pod, node); !status.IsSuccess() {
				t.Fatal(status)
			}
			c.RunReservePluginsUnreserve(t.Context(), state, pod, node)
			c.RunReservePluginsUnreserve(t.Context(), state, pod, node)
		}
	}
	if used := c.used("n1") + c.used("n2"); used != 0 {
		t.Errorf("%d bytes are held after the last Unreserve", used)
	}
	c.RunReservePluginsUnreserve(t.Context(), framework.NewCycleState(), pod, "n1")
}

func TestPreBindWritesTheVolumesWhereTheyAreHeld(t *testing.T) {
	c := newCluster(t, node("n1", 3*gi, 7*gi))
	c.claim("a", 6*gi) // only vg1 has room
	c.claim("b", 3*gi) // which leaves vg0
	c.claim("filled", gi/2).Spec.DataSourceRef = &corev1.TypedObjectReference{Kind: "Recipe", Name: "x"}
	pod := podWith("p", "a", "b", "filled")
	pod.Spec.Volumes = append(pod.Spec.Volumes, podWithInline("p", gi/4).Spec.Volumes...)
	state, status := c.reserve(t, pod, "n1")
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := c.RunPreBindPreFlights(t.Context(), state, pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if c := state.GetParallelPreBindPlugins(); c.Has(Name) {
		t.Error("PreBind may run beside VolumeBinding's: the provisioner would be told before the Volume is placed")
	}
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	want := map[string]string{"pvc-uid-a": "n1/vg1", "pvc-uid-b": "n1/vg0"}
	if diff := cmp.Diff(want, c.creator.made); diff != "" {
		t.Errorf("Volumes made (-want +got):\n%s", diff)
	}
}

func TestPodsForWhichNothingIsWrittenSkipPreBind(t *testing.T) {
	tests := map[string]func(c *cluster) *corev1.Pod{
		"with an inline volume alone": func(*cluster) *corev1.Pod { return podWithInline("p", gi) },
		"with a bound claim":          func(c *cluster) *corev1.Pod { c.bound("a", "n1"); return podWith("p", "a") },
	}
	for name, make := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, node("n1", 10*gi))
			pod := make(c)
			state, status := c.reserve(t, pod, "n1")
			if !status.IsSuccess() {
				t.Fatal(status)
			}
			if status := c.RunPreBindPreFlights(t.Context(), state, pod, "n1"); !status.IsSkip() {
				t.Errorf("got %v: the scheduler writes into the status of a pod that any plugin does not skip", status)
			}
		})
	}
}

func TestANodeThatRefusesAVolumeFailsThePodWithItsWords(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.claim("a", gi)
	c.creator.answers["pvc-uid-a"] = errors.Join(volumes.ErrUnplaceable, errors.New("node n1: volume group vg0 has 0 B free"))
	pod := podWith("p", "a")
	state, _ := c.reserve(t, pod, "n1")
	c.RunPreBindPreFlights(t.Context(), state, pod, "n1")
	status := c.RunPreBindPlugins(t.Context(), state, pod, "n1")
	if status.Code() != fwk.Error || !strings.Contains(status.Message(), "volume group vg0 has 0 B free") {
		t.Errorf("got %v, want an error, which is tried again, with the node's words", status)
	}
	c.RunReservePluginsUnreserve(t.Context(), state, pod, "n1")
	if used := c.used("n1"); used != 0 {
		t.Errorf("%d bytes are held after Unreserve", used)
	}
}

func TestAPodThatCannotHaveAllItsVolumesKeepsNone(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	for _, claim := range []string{"a", "b", "c"} {
		c.claim(claim, gi)
	}
	c.creator.answers["pvc-uid-b"] = volumes.ErrUnplaceable
	pod := podWith("p", "a", "b", "c")
	state, _ := c.reserve(t, pod, "n1")
	c.RunPreBindPreFlights(t.Context(), state, pod, "n1")
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n1"); status.Code() != fwk.Error {
		t.Errorf("got %v, want an error, which is tried again", status)
	}
	if len(c.creator.made) != 0 {
		t.Errorf("%v are left, in the way of pods that could have all they need", c.creator.made)
	}
}

func TestAVolumeThatWasMadeStaysIfTheServerFailsAnother(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.claim("a", gi)
	c.claim("b", gi)
	c.creator.answers["pvc-uid-b"] = errors.New("the server is away")
	pod := podWith("p", "a", "b")
	state, _ := c.reserve(t, pod, "n1")
	c.RunPreBindPreFlights(t.Context(), state, pod, "n1")
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n1"); status.Code() != fwk.Error || !strings.Contains(status.Message(), "away") {
		t.Errorf("got %v, want the server's error", status)
	}
	if len(c.creator.made) != 1 {
		t.Errorf("made are %v, want the one that did not fail: the next attempt goes on from there", c.creator.made)
	}
}

func TestANodeThatTakesLongIsNotWaitedFor(t *testing.T) {
	c := newCluster(t, node("n1", 10*gi))
	c.acceptance = 1 // a nanosecond
	c.claim("a", gi)
	c.creator.mute = true
	pod := podWith("p", "a")
	state, _ := c.reserve(t, pod, "n1")
	c.RunPreBindPreFlights(t.Context(), state, pod, "n1")
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n1"); !status.IsSuccess() {
		t.Errorf("got %v, want to go on: CreateVolume waits for the node", status)
	}
}
