package test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/internal/controller/controllertest"
)

// burst creates pods at once.
func (b *bench) burst(t *testing.T, count int, change func(*corev1.Pod)) {
	t.Helper()
	pods := make([]*corev1.Pod, count)
	for i := range pods {
		pods[i] = b.pod(fmt.Sprintf("p%d", i), change) // with their claims
	}
	for _, pod := range pods {
		b.create(t, pod)
	}
}

// checkFull: the node of 10 GiB holds the volumes of three pods of 3 GiB, and
// nothing is left of the attempts of the others.
func (c *cluster) checkFull(t *testing.T, n *controllertest.Node, perPod int, waiting []corev1.Pod) {
	t.Helper()
	wantReason(t, waiting, "not enough free space")
	c.wantHeld(t, 3*perPod, 9*gi, n)
	c.wantVolumes(t, 3*perPod)
	c.wantNoFailures(t)
}

func TestFivePodsOfThreeGiBOnANodeOfTen(t *testing.T) {
	for _, claims := range []int{1, 3} {
		t.Run(fmt.Sprintf("with %d claims each", claims), func(t *testing.T) {
			c := newCluster(t)
			n := c.node(t, "a", 10*gi)
			begun := time.Now()
			c.burst(t, 5, c.withClaims(t, claims, 3*gi/int64(claims)))
			_, waiting := c.settle(t, 3)
			t.Logf("3 of 5 pods bound, 2 refused after %s", time.Since(begun).Round(time.Millisecond))
			c.checkFull(t, n, claims, waiting)
		})
	}
}
