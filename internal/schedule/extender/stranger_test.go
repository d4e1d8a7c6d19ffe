package extender

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/cases"
)

// status asks for a filter and returns the HTTP status.
func (a *asked) status(pod *corev1.Pod, nodes ...string) int {
	a.t.Helper()
	body, err := json.Marshal(Args{Pod: pod, NodeNames: &nodes})
	if err != nil {
		a.t.Fatal(err)
	}
	status, _ := a.post("/filter", bytes.NewReader(body))
	return status
}

// spacious has two nodes, 20Gi and 4Gi, and a pod with a claim of 2Gi.
func spacious(t *testing.T) (*asked, cases.Case) {
	t.Helper()
	c := cases.All()["where it fits on both the one with more to spare is better"]
	return ask(t, &c), c
}

func TestNothingIsHeldForAPodThatDoesNotWaitForANode(t *testing.T) {
	tests := map[string]func(a *asked, pod *corev1.Pod){
		"the pod does not exist":                  func(_ *asked, pod *corev1.Pod) { pod.Name = "nobody" },
		"a new pod has the name of the old pod":   func(_ *asked, pod *corev1.Pod) { pod.UID = "another" },
		"the question names no pod":               func(_ *asked, pod *corev1.Pod) { pod.Name, pod.Namespace = "", "" },
		"the pod has a node already":              func(a *asked, _ *corev1.Pod) { a.world.pods[0].Spec.NodeName = "small" },
		"the question names another namespace":    func(_ *asked, pod *corev1.Pod) { pod.Namespace = "elsewhere" },
		"the pod was deleted after the last look": func(a *asked, _ *corev1.Pod) { a.world.pods = nil },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			a, c := spacious(t)
			a.world.pods = []*corev1.Pod{c.Pod.DeepCopy()}
			asked := c.Pod.DeepCopy()
			change(a, asked)
			if got := a.status(asked, "large", "small"); got != http.StatusNotFound {
				t.Errorf("status %d, want 404", got)
			}
			a.wantFree("large", 20*gi)
			a.wantFree("small", 4*gi)
		})
	}
}

func TestRoomIsHeldForThePodsRealVolumesAndNotForThoseOfTheQuestion(t *testing.T) {
	a, c := spacious(t)
	forged := c.Pod.DeepCopy()
	forged.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: v1alpha1.LocalDriverName, VolumeAttributes: map[string]string{"poolClass": "fast", "size": "20Gi"},
	}}}}
	a.filter(forged, []string{"large"})
	a.wantFree("large", 18*gi)
}

// A claim that does not exist is looked up at the API server each time.
func TestTheAPIServerIsAskedOnlySoOften(t *testing.T) {
	c := cases.All()["where it fits on both the one with more to spare is better"]
	empty := &world{Lists: &schedule.Lists{}}
	a := askOn(t, &c, empty, empty)
	stranger := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "nobody", UID: "u"}}
	for range misses {
		if got := a.status(stranger, "large"); got != http.StatusNotFound {
			t.Fatalf("status %d, want 404", got)
		}
	}
	if got := a.status(stranger, "large"); got != http.StatusTooManyRequests {
		t.Errorf("status %d for one question too many, want 429", got)
	}
	a.clock.Step(time.Second)
	if got := a.status(stranger, "large"); got != http.StatusNotFound {
		t.Errorf("status %d a second later, want 404", got)
	}
}

func TestAPodIsPrioritizedOnlyIfItWaits(t *testing.T) {
	a, _ := spacious(t)
	body := `{"Pod":{"metadata":{"namespace":"x","name":"nobody","uid":"u"}},"NodeNames":["large"]}`
	if got, _ := a.post("/prioritize", strings.NewReader(body)); got != http.StatusNotFound {
		t.Errorf("status %d, want 404", got)
	}
}
