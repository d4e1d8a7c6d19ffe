package test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/scheduler/internal/controlplane"
)

// mixed creates pods at once, for each scheduler in turn. All are at work by then,
// or the first would have the nodes to itself.
func (c *cluster) mixed(t *testing.T, count int, change func(*corev1.Pod), schedulers ...string) {
	t.Helper()
	for _, scheduler := range schedulers {
		c.create(t, c.pod("for-"+scheduler, by(scheduler)))
	}
	for _, scheduler := range schedulers {
		c.awaitBound(t, "for-"+scheduler)
		c.end(t, "for-"+scheduler)
	}
	i := 0
	c.burst(t, count, func(pod *corev1.Pod) {
		change(pod)
		pod.Spec.SchedulerName = schedulers[i%len(schedulers)]
		i++
	})
}

// startBerth starts another berth-scheduler, with the chart's values and the test's
// own changes.
func (c *cluster) startBerth(t *testing.T, change func(configuration map[string]any), values ...string) *controlplane.Process {
	t.Helper()
	path := c.installScheduler(t, values...)
	if change != nil {
		path = rewrite(t, path, change)
	}
	p, err := c.programs.Scheduler(path, "--secure-port=0")
	return run(t, p, err)
}

// wantRoomTaken: when a pod ends a waiting pod gets its room, whichever scheduler
// each belongs to.
func (c *cluster) wantRoomTaken(t *testing.T, bound []corev1.Pod) {
	t.Helper()
	c.end(t, bound[0].Name)
	claim := &corev1.PersistentVolumeClaim{}
	c.get(t, bound[0].Name+"-0", c.class, claim)
	if err := c.Client.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	c.settle(t, len(bound))
}

func TestAStockSchedulerAloneFillsTheNodesExactly(t *testing.T) {
	c := withoutScheduler(t)
	n := c.node(t, "a", 10*gi)
	c.publishAlways(t, n)
	c.startStock(t, "stock")
	c.mixed(t, 5, c.withClaims(t, 1, 3*gi), "stock")
	bound, _ := c.settle(t, 3)
	c.wantHeld(t, 3, 9*gi, n)
	c.wantRoomTaken(t, bound)
	c.wantHeld(t, 3, 9*gi, n)
	c.wantNothingLeft(t, n)
}

func TestAllSchedulersSideBySideFillTheNodesExactly(t *testing.T) {
	at, tls := loopback(t, "127.0.0.1:0"), newSecure(t)
	c := withoutScheduler(t, tls.at(t, at))
	nodes := []*controllertest.Node{c.node(t, "a", 10*gi), c.node(t, "b", 10*gi)}
	for _, n := range nodes {
		c.publishAlways(t, n)
	}
	c.startStock(t, "stock")
	c.startStock(t, "asking", tls.asks(t, at.Addr()))
	c.startBerth(t, nil)
	c.mixed(t, 12, c.withClaims(t, 1, 3*gi), "stock", "asking", "berth-scheduler")
	bound, _ := c.settle(t, 6)
	c.wantHeld(t, 6, 18*gi, nodes...)
	c.wantRoomTaken(t, bound)
	c.wantHeld(t, 6, 18*gi, nodes...)
	c.wantNothingLeft(t, nodes...)
}

func TestTwoBerthSchedulersOnTheSameNodes(t *testing.T) {
	for _, claims := range []int{1, 3} {
		t.Run(fmt.Sprintf("with %d claims each", claims), func(t *testing.T) {
			c := newCluster(t)
			n := c.node(t, "a", 10*gi)
			c.startBerth(t, nil, "scheduler.schedulerName=second")
			c.mixed(t, 6, c.withClaims(t, claims, 3*gi/int64(claims)), "berth-scheduler", "second")
			c.settle(t, 3)
			c.wantHeld(t, 3*claims, 9*gi, n)
			c.wantNothingLeft(t, n)
		})
	}
}

func TestTheSecondReplicaGoesOnWhenTheFirstIsKilled(t *testing.T) {
	c := withoutScheduler(t)
	n := c.node(t, "a", 10*gi)
	elect := func(configuration map[string]any) { // for the chart's Lease, and faster
		configuration["leaderElection"] = map[string]any{
			"leaderElect": true, "resourceName": account, "resourceNamespace": apitest.Namespace,
			"leaseDuration": "2s", "renewDeadline": "1500ms", "retryPeriod": "300ms",
		}
	}
	first := c.startBerth(t, elect)
	c.create(t, c.pod("plain"))
	c.awaitBound(t, "plain") // the first leads
	c.startBerth(t, elect)
	c.burst(t, 5, c.withClaims(t, 1, 3*gi))
	first.Kill()
	_, waiting := c.settle(t, 3+1)
	c.checkFull(t, n, 1, waiting)
	c.wantNothingLeft(t, n)
}
