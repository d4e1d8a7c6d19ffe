package plugin

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// gang is a group of pods in the scheduler's hands.
type gang struct {
	*cluster
	t      *testing.T
	pods   []*corev1.Pod
	states []fwk.CycleState
}

// simulate tries to place each pod after the other on n1, as the scheduler does
// for a group, and gives everything back. It returns how many found room.
func (g *gang) simulate() int {
	g.t.Helper()
	var reserved []int
	g.states = make([]fwk.CycleState, len(g.pods))
	for i, pod := range g.pods {
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(framework.NewCycleState())
		g.states[i] = state
		if _, status, _ := g.RunPreFilterPlugins(g.t.Context(), state, pod); !status.IsSuccess() {
			g.t.Fatal(status)
		}
		if !g.RunFilterPlugins(g.t.Context(), state, pod, g.info("n1")).IsSuccess() {
			break
		}
		if status := g.RunReservePluginsReserve(g.t.Context(), state, pod, "n1"); !status.IsSuccess() {
			g.t.Fatal(status)
		}
		if _, running := g.Refusals.Simulations(); !running {
			g.t.Error("nobody is told that what the pod holds is a trial")
		}
		reserved = append(reserved, i)
	}
	slices.Reverse(reserved)
	for _, i := range reserved {
		g.RunReservePluginsUnreserve(g.t.Context(), g.states[i], g.pods[i], "n1")
	}
	return len(reserved)
}

func newGang(t *testing.T, count int) *gang {
	t.Helper()
	g := &gang{cluster: newCluster(t, node("n1", 10*gi)), t: t}
	for i := range count {
		claim := string(rune('a' + i))
		g.claim(claim, 3*gi)
		g.pods = append(g.pods, podWith("p"+claim, claim))
	}
	return g
}

func TestAGangIsReservedOnTrialAndThenForGood(t *testing.T) {
	g := newGang(t, 3)
	for range 2 { // a placement after the other
		if found := g.simulate(); found != 3 {
			t.Fatalf("%d of 3 pods found room", found)
		}
		if used := g.used("n1"); used != 0 {
			t.Fatalf("%d bytes are held after a simulation", used)
		}
	}
	for i, pod := range g.pods {
		state := g.states[i].(*framework.CycleState)
		state.SetPodGroupSchedulingCycle(nil)
		if status := g.RunReservePluginsReserve(t.Context(), state, pod, "n1"); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	if _, running := g.Refusals.Simulations(); running {
		t.Error("what is held for good passes for a trial")
	}
	for i, pod := range g.pods {
		g.RunPreBindPreFlights(t.Context(), g.states[i], pod, "n1")
		if status := g.RunPreBindPlugins(t.Context(), g.states[i], pod, "n1"); !status.IsSuccess() {
			t.Fatal(status)
		}
	}
	want := map[string]string{"pvc-uid-a": "n1/vg0", "pvc-uid-b": "n1/vg0", "pvc-uid-c": "n1/vg0"}
	if diff := cmp.Diff(want, g.creator.made); diff != "" {
		t.Errorf("Volumes made (-want +got):\n%s", diff)
	}
}

func TestAGangThatDoesNotFitLeavesNothing(t *testing.T) {
	g := newGang(t, 4)
	if found := g.simulate(); found != 3 {
		t.Errorf("%d of 4 pods found room, want 3", found)
	}
	if used := g.used("n1"); used != 0 || len(g.creator.made) != 0 {
		t.Errorf("%d bytes are held and %v made", used, g.creator.made)
	}
	if _, running := g.Refusals.Simulations(); running {
		t.Error("the trial is not over")
	}
}
