package extender

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/schedule/cases"
)

const gi = int64(1) << 30

func (a *asked) post(path string, body io.Reader) (status int, answer []byte) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, a.url+path, body)
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return response.StatusCode, answer
}

func (a *asked) call(path string, pod *corev1.Pod, nodes []string, into any) {
	a.t.Helper()
	body, err := json.Marshal(Args{Pod: pod, NodeNames: &nodes})
	if err != nil {
		a.t.Fatal(err)
	}
	status, answer := a.post(path, bytes.NewReader(body))
	if err := json.Unmarshal(answer, into); err != nil || status != http.StatusOK {
		a.t.Fatalf("status %d, %v: %s", status, err, answer)
	}
}

func (a *asked) filter(pod *corev1.Pod, nodes []string) (out FilterResult) {
	a.t.Helper()
	a.call("/filter", pod, nodes, &out)
	return out
}

func (a *asked) prioritize(pod *corev1.Pod, nodes []string) (out []HostPriority) {
	a.t.Helper()
	a.call("/prioritize", pod, nodes, &out)
	return out
}

func (a *asked) wantFree(node string, want int64) {
	a.t.Helper()
	if got := a.book.Room(node, "fast").Largest; got != want {
		a.t.Errorf("node %s has %d bytes free, want %d", node, got, want)
	}
}

// filtered is a cluster of large (20Gi) and small (4Gi) after a pod with one claim of
// 2Gi was filtered for both.
func filtered(t *testing.T) (*asked, cases.Case) {
	t.Helper()
	c := cases.All()["where it fits on both the one with more to spare is better"]
	a := ask(t, &c)
	a.filter(c.Pod, []string{"large", "small"})
	a.wantFree("large", 18*gi)
	a.wantFree("small", 2*gi)
	return a, c
}

func selectedOn(c *cases.Case, node string) *corev1.PersistentVolumeClaim {
	claim := c.Claims[0].DeepCopy()
	claim.Annotations = map[string]string{schedule.SelectedNode: node}
	return claim
}

func TestRoomIsHeldUntilPatienceEnds(t *testing.T) {
	a, _ := filtered(t)
	a.clock.Step(Patience - time.Millisecond)
	a.wantFree("small", 2*gi)
	a.clock.Step(time.Millisecond)
	a.wantFree("large", 20*gi)
	a.wantFree("small", 4*gi)
}

func TestRoomOnOtherNodesIsFreeAsSoonAsOneIsSelected(t *testing.T) {
	a, c := filtered(t)
	a.holds.Handler().OnUpdate(nil, &c.Claims[0]) // no node is selected yet
	a.wantFree("large", 18*gi)
	a.holds.Handler().OnUpdate(nil, selectedOn(&c, "small"))
	a.wantFree("large", 20*gi)
	if a.clock.HasWaiters() {
		t.Error("a timer is left")
	}
}

func TestASecondLookAtAPodReplacesTheFirst(t *testing.T) {
	a, c := filtered(t)
	a.clock.Step(Patience / 2)
	a.filter(c.Pod, []string{"large"})
	a.wantFree("large", 18*gi)
	a.wantFree("small", 4*gi)
	a.clock.Step(Patience / 2) // the first hold would end now
	a.wantFree("large", 18*gi)
	a.clock.Step(Patience / 2)
	a.wantFree("large", 20*gi)
}

func TestInlineVolumesAreHeldWhileTheirPodsClaimsAreMade(t *testing.T) {
	c := cases.All()["an inline volume counts beside a claim"]
	c.StorageNodes[0].Status.Pools[0].Total.Set(10 * gi)
	a := ask(t, &c)
	a.filter(c.Pod, []string{"n"})
	a.wantFree("n", 4*gi)
	a.holds.Handler().OnAdd(selectedOn(&c, "n"), false)
	a.clock.Step(Patience)
	a.wantFree("n", 4*gi)
	a.clock.Step(Binding)
	a.wantFree("n", 10*gi)
}

