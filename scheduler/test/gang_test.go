//go:build !older

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
)

// groups is the feature of Kubernetes that schedules pods all or none.
const groups = "GenericWorkload=true"

// withGroups is an API server with groups of pods, which are beta and off. Here they are on, for the schedulers that are
// told so; to all others it makes no difference.
var withGroups = []apitest.Option{apitest.WithFlag("feature-gates", groups), apitest.WithFlag("runtime-config", "scheduling.k8s.io/v1beta1=true")}

// gangs is a cluster whose scheduler knows groups of pods.
type gangs struct{ *cluster }

func newGangs(t *testing.T) gangs {
	t.Helper()
	c := withoutScheduler(t)
	p, err := c.programs.Scheduler(c.installScheduler(t), "--secure-port=0", "--feature-gates="+groups)
	run(t, p, err)
	return gangs{c}
}

// gang creates pods of which all are to be placed, or none.
func (g gangs) gang(t *testing.T, count int, change func(*corev1.Pod)) {
	t.Helper()
	group := g.class
	g.create(t, &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.class, Name: group},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(count)}, //nolint:gosec // a handful
		}},
	})
	g.burst(t, count, all(change, func(pod *corev1.Pod) {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	}))
}

// wantPlaced: the scheduler reports this of the gang as a whole.
func (g gangs) wantPlaced(t *testing.T, status metav1.ConditionStatus, message string) {
	t.Helper()
	agree(t, func(ctx context.Context) error {
		group := &schedulingv1beta1.PodGroup{}
		if err := g.Client.Get(ctx, client.ObjectKey{Namespace: g.class, Name: g.class}, group); err != nil {
			return err
		}
		condition := meta.FindStatusCondition(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
		if condition == nil || condition.Status != status || !strings.Contains(condition.Message, message) {
			return fmt.Errorf("the group's condition is %+v, want %s with %q", condition, status, message)
		}
		return nil
	})
}

func TestAGangWhoseVolumesFitTogetherIsPlacedWhole(t *testing.T) {
	for _, claims := range []int{1, 3} {
		t.Run(fmt.Sprintf("with %d claims each", claims), func(t *testing.T) {
			c := newGangs(t)
			n := c.node(t, "a", 10*gi)
			c.gang(t, 3, c.withClaims(t, claims, 3*gi/int64(claims)))
			c.settle(t, 3)
			c.wantHeld(t, 3*claims, 9*gi, n)
			c.wantVolumes(t, 3*claims)
			c.wantNoFailures(t, n)
			c.wantNothingLeft(t, n)
		})
	}
}

func TestAGangThatDoesNotFitTakesNothingUntilItDoes(t *testing.T) {
	c := newGangs(t)
	a := c.node(t, "a", 10*gi)
	c.gang(t, 4, c.withClaims(t, 1, 3*gi))
	c.settle(t, 0)
	c.wantPlaced(t, metav1.ConditionFalse, "minCount (4) cannot be satisfied: 3 scheduled")
	_, waiting, err := c.pods(t.Context())
	if one := slices.ContainsFunc(waiting, func(pod corev1.Pod) bool { return strings.Contains(refused(&pod), "not enough free space") }); err != nil || !one {
		t.Errorf("no pod says that there is no room: %v", err)
	}
	c.wantVolumes(t, 0)

	c.create(t, c.pod("single", c.withClaims(t, 1, 10*gi))) // all the room there is
	c.awaitBound(t, "single")
	c.wantHeld(t, 1, 10*gi, a)

	b := c.node(t, "b", 12*gi)
	c.settle(t, 1+4)
	c.wantPlaced(t, metav1.ConditionTrue, "")
	c.wantHeld(t, 5, 22*gi, a, b)
	c.wantVolumes(t, 5)
	c.wantNoFailures(t, a, b)
	c.wantNothingLeft(t, a, b)
}
