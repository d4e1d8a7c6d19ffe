//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// The node of the bursts has room for nine of ten gibibytes.
const crowded = "node2"

func by(scheduler string) cluster.PodOption {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = scheduler }
}

var (
	stock    = by(corev1.DefaultSchedulerName)
	extended = by(install.ExtendedScheduler)
	berth    = by("berth-scheduler")
)

// burst is pods that were posted at once, all for one node.
type burst struct {
	*bench
	pods int
}

// post posts one pod for each given scheduler. Each pod has the given number of claims,
// which together ask for three gibibytes.
func post(b *bench, claims int, schedulers ...cluster.PodOption) burst {
	b.Helper()
	var objs []client.Object
	for i, scheduler := range schedulers {
		var own []*corev1.PersistentVolumeClaim
		for j := range claims {
			claim := cluster.Claim(b.namespace, fmt.Sprintf("data-%d-%d", i, j), classExt4, fmt.Sprintf("%dMi", 3072/claims))
			own, objs = append(own, claim), append(objs, claim)
		}
		objs = append(objs, cluster.Pod(b.namespace, fmt.Sprintf("pod-%d", i), own, cluster.OnNode(crowded), scheduler))
	}
	b.create(objs...)
	return burst{b, len(schedulers)}
}

// settle follows the pods until as many run as there is room for, and the scheduler has
// refused each of the others for lack of room.
func (b burst) settle(fit int) {
	b.Helper()
	states := follow(b.bench, b.pods, func(states map[string]string) bool {
		running := 0
		for _, s := range states {
			switch {
			case s == "running":
				running++
			case !strings.Contains(s, "free"):
				return false
			}
		}
		return running == fit
	})
	b.Logf("%d pods: %v", b.pods, states)
}

// carved checks that the node holds exactly the logical volumes of this test.
func (b burst) carved(want int) {
	b.Helper()
	var own []string
	for _, v := range b.volumes(b.ctx) {
		own = append(own, v.Name)
	}
	lvs := slices.DeleteFunc(b.logicalVolumes(crowded), func(lv string) bool { return !slices.Contains(own, lv) })
	if len(lvs) != want {
		b.Errorf("%d logical volumes on %s, want %d: %v", len(lvs), crowded, want, lvs)
	}
}

// follow watches the pods of the namespace until done returns true. It returns the state
// of each pod: "running", or why it is not scheduled.
func follow(b *bench, pods int, done func(map[string]string) bool) map[string]string {
	b.Helper()
	ctx := b.within()
	// A watch without a resource version begins with the existing objects.
	w, err := b.Watch(ctx, &corev1.PodList{}, client.InNamespace(b.namespace))
	b.must(err, "watching pods")
	defer w.Stop()
	states := map[string]string{}
	for len(states) < pods || !done(states) {
		select {
		case <-ctx.Done():
			b.Fatalf("the pods never came to rest: %v", states)
		case e, open := <-w.ResultChan():
			if !open {
				b.Fatalf("the watch on pods ended: %v", states)
			}
			if p, ok := e.Object.(*corev1.Pod); ok {
				states[p.Name] = fate(p)
			}
		}
	}
	return states
}

func fate(p *corev1.Pod) string {
	if cluster.Running(p) {
		return "running"
	}
	if p.Spec.NodeName != "" {
		return "placed"
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.Message
		}
	}
	return "new"
}

// refusedByNode counts the failed attempts to provision, for these claims or for all.
func refusedByNode(b *bench, claims ...string) int {
	b.Helper()
	var events corev1.EventList
	b.must(b.List(b.ctx, &events, client.InNamespace(b.namespace)), "listing events")
	n := 0
	for _, e := range events.Items {
		if e.Reason == "ProvisioningFailed" && (len(claims) == 0 || slices.Contains(claims, e.InvolvedObject.Name)) {
			n += max(1, int(e.Count))
		}
	}
	return n
}

func TestBerthSchedulerPlacesThePodsThatFitAndNothingFails(t *testing.T) {
	placesWhatFits(begin(t), 3)
}

// placesWhatFits checks that berth-scheduler sends no claim to a node that must refuse
// it.
func placesWhatFits(b *bench, claims int) {
	b.Helper()
	pods := post(b, claims, berth, berth, berth, berth, berth)
	pods.settle(3)
	pods.carved(3 * claims)
	if n := refusedByNode(b); n != 0 {
		b.Errorf("%d claims were sent to a node that had to refuse them", n)
	}
}

// The node publishes more than each of the two claims, so a scheduler that looks at each
// claim alone sends both there.
func TestTheExtenderFitsAllClaimsOfAPodTogether(t *testing.T) {
	b := begin(t)
	claims := []*corev1.PersistentVolumeClaim{b.claim("one", classExt4, "5Gi"), b.claim("two", classExt4, "5Gi")}
	b.create(cluster.Pod(b.namespace, "web", claims, cluster.OnNode(crowded), extended))
	follow(b, 1, func(states map[string]string) bool { return strings.Contains(states["web"], "together") })
	if made := b.volumes(b.ctx); len(made) != 0 {
		t.Errorf("a volume was made all the same: %s", b.picture(&made[0]))
	}
}

func TestExplainSaysWhyAPodIsPending(t *testing.T) {
	t.Parallel()
	b := begin(t)
	claim := b.claim("data", classExt4, "100Gi")
	b.create(cluster.Pod(b.namespace, "web", []*corev1.PersistentVolumeClaim{claim}, cluster.OnNode(crowded), berth))
	follow(b, 1, func(states map[string]string) bool { return strings.Contains(states["web"], "free space") })
	for _, subject := range []string{"pod", "pvc"} {
		name := map[string]string{"pod": "web", "pvc": "data"}[subject]
		out := b.plugin("explain", subject, name)
		if want := crowded + ": does not fit: pool " + group + " has "; !strings.Contains(out, want) || !strings.Contains(out, "100Gi asked") {
			t.Errorf("explaining the %s: %q is not in\n%s", subject, want, out)
		}
	}
}

func count(states map[string]string, of ...string) int {
	n := 0
	for _, s := range states {
		if slices.Contains(of, s) {
			n++
		}
	}
	return n
}
