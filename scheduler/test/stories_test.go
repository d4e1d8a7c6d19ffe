package test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

// end deletes a pod as its kubelet would when it has ended.
func (b *bench) end(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.class, Name: name}}
	if err := b.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
}

func names(pods []corev1.Pod) string {
	var list []string
	for _, pod := range pods {
		list = append(list, pod.Name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func important(pod *corev1.Pod) { pod.Spec.PriorityClassName = "high" }

func TestAnImportantPodEvictsInlineVolumesAndNothingElse(t *testing.T) {
	c := newCluster(t)
	c.node(t, "inline", 4*gi)
	c.node(t, "claims", 4*gi)
	on := func(node string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { pod.Spec.NodeSelector[v1alpha1.TopologyKey] = c.class + "-" + node }
	}
	c.create(t, c.pod("scratch", c.withInline(3*gi), on("inline")))
	c.create(t, c.pod("data", c.withClaims(t, 1, 3*gi), on("claims")))
	c.settle(t, 2)

	c.create(t, c.pod("important", c.withInline(3*gi), important))
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		scratch := &corev1.Pod{}
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.class, Name: "scratch"}, scratch)
		return err == nil && scratch.DeletionTimestamp != nil, err
	})
	if err != nil {
		t.Fatalf("the pod with the inline volume was not evicted: %v", err)
	}
	c.end(t, "scratch")
	bound, _ := c.settle(t, 2)
	if got := names(bound); got != "data important" {
		t.Errorf("bound are %s, want data and important", got)
	}
}

func TestANodeWhoseAgentIsSilentGetsNothingUntilItIsHeardAgain(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "a", 10*gi)
	lease := &coordinationv1.Lease{}
	beat := func(seconds int32) {
		c.get(t, v1alpha1.AgentLeasePrefix+n.Name, apitest.Namespace, lease)
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &seconds, &metav1.MicroTime{Time: time.Now()}
		if err := c.Client.Update(t.Context(), lease); err != nil {
			t.Fatal(err)
		}
	}
	beat(1)
	c.create(t, c.pod("first", c.withInline(gi)))
	c.settle(t, 1) // the scheduler has heard of the node by now, and not again since

	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		name := "probe" // until one is refused: the scheduler decides when silence begins
		if err := c.Client.Create(ctx, c.pod(name, c.withInline(gi))); err != nil {
			return false, err
		}
		_, waiting := c.settleAny(t)
		if len(waiting) > 0 {
			return true, nil
		}
		c.end(t, name)
		return false, nil
	})
	if err != nil {
		t.Fatalf("pods are still placed on the silent node: %v", err)
	}
	_, waiting := c.settle(t, 1)
	if message := refused(&waiting[0]); !strings.Contains(message, "silent") {
		t.Errorf("the pod waits with %q, which does not say why", message)
	}
	beat(40)
	c.settle(t, 2)
}

// settleAny waits until every pod is bound or refused.
func (b *bench) settleAny(t *testing.T) (bound, waiting []corev1.Pod) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (done bool, err error) {
		bound, waiting, err = b.pods(ctx)
		return err == nil && !slices.ContainsFunc(waiting, func(pod corev1.Pod) bool { return refused(&pod) == "" }), err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bound, waiting
}

func TestAPodThatWaitsGetsTheRoomOfOneThatEnds(t *testing.T) {
	c := newCluster(t)
	c.node(t, "a", 4*gi)
	c.create(t, c.pod("first", c.withInline(3*gi)))
	c.settle(t, 1)
	c.create(t, c.pod("second", c.withInline(3*gi)))
	c.settle(t, 1)
	c.end(t, "first")
	if bound, _ := c.settle(t, 1); names(bound) != "second" {
		t.Errorf("bound is %s, want second", names(bound))
	}
}

func TestAStaticVolumeNeedsNoRoom(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "a", 4*gi)
	c.create(t, c.pod("scratch", c.withInline(4*gi))) // fills the node
	c.settle(t, 1)
	c.create(t, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: c.class + "-static"},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: c.class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("3Gi")},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/static"}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{n.Name}}},
			}}}},
		},
	})
	c.create(t, c.pod("data", c.withClaims(t, 1, 3*gi)))
	c.settle(t, 2)
	if volumes, err := c.listVolumes(t.Context()); err != nil || len(volumes) != 0 {
		t.Errorf("%d Volumes were made for a claim that a static volume serves (%v)", len(volumes), err)
	}
}
