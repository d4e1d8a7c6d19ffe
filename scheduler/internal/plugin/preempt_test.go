package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// simulate is a cluster of one node of 4 GiB with an inline volume of 3 GiB.
func simulate(t *testing.T) (c *cluster, victim *corev1.Pod, filter func(fwk.CycleState, *corev1.Pod) bool) {
	c = newCluster(t, node("n1", 4*gi))
	victim = podWithInline("victim", 3*gi)
	c.run(victim, "n1", 3*gi, -1)
	return c, victim, func(state fwk.CycleState, pod *corev1.Pod) bool {
		return c.RunFilterPlugins(t.Context(), state, pod, c.info("n1")).IsSuccess()
	}
}

func info(t *testing.T, pod *corev1.Pod) fwk.PodInfo {
	t.Helper()
	podInfo, err := framework.NewPodInfo(pod)
	must(t, err)
	return podInfo
}

func TestAnEvictionFreesInlineVolumesInThoughtAlone(t *testing.T) {
	c, victim, fits := simulate(t)
	c.claim("a", 3*gi)
	pod := podWith("p", "a")
	actual := c.begin(t, pod)
	thought := actual.Clone()

	if status := c.RunPreFilterExtensionRemovePod(t.Context(), thought, pod, info(t, victim), c.info("n1")); !status.IsSuccess() {
		t.Fatal(status)
	}
	if !fits(thought, pod) {
		t.Error("the pod does not fit although the victim is thought away")
	}
	if fits(actual, pod) {
		t.Error("the thought has reached the real state")
	}
	if status := c.RunPreFilterExtensionAddPod(t.Context(), thought, pod, info(t, victim), c.info("n1")); !status.IsSuccess() {
		t.Fatal(status)
	}
	if fits(thought, pod) {
		t.Error("the pod fits although the victim is reprieved")
	}
	if used := c.used("n1"); used != 3*gi {
		t.Errorf("%d GiB are charged after thoughts alone, want 3", used/gi)
	}
}

func TestAnEvictionFreesNoClaims(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.claim("held", 3*gi)
	victim := podWith("victim", "held")
	if _, status := c.reserve(t, victim, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	c.claim("a", 3*gi)
	pod := podWith("p", "a")
	state := c.begin(t, pod)
	c.RunPreFilterExtensionRemovePod(t.Context(), state, pod, info(t, victim), c.info("n1"))
	if status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n1")); status.IsSuccess() {
		t.Error("the pod fits although an eviction frees nothing")
	}
}

func TestTheRoomOfANominatedPodIsCounted(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.claim("theirs", 3*gi)
	c.claim("ours", 3*gi)
	pod, nominated := podWith("p", "ours"), podWith("nominated", "theirs")
	state := c.begin(t, pod)
	c.RunPreFilterExtensionAddPod(t.Context(), state, pod, info(t, nominated), c.info("n1"))
	if c.RunFilterPlugins(t.Context(), state, pod, c.info("n1")).IsSuccess() {
		t.Error("the pod takes the room that was made for another")
	}
	c.RunPreFilterExtensionRemovePod(t.Context(), state, pod, info(t, nominated), c.info("n1"))
	if status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n1")); !status.IsSuccess() {
		t.Errorf("got %v although the nominated pod is thought away again", status)
	}
}
