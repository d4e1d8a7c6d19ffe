package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

func (s *stage) drain(args ...string) (string, error) {
	cmd := newDrainCommand(s.moving())
	var out strings.Builder
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(s.t.Context())
	return out.String(), err
}

// managed is the cluster of disks whose pod has a controller, with changes of its objects.
func managed(edit func(client.Object), edits ...func(*v1alpha1.Volume)) []client.Object {
	list := disks(edits...)
	for _, o := range list {
		if p, is := o.(*corev1.Pod); is {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "set", Controller: new(true)}}
		}
		edit(o)
	}
	return list
}

func asItIs(client.Object) {}

// ofNode changes one Node.
func ofNode(name string, change func(*corev1.Node)) func(client.Object) {
	return func(o client.Object) {
		if n, is := o.(*corev1.Node); is && n.Name == name {
			change(n)
		}
	}
}

func (s *stage) exists(o client.Object, key client.ObjectKey) bool {
	err := s.Get(s.t.Context(), key, o)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *stage) hasPod() bool {
	return s.exists(&corev1.Pod{}, client.ObjectKey{Namespace: "shop", Name: "db"})
}

func (s *stage) cordoned() bool {
	n := &corev1.Node{}
	return s.exists(n, client.ObjectKey{Name: "node-1"}) && n.Spec.Unschedulable
}

var released = changes(func(o *v1alpha1.Ownership) {
	o.Primary.Phase, o.Replicas[0].Unstaged = v1alpha1.PrimaryReleased, &o.Epoch
})

func TestADrainIsForetoldAndNothingIsDone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, managed(asItIs))
	out, err := s.drain("node-1")
	if !errors.Is(err, errUnconfirmed) || out != `Node node-1 would be cordoned.
Volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa would move to node-2
  then these pods would be evicted: shop/db
` {
		t.Errorf("%v: %s", err, out)
	}
	if s.cordoned() || !s.hasPod() {
		t.Error("the node was cordoned, or the pod is gone")
	}
	if out, err := s.drain("node-3"); !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "It writes no shared disk.") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestADrainMovesVolumesToTheirStandbys(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, managed(asItIs), released, taken, written)
	out, err := s.drain("node-1", "--yes")
	if err != nil || out != `node node-1 is cordoned
pod shop/db is evicted
volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa: node node-1 has let it go
volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa: node node-2 takes it in epoch 8
volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa: node node-2 may write
node node-1 writes no shared disk any more. The rest of it: kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data
` {
		t.Errorf("%v: %s", err, out)
	}
	if !s.cordoned() || s.hasPod() {
		t.Error("the node is not cordoned, or the pod is there")
	}
}

func TestNoPodIsEvictedBeforeAStandbyIsReady(t *testing.T) {
	attaching := func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[1].State = v1alpha1.OwnedSyncing }
	stays := func(s *stage) {
		if !s.hasPod() || !s.cordoned() {
			s.t.Error("the pod was evicted although no standby is ready, or the node is not cordoned")
		}
		changes(func(o *v1alpha1.Ownership) { o.Replicas[1].State = v1alpha1.OwnedReady })(s)
	}
	s := newStage(t, interceptor.Funcs{}, managed(asItIs, attaching), stays, released, taken, written)
	out, err := s.drain("node-1", "--yes")
	if err != nil || !strings.Contains(out, "waits: no standby is ready: the replica on node node-2 is Syncing\npod shop/db is evicted\n") {
		t.Errorf("%v: %s", err, out)
	}
	s = newStage(t, interceptor.Funcs{}, managed(asItIs, attaching))
	if _, err := s.drain("node-1", "--yes", "--timeout", "3m"); err == nil || !s.hasPod() || !strings.Contains(err.Error(), "kubectl uncordon node-1") {
		t.Errorf("%v", err)
	}
}

