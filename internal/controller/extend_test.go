package controller_test

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/extender"
)

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waitingPod makes a pod with one claim, for a scheduler that does not exist.
func (c *cluster) waitingPod(t *testing.T, claim string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.class}}
	pod.Spec.SchedulerName = "nobody"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "pause"}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
	}}}
	if err := c.Client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// filter asks an extender about a pod, by its name and UID alone.
func filter(t *testing.T, address net.Addr, pod *corev1.Pod, nodes ...string) (status int, result extender.FilterResult) {
	t.Helper()
	pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
	nodes = append([]string{}, nodes...) // an empty list is not the same as no list
	body, err := json.Marshal(extender.Args{Pod: pod, NodeNames: &nodes})
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address.String()+"/filter", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		if err := json.NewDecoder(response.Body).Decode(&result); err != nil {
			t.Fatal(err)
		}
	}
	return response.StatusCode, result
}

// waitingClaim makes a StorageClass of the cluster's class, and a claim of it.
func (c *cluster) waitingClaim(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: c.class}, Provisioner: v1alpha1.LocalDriverName,
		VolumeBindingMode: &mode, Parameters: map[string]string{"poolClass": c.class},
	}
	if err := c.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	return c.claim(t, func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = &c.class })
}

func TestTheExtenderHoldsRoomUntilTheClaimHasItsNode(t *testing.T) {
	c := newCluster(t)
	n, full := c.node(t, "n", 10*gi), c.node(t, "full", 512*mi)
	claim := c.waitingClaim(t)
	pod, l := c.waitingPod(t, claim.Name), loopback(t)
	p := controllertest.Start(t, c.Environment, controllertest.WithExtender(l))
	room := func() int64 { return p.Book.Room(n.Name, c.class).Largest }

	status, result := filter(t, l.Addr(), pod, n.Name, full.Name)
	if status != http.StatusOK || len(*result.NodeNames) != 1 || (*result.NodeNames)[0] != n.Name {
		t.Fatalf("status %d: %+v", status, result)
	}
	if told := result.FailedAndUnresolvableNodes[full.Name]; told != "Berth: pool vg0/thin has 512Mi free, 1Gi asked" {
		t.Errorf("told %q", told)
	}
	if room() != 9*gi {
		t.Errorf("%d bytes are left beside what is held", room())
	}

	claim.Annotations = map[string]string{schedule.SelectedNode: n.Name}
	if err := c.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	await(t, "the claim to count for itself", func() bool {
		p.Book.Unreserve(string(pod.UID), n.Name) // the room that the extender held for the pod
		return room() == 9*gi
	})
	r := c.requestFor(claim, n)
	mustCreate(t, p, r)
	if room() != 9*gi {
		t.Errorf("%d bytes are left once the volume is there", room())
	}
}

func TestOnlyTheLeaderAnswersTheScheduler(t *testing.T) {
	c := newCluster(t)
	pod, first, second := c.waitingPod(t, "none"), loopback(t), loopback(t)
	leader := controllertest.Start(t, c.Environment, controllertest.WithExtender(first), controllertest.WithLeaderElection())
	await(t, "the first to lead", func() bool { status, _ := filter(t, first.Addr(), pod); return status == http.StatusOK })
	controllertest.Start(t, c.Environment, controllertest.WithExtender(second), controllertest.WithLeaderElection())
	if status, _ := filter(t, second.Addr(), pod); status != http.StatusServiceUnavailable {
		t.Errorf("the second answers %d", status)
	}
	leader.Stop(t)
	await(t, "the second to lead", func() bool { status, _ := filter(t, second.Addr(), pod); return status == http.StatusOK })
}
