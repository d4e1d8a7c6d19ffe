package plugin

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// matcher is a binder that finds static volumes for some claims on some nodes.
type matcher struct {
	volumebinding.SchedulerVolumeBinder
	claims  []*corev1.PersistentVolumeClaim
	matches map[string]string // node: claim
}

func (m *matcher) GetPodVolumeClaims(klog.Logger, *corev1.Pod) (*volumebinding.PodVolumeClaims, error) {
	return &volumebinding.PodVolumeClaims{}, nil
}

func (m *matcher) FindPodVolumes(_ klog.Logger, _ *corev1.Pod, _ *volumebinding.PodVolumeClaims, node *corev1.Node) (*volumebinding.PodVolumes, volumebinding.ConflictReasons, error) {
	found := &volumebinding.PodVolumes{}
	for _, claim := range m.claims {
		if m.matches[node.Name] != claim.Name {
			found.DynamicProvisions = append(found.DynamicProvisions, &volumebinding.DynamicProvision{PVC: claim})
		}
	}
	return found, nil, nil
}

func TestAClaimThatMatchesAStaticVolumeNeedsNoRoomThere(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi), node("n2", 4*gi))
	m := &matcher{claims: []*corev1.PersistentVolumeClaim{c.claim("a", 3*gi), c.claim("b", 3*gi)}, matches: map[string]string{"n1": "a"}}
	c.Static = Static{Available: func(class string) bool { return class == "fast" }, Binder: func() volumebinding.SchedulerVolumeBinder { return m }}
	pod := podWith("p", "a", "b")
	state := c.begin(t, pod)
	if status := c.RunFilterPlugins(t.Context(), state, pod, c.info("n1")); !status.IsSuccess() {
		t.Errorf("n1 is refused although one of the two claims is served by a static volume: %v", status)
	}
	if c.RunFilterPlugins(t.Context(), state, pod, c.info("n2")).IsSuccess() {
		t.Error("n2 is accepted although both claims need room")
	}
	if status := c.RunReservePluginsReserve(t.Context(), state, pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if used := c.used("n1"); used != 3*gi {
		t.Errorf("%d GiB are held, want the 3 of claim b", used/gi)
	}
	c.RunPreBindPreFlights(t.Context(), state, pod, "n1")
	if status := c.RunPreBindPlugins(t.Context(), state, pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(c.creator.made) != 1 || c.creator.made["pvc-uid-b"] == "" {
		t.Errorf("made %v, want the Volume of claim b alone", c.creator.made)
	}
}

func TestTheBinderIsAskedOnlyWhereAClassHasStaticVolumes(t *testing.T) {
	c := newCluster(t, node("n1", 4*gi))
	c.claim("a", gi)
	c.Static = Static{Available: func(string) bool { return false }, Binder: func() volumebinding.SchedulerVolumeBinder {
		t.Error("the binder was asked")
		return &matcher{}
	}}
	pod := podWith("p", "a")
	if status := c.RunFilterPlugins(t.Context(), c.begin(t, pod), pod, c.info("n1")); !status.IsSuccess() {
		t.Error(status)
	}
}