func TestADrainOfOneOfSeveralWritersWaitsForNoStandby(t *testing.T) {
	busy := func(v *v1alpha1.Volume) { v.Status.Ownership.Replicas[1].State = v1alpha1.OwnedSyncing }
	s := newStage(t, interceptor.Funcs{}, managed(asItIs, shared, busy))
	out, err := s.drain("node-1")
	if !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "Volume "+demo+" would be let go; these nodes go on writing: node-2\n  then these pods would be evicted: shop/db\n") {
		t.Errorf("%v: %s", err, out)
	}
	letsGo := changes(func(o *v1alpha1.Ownership) {
		o.Writers[0].Phase, o.Primary.Phase, o.Replicas[0].Unstaged = v1alpha1.PrimaryReleased, v1alpha1.PrimaryReleased, &o.Epoch
	})
	s = newStage(t, interceptor.Funcs{}, managed(asItIs, shared, busy), letsGo)
	out, err = s.drain("node-1", "--yes")
	if err != nil || out != `node node-1 is cordoned
pod shop/db is evicted
volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa: node node-1 has let it go
volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa: these nodes write the volume: node-2
node node-1 writes no shared disk any more. The rest of it: kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data
` {
		t.Errorf("%v: %s", err, out)
	}
	// The node with the older epoch writes, too.
	if out, err := newStage(t, interceptor.Funcs{}, managed(asItIs, shared)).drain("node-2"); !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "these nodes go on writing: node-1\n") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAStandbyWhereThePodMayNotRunIsNone(t *testing.T) {
	for told, edit := range map[string]func(client.Object){
		"node node-2: the Node is cordoned": ofNode("node-2", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		"node node-2: the Node has the taint for=others:NoExecute": ofNode("node-2", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "for", Value: "others", Effect: corev1.TaintEffectNoExecute}}
		}),
		"node node-2: a pod that uses the volume may not run": func(o client.Object) {
			if p, is := o.(*corev1.Pod); is {
				p.Spec.NodeSelector = map[string]string{"disk": "fast"}
			}
		},
	} {
		s := newStage(t, interceptor.Funcs{}, managed(edit))
		if out, err := s.drain("node-1"); !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "would wait: no standby is where its pods may run ("+told) {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// comes has a pod with a controller bound to a node.
func comes(node string) func(*stage) {
	return func(s *stage) {
		p := podOn(node)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db", UID: "set", Controller: new(true)}}
		if err := s.Create(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
}

func TestAPodThatOpensItsVolumeBeforeTheCordonIsMovedToo(t *testing.T) {
	idle := func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryReleased }
	var s *stage
	opens := changes(func(o *v1alpha1.Ownership) {
		takenBy(o, v1alpha1.PrimaryActive)
		o.Primary.Node = "node-1"
	})
	moved := changes(func(o *v1alpha1.Ownership) {
		o.Epoch = v1alpha1.Epoch{Number: 9, ID: "nine"}
		o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: o.Epoch})
		o.Primary = v1alpha1.Primary{Node: "node-2", Boot: "boot", Phase: v1alpha1.PrimaryActive}
	})
	s = newStage(t, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
		opens(s)
		return c.Patch(ctx, o, p, opts...)
	}}, managed(asItIs, idle), released, moved)
	out, err := s.drain("node-1", "--yes")
	if err != nil || s.hasPod() || !strings.Contains(out, "pod shop/db is evicted\n") || !strings.Contains(out, "node node-2 takes it in epoch 9\n") || !strings.Contains(out, "writes no shared disk any more") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestADrainEndsWhenNoPodOnTheNodeWantsAVolume(t *testing.T) {
	again := func(s *stage) {
		written(s)
		comes("node-1")(s) // a scheduler had bound it before it knew of the cordon
	}
	s := newStage(t, interceptor.Funcs{}, managed(asItIs), released, taken, again)
	out, err := s.drain("node-1", "--yes")
	if err != nil || s.hasPod() || strings.Count(out, "pod shop/db is evicted\n") != 2 || !strings.HasSuffix(out, "--delete-emptydir-data\n") {
		t.Errorf("%v: %s", err, out)
	}
	// A pod that does not end keeps the command from saying so.
	stays := managed(func(o client.Object) {
		if p, is := o.(*corev1.Pod); is {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"shop/stays"}
		}
	}, func(v *v1alpha1.Volume) { v.Status.Ownership.Primary.Phase = v1alpha1.PrimaryReleased })
	out, err = newStage(t, interceptor.Funcs{}, stays).drain("node-1", "--yes")
	if err == nil || !strings.Contains(err.Error(), "pods on node node-1 still want 1 volumes after 5m0s") || strings.Contains(out, "evicted") || strings.Contains(out, "any more") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAPodThatComesAfterALongMoveIsWaitedForToo(t *testing.T) {
	minutes := func(n time.Duration) func(*stage) { return func(s *stage) { s.clock.Step(n * time.Minute) } }
	again := func(s *stage) {
		written(s)
		comes("node-1")(s)
	}
	s := newStage(t, interceptor.Funcs{}, managed(asItIs), released, minutes(4), taken, again, minutes(2))
	out, err := s.drain("node-1", "--yes")
	if err != nil || s.hasPod() || strings.Count(out, "pod shop/db is evicted\n") != 2 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhatIsDoneFollowsFromNoOldState(t *testing.T) {
	old := 0
	s := newStage(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		o := (&client.ListOptions{}).ApplyOptions(opts)
		if o.Raw != nil && o.Raw.ResourceVersion == "0" {
			old++
		}
		return c.List(ctx, list, opts...)
	}}, managed(asItIs), released, taken, written)
	if _, err := s.drain("node-1"); !errors.Is(err, errUnconfirmed) || old == 0 {
		t.Errorf("%v: a command that does nothing asks the cache %d times", err, old)
	}
	old = 0
	if _, err := s.drain("node-1", "--yes"); err != nil || old > 0 {
		t.Errorf("%v: %d lists may be old", err, old)
	}
}

func TestADrainWaitsForADisruptionBudget(t *testing.T) {
	refused := 2
	s := newStage(t, interceptor.Funcs{SubResourceCreate: func(ctx context.Context, c client.Client, sub string, o, body client.Object, opts ...client.SubResourceCreateOption) error {
		if refused--; refused >= 0 {
			return apierrors.NewTooManyRequests("the budget needs 1 pod", 10)
		}
		return c.SubResource(sub).Create(ctx, o, body, opts...)
	}}, managed(asItIs), func(*stage) {}, func(*stage) {}, released, taken, written)
	out, err := s.drain("node-1", "--yes")
	if err != nil || strings.Count(out, "a PodDisruptionBudget does not allow its eviction now") != 1 || !strings.Contains(out, "pod shop/db is evicted") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestADrainIsRefusedWithTheReason(t *testing.T) {
	off := ofNode("node-1", func(n *corev1.Node) { n.Status.Conditions = nil })
	for told, objects := range map[string][]client.Object{
		"kubectl berth failover " + demo + " --from node-1":      managed(off, shared),
		"no controller makes these pods anew elsewhere: shop/db": disks(),
		"kubectl berth failover " + demo:                         managed(off),
		"there is no Node node-1":                                nil,
	} {
		s := newStage(t, interceptor.Funcs{}, objects)
		if _, err := s.drain("node-1", "--yes"); err == nil || !strings.Contains(err.Error(), told) || s.cordoned() {
			t.Errorf("%v, want %q", err, told)
		}
	}
}
