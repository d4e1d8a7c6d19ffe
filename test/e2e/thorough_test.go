//go:build e2e && thorough

package e2e

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// kills is how many times berth-scheduler is killed in the middle of a burst.
var kills = flag.Int("kills", 1, "rounds in which berth-scheduler is killed")

// The short tests use one filesystem each.
func TestTheOtherFilesystemServesAsWell(t *testing.T) {
	for name, test := range map[string]func(b *bench){
		"a claim":       func(b *bench) { livesAndDies(b, "xfs", classXFS) },
		"a claim grows": func(b *bench) { grows(b, classExt4) },
		"an inline volume": func(b *bench) {
			inlineLivesAndDies(b, "xfs", map[string]string{"poolClass": class, "size": "512Mi", "fsType": "xfs"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(begin(t))
		})
	}
}

func TestBerthSchedulerPlacesSingleClaimsAndNothingFails(t *testing.T) {
	placesWhatFits(begin(t), 1)
}

func TestSchedulersSideBySideNeverOvercommitAPool(t *testing.T) {
	b := begin(t)
	pods := post(b, 1, berth, stock, extended, berth, stock, extended)
	pods.settle(3)
	pods.carved(3)
}

func TestASchedulerAloneFillsAPoolAndNoMore(t *testing.T) {
	tests := map[string]struct {
		scheduler cluster.PodOption
		claims    int
	}{
		"the stock scheduler":                                          {stock, 1},
		"the stock scheduler with the extender":                        {extended, 1},
		"the stock scheduler with the extender, and three claims each": {extended, 3},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := begin(t)
			s := test.scheduler
			pods := post(b, test.claims, s, s, s, s, s)
			pods.settle(3)
			pods.carved(3 * test.claims)
			t.Logf("%d attempts were refused by the node", refusedByNode(b))
		})
	}
}

func TestANodeThatFallsSilentGetsNothingNew(t *testing.T) {
	const silent = "node3"
	schedulers := map[string]cluster.PodOption{"stock": stock, "extended": extended, "berth": berth}
	b := begin(t)
	b.lab("pause", silent)
	t.Cleanup(func() { b.lab("resume", silent) })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: silent}}
	b.must(cluster.Await(b.within(), b.Cluster, node, "silent", func(n *corev1.Node) bool { return !ready(n) }), "pausing the node")

	for name, scheduler := range schedulers {
		b.create(cluster.Pod(b.namespace, name, []*corev1.PersistentVolumeClaim{b.claim(name, classExt4, "1Gi")},
			cluster.OnNode(silent), scheduler, tolerant))
	}
	// The stock scheduler goes by published capacity, which is withdrawn. Then it asks no extender about the node.
	const withdrawn = "did not have enough free storage"
	states := follow(b, len(schedulers), func(states map[string]string) bool {
		extended := strings.Contains(states["extended"], withdrawn) || strings.Contains(states["extended"], "Berth: the node's berth-agent is silent")
		return extended && strings.Contains(states["stock"], withdrawn) && strings.Contains(states["berth"], "silent")
	})
	t.Logf("%v", states)
	if made := b.volumes(b.ctx); len(made) != 0 {
		t.Errorf("volumes were made: %s", b.picture(&made[0]))
	}

	b.lab("resume", silent)
	follow(b, len(schedulers), func(states map[string]string) bool { return count(states, "running") == len(schedulers) })
}

// tolerant pods accept every node: only storage decides where they run.
func tolerant(p *corev1.Pod) {
	p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
}

func ready(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func TestNothingIsLostWhenBerthSchedulerIsKilled(t *testing.T) {
	for round := range *kills {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			b := begin(t)
			pods := post(b, 1, berth, berth, berth, berth, berth)
			placed := rand.IntN(3)
			b.Logf("killed after %d pods were placed", placed)
			follow(b, 0, func(states map[string]string) bool { return count(states, "placed", "running") >= placed })
			killScheduler(b)
			pods.settle(3)
			pods.carved(3)
		})
	}
}

func killScheduler(b *bench) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, limit)
	defer cancel()
	b.must(b.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(install.Namespace),
		client.MatchingLabels{"app.kubernetes.io/component": "scheduler"}, client.GracePeriodSeconds(0)), "killing berth-scheduler")
}
