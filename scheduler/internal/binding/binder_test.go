package binding

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

// errUpstream is how the tests see that upstream's binder was asked.
var errUpstream = errors.New("upstream was asked")

type upstream struct {
	volumebinding.SchedulerVolumeBinder
}

func (upstream) BindPodVolumes(context.Context, *corev1.Pod, *volumebinding.PodVolumes) error {
	return errUpstream
}

func TestBerthBindsAPodsClaimsOnlyIfItProvisionsAllOfThem(t *testing.T) {
	static := []*volumebinding.BindingInfo{{}}
	tests := map[string]struct {
		classes  []string
		static   []*volumebinding.BindingInfo
		upstream bool
	}{
		"one claim of Berth is bound here":                {classes: []string{"ours"}},
		"several claims of Berth are bound here":          {classes: []string{"ours", "ours"}},
		"a claim of another driver goes upstream":         {classes: []string{"theirs"}, upstream: true},
		"a claim of another driver takes ours with it":    {classes: []string{"ours", "theirs"}, upstream: true},
		"a claim whose class is gone goes upstream":       {classes: []string{"ours", "gone"}, upstream: true},
		"a static match takes the dynamic claims with it": {classes: []string{"ours"}, static: static, upstream: true},
		"nothing to provision goes upstream":              {upstream: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			volumes := &volumebinding.PodVolumes{StaticBindings: test.static}
			for i, class := range test.classes {
				volumes.DynamicProvisions = append(volumes.DynamicProvisions, c.provision(t, string(rune('a'+i)), class))
			}
			done := c.bind(t.Context(), time.Minute, volumes)
			if !test.upstream {
				for _, p := range volumes.DynamicProvisions {
					c.awaitSelected(t, p.PVC.Name)
					c.bound(t, p.PVC.Name)
				}
			}
			if err := <-done; errors.Is(err, errUpstream) != test.upstream {
				t.Errorf("BindPodVolumes: %v; upstream should have been asked: %v", err, test.upstream)
			} else if !test.upstream && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestBindingEndsWithAnErrorThatSaysWhy(t *testing.T) {
	tests := map[string]struct {
		happens func(t *testing.T, c *cluster)
		want    string
	}{
		"the provisioner takes the node away": {
			happens: func(t *testing.T, c *cluster) {
				c.change(t, "a", func(claim *corev1.PersistentVolumeClaim) { delete(claim.Annotations, volume.AnnSelectedNode) })
			},
			want: "provisioning claim a on node n1 failed",
		},
		"another scheduler chooses another node": {
			happens: func(t *testing.T, c *cluster) {
				c.change(t, "a", func(claim *corev1.PersistentVolumeClaim) { claim.Annotations[volume.AnnSelectedNode] = "n2" })
			},
			want: "provisioning claim a on node n1 failed",
		},
		"the claim is deleted": {
			happens: func(t *testing.T, c *cluster) { c.deleteClaim(t, "a") },
			want:    "looking for claim a",
		},
		"the claim is replaced by another one of its name": {
			happens: func(t *testing.T, c *cluster) {
				c.change(t, "a", func(claim *corev1.PersistentVolumeClaim) { claim.UID = "another" })
			},
			want: "claim a was replaced",
		},
		"the pod is deleted": {
			happens: func(t *testing.T, c *cluster) { c.deletePod(t) },
			want:    "the pod was deleted",
		},
		"the volume turns out to be elsewhere": {
			happens: func(t *testing.T, c *cluster) {
				c.persistentVolume(t, "a", "n2")
				c.change(t, "a", bindTo("pv-a"))
			},
			want: "does not belong on node n1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			done := c.bind(t.Context(), time.Minute, c.volumes(t, "a"))
			c.awaitSelected(t, "a")
			test.happens(t, c)
			if err := <-done; err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
		})
	}
}

func TestAnUnansweredBindingEndsAtItsDeadline(t *testing.T) {
	c := newCluster(t)
	err := <-c.bind(t.Context(), time.Millisecond, c.volumes(t, "a"))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want a deadline", err)
	}
}

func TestACancelledBindingEnds(t *testing.T) {
	c := newCluster(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := c.bind(ctx, time.Minute, c.volumes(t, "a"))
	c.awaitSelected(t, "a")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "claim a") {
		t.Errorf("got %v, want a cancellation that names the claim", err)
	}
	if left := len(c.binder.waiters.byKey); left != 0 {
		t.Errorf("%d waiters are left behind", left)
	}
}

func TestAClaimIsNotBoundBeforeItsVolumeIsSeen(t *testing.T) {
	c := newCluster(t)
	done := c.bind(t.Context(), time.Minute, c.volumes(t, "a"))
	c.awaitSelected(t, "a")
	c.change(t, "a", bindTo("pv-a"))
	c.awaitLister(t, "a", func(claim *corev1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName != "" })
	select {
	case err := <-done:
		t.Fatalf("BindPodVolumes returned %v before the PersistentVolume was seen", err)
	default:
	}
	c.persistentVolume(t, "a", "n1")
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAClaimIsNotBoundBeforeItsPhaseSaysSo(t *testing.T) {
	c := newCluster(t)
	done := c.bind(t.Context(), time.Minute, c.volumes(t, "a"))
	c.awaitSelected(t, "a")
	c.persistentVolume(t, "a", "n1")
	c.change(t, "a", func(claim *corev1.PersistentVolumeClaim) {
		bindTo("pv-a")(claim)
		claim.Status.Phase = corev1.ClaimPending // as the PersistentVolume controller leaves it between its two writes
	})
	c.awaitLister(t, "a", func(claim *corev1.PersistentVolumeClaim) bool { return claim.Spec.VolumeName != "" })
	select {
	case err := <-done:
		t.Fatalf("the binding ended with %v, the kubelet would not find the claim bound", err)
	default:
	}
	c.change(t, "a", func(claim *corev1.PersistentVolumeClaim) { claim.Status.Phase = corev1.ClaimBound })
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAStaleClaimSaysNothing(t *testing.T) {
	written := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "10"}}
	stale := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", ResourceVersion: "9"}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	bound, err := (&Binder{}).bound(written, stale, node)
	if bound || err != nil {
		t.Errorf("bound = %v, %v; want to wait: the annotation is not in the cache yet", bound, err)
	}
}