func TestATimerThatFiresAsTheLastClaimIsSelectedEndsNothing(t *testing.T) {
	c := cases.All()["an inline volume counts beside a claim"]
	c.StorageNodes[0].Status.Pools[0].Total.Set(10 * gi)
	a := ask(t, &c)
	a.filter(c.Pod, []string{"n"})
	pod := string(c.Pod.UID)
	fired := a.holds.pods[pod]
	a.holds.Handler().OnAdd(selectedOn(&c, "n"), false)
	a.holds.expire(pod, fired) // the timer waited for the lock
	a.wantFree("n", 4*gi)
	a.clock.Step(Binding)
	a.wantFree("n", 10*gi)
}

func TestANodeThatAnEvictionHelpsIsToldApart(t *testing.T) {
	c := cases.All()["inline volumes of running pods are in the way"]
	a := ask(t, &c)
	if got := a.filter(c.Pod, []string{"small"}); got.FailedNodes["small"] == "" || len(got.FailedAndUnresolvableNodes) != 0 {
		t.Errorf("with inline volumes in the way: %+v", got)
	}
	c = cases.All()["volumes of others are in the way"]
	a = ask(t, &c)
	got := a.filter(c.Pod, []string{"small"})
	if want := "Berth: pool vg0 has 1Gi free, 2Gi asked"; got.FailedAndUnresolvableNodes["small"] != want || len(got.FailedNodes) != 0 {
		t.Errorf("with volumes in the way: %+v", got)
	}
}

func TestExactlyAsManyPodsFitAsThereIsRoomFor(t *testing.T) {
	c := cases.All()["a claim that has its volume needs no room where it is"]
	c.Volumes = nil
	a := ask(t, &c)
	fitted := 0
	for i := range 7 { // claims of 4Gi on 20Gi
		claim := c.Claims[0].DeepCopy()
		claim.UID = claim.UID[:len(claim.UID)-1] + types.UID("abcdefg"[i:i+1])
		c.Claims[0] = *claim
		pod := c.Pod.DeepCopy()
		pod.UID += claim.UID
		a.world.pods = []*corev1.Pod{pod}
		fitted += len(*a.filter(pod, []string{"large"}).NodeNames)
	}
	if fitted != 5 {
		t.Errorf("%d pods fit, want 5", fitted)
	}
}

// wide is a cluster of twenty like nodes.
func wide(c cases.Case) (cases.Case, []string) {
	node := c.StorageNodes[0]
	c.StorageNodes = nil
	var names []string
	for i := range 20 {
		node.Name = string(rune('a' + i))
		names = append(names, node.Name)
		c.StorageNodes = append(c.StorageNodes, node)
	}
	return c, names
}

func TestRoomIsHeldOnTheBestNodesOnly(t *testing.T) {
	c, nodes := wide(cases.All()["one claim goes where there is room"])
	small := &c.StorageNodes[0].Status.Pools
	*small = append((*small)[:0:0], (*small)...)
	(*small)[0].Total.Set(6 * gi)
	a := ask(t, &c)
	if got := *a.filter(c.Pod, nodes).NodeNames; len(got) != len(nodes) {
		t.Errorf("%d nodes are named of %d", len(got), len(nodes))
	}
	a.wantFree("a", 6*gi) // fits, and is the worst
	a.wantFree("b", 15*gi)
	a.wantFree("q", 15*gi)
	a.wantFree("r", 20*gi)
}

func TestAPodWithInlineVolumesIsGivenOnlyNodesWithRoomHeld(t *testing.T) {
	c, nodes := wide(cases.All()["an inline volume counts beside a claim"])
	for i := range c.StorageNodes {
		pools := append(c.StorageNodes[i].Status.Pools[:0:0], c.StorageNodes[i].Status.Pools...)
		pools[0].Total.Set(10 * gi)
		c.StorageNodes[i].Status.Pools = pools
	}
	a := ask(t, &c)
	got := a.filter(c.Pod, nodes)
	if len(*got.NodeNames) != held || len(got.FailedNodes) != len(nodes)-held {
		t.Errorf("%d nodes are named, %d are not", len(*got.NodeNames), len(got.FailedNodes))
	}
	for _, node := range *got.NodeNames {
		a.wantFree(node, 4*gi)
	}
}
