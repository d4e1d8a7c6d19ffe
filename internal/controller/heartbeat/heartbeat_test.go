package heartbeat

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"berth.dev/berth/api/v1alpha1"
)

// start is the time of our clock. The nodes' clocks differ.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func node(ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	return n
}

func lease(renewed time.Time, seconds int32) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.AgentLeasePrefix + "n"},
		Spec:       coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: new(seconds)},
	}
}

func TestHowLongAnAgentMayBeSilent(t *testing.T) {
	c := clocktesting.NewFakePassiveClock(start)
	h := New(c)
	wants := func(after time.Duration, silent bool, left time.Duration) {
		t.Helper()
		c.SetTime(start.Add(after))
		if gotSilent, gotLeft := h.Silence("n"); gotSilent != silent || gotLeft != left {
			t.Errorf("after %s: silent %v, %s left; want %v, %s", after, gotSilent, gotLeft, silent, left)
		}
	}
	wants(0, false, patience) // never heard of, by a process that has just begun
	wants(patience+time.Second, true, 0)
	h.observeNode(node(corev1.ConditionFalse))
	h.observeLease(lease(start, 30))
	wants(patience+11*time.Second, false, 20*time.Second)
	wants(patience+32*time.Second, true, 0)
	h.observeLease(lease(start.Add(time.Hour), 30))
	wants(patience+42*time.Second, false, 20*time.Second)
}

func TestAway(t *testing.T) {
	longAgo := start.Add(-24 * time.Hour) // a node whose clock is slow
	tests := map[string]struct {
		events func(h *Heartbeats, c *clocktesting.FakePassiveClock)
		away   string // part of the reason; empty means that the node can answer
	}{
		"a node that the watch has not shown": {
			events: func(*Heartbeats, *clocktesting.FakePassiveClock) {}, away: "does not exist",
		},
		"a node without an agent": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) { h.observeNode(node(corev1.ConditionTrue)) }, away: "never been heard of",
		},
		"a node with an agent": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
			},
		},
		"an agent renewed the Lease 40 seconds ago": {
			events: func(h *Heartbeats, c *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				c.SetTime(start.Add(40 * time.Second))
			},
		},
		"an agent renewed the Lease 41 seconds ago": {
			events: func(h *Heartbeats, c *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				c.SetTime(start.Add(41 * time.Second))
			}, away: "silent for 41s",
		},
		"an agent that renews": {
			events: func(h *Heartbeats, c *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				c.SetTime(start.Add(30 * time.Second))
				h.observeLease(lease(longAgo.Add(30*time.Second), 40))
				c.SetTime(start.Add(60 * time.Second))
			},
		},
		"an edit that keeps the renew time does not renew the Lease": {
			events: func(h *Heartbeats, c *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				c.SetTime(start.Add(30 * time.Second))
				h.observeLease(lease(longAgo, 40))
				c.SetTime(start.Add(60 * time.Second))
			}, away: "silent for 1m0s",
		},
		"an agent deletes the Lease": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				h.LeaseHandler().OnDelete(cache.DeletedFinalStateUnknown{Obj: lease(longAgo, 40)})
			}, away: "never been heard of",
		},
		"a node that is not ready": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				h.NodeHandler().OnUpdate(nil, node(corev1.ConditionUnknown))
			}, away: "not ready",
		},
		"a node without a condition yet": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) {
				h.observeNode(node(""))
				h.observeLease(lease(longAgo, 40))
			}, away: "not ready",
		},
		"a node that was deleted": {
			events: func(h *Heartbeats, _ *clocktesting.FakePassiveClock) {
				h.observeNode(node(corev1.ConditionTrue))
				h.observeLease(lease(longAgo, 40))
				h.NodeHandler().OnDelete(node(corev1.ConditionTrue))
			}, away: "does not exist",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			h := New(clock)
			test.events(h, clock)
			got := h.Away("n")
			if (got == "") != (test.away == "") || !strings.Contains(got, test.away) {
				t.Errorf("got %q, want %q", got, test.away)
			}
		})
	}
}

func TestANodeIsShutByACordonAndByTaintsThatKeepPodsAway(t *testing.T) {
	for name, test := range map[string]struct {
		spec corev1.NodeSpec
		shut bool
	}{
		"no cordon and no taint":            {},
		"a cordon":                          {corev1.NodeSpec{Unschedulable: true}, true},
		"a taint for new pods":              {corev1.NodeSpec{Taints: []corev1.Taint{{Effect: corev1.TaintEffectNoSchedule}}}, true},
		"a taint for all pods":              {corev1.NodeSpec{Taints: []corev1.Taint{{Effect: corev1.TaintEffectNoExecute}}}, true},
		"a taint that only prefers no pods": {corev1.NodeSpec{Taints: []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}}}, false},
		"a taint for new pods and a taint that only prefers no pods": {corev1.NodeSpec{Taints: []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}, {Effect: corev1.TaintEffectNoSchedule}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(clocktesting.NewFakePassiveClock(start))
			n := node(corev1.ConditionTrue)
			n.Spec = test.spec
			h.NodeHandler().OnAdd(n, true)
			if got := h.Shut("n"); got != test.shut {
				t.Errorf("shut: %v, want %v", got, test.shut)
			}
			h.NodeHandler().OnUpdate(nil, node(corev1.ConditionTrue))
			if h.Shut("n") {
				t.Error("the node is shut after it was opened again")
			}
		})
	}
}

func TestANodeThatIsMadeAnewIsNotShut(t *testing.T) {
	h := New(clocktesting.NewFakePassiveClock(start))
	n := node(corev1.ConditionTrue)
	n.Spec.Unschedulable = true
	h.NodeHandler().OnAdd(n, true)
	h.NodeHandler().OnDelete(n)
	if h.Shut("n") {
		t.Error("a node that is gone is shut")
	}
}

func TestLabelsOfNodesAreKnownWhileTheNodesExist(t *testing.T) {
	h := New(clocktesting.NewFakePassiveClock(start))
	label := v1alpha1.ReplicaLabel("n")
	if got := h.Labelled(label); got != "" {
		t.Errorf("before: %q", got)
	}
	h.NodeHandler().OnAdd(node(""), true)
	if got := h.Labelled(label); got != "n" {
		t.Errorf("meanwhile: %q", got)
	}
	h.NodeHandler().OnDelete(node(""))
	if got := h.Labelled(label); got != "" {
		t.Errorf("after: %q", got)
	}
}

func TestLeasesOfOthersAreNotHeartbeats(t *testing.T) {
	h := New(clocktesting.NewFakePassiveClock(start))
	other := lease(start, 40)
	other.Name = "berth-controller"
	h.LeaseHandler().OnAdd(other, true)
	if len(h.last) != 0 {
		t.Errorf("took %v for agents", h.last)
	}
}

func TestListenersHearOfEveryEventAfterItCounts(t *testing.T) {
	h := New(clocktesting.NewFakePassiveClock(start))
	var heard []string
	h.Notify(func(node string) { heard = append(heard, node+": "+h.Away(node)) })
	h.NodeHandler().OnAdd(node(corev1.ConditionTrue), true)
	h.LeaseHandler().OnAdd(lease(start, 40), true)
	h.LeaseHandler().OnDelete(lease(start, 40))
	h.NodeHandler().OnDelete(node(corev1.ConditionTrue))
	want := "n: its berth-agent has never been heard of|n: |n: its berth-agent has never been heard of|n: the Node does not exist"
	if got := strings.Join(heard, "|"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
