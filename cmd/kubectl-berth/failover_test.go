package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// stage is a cluster in which something happens each time that a command waits.
type stage struct {
	client.Client
	t     *testing.T
	acts  []func(*stage)
	clock *testingclock.FakeClock
}

func newStage(t *testing.T, funcs interceptor.Funcs, objects []client.Object, acts ...func(*stage)) *stage {
	return &stage{Client: pretend(t, funcs, objects...), t: t, acts: acts, clock: testingclock.NewFakeClock(time.Unix(3600, 0))}
}

// wait lets the next thing happen. When nothing does any more, a minute passes.
func (s *stage) wait(context.Context) error {
	if len(s.acts) == 0 {
		s.clock.Step(time.Minute)
		return nil
	}
	act := s.acts[0]
	s.acts = s.acts[1:]
	act(s)
	return nil
}

func (s *stage) moving() moving {
	return moving{t: &target{system: "berth-system"}, clock: s.clock, wait: s.wait, pause: s.wait,
		open: func(target) (client.Client, string, error) { return s.Client, "shop", nil }}
}

func (s *stage) failover(args ...string) (string, error) {
	cmd := newFailoverCommand(s.moving())
	var out strings.Builder
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	err := cmd.ExecuteContext(s.t.Context())
	return out.String(), err
}

func (s *stage) volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{}
	if err := s.Get(s.t.Context(), client.ObjectKey{Name: demo}, v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// changes has the record changed by agents and controllers.
func changes(change func(*v1alpha1.Ownership)) func(*stage) {
	return func(s *stage) {
		v := s.volume()
		change(v.Status.Ownership)
		if err := s.Status().Update(s.t.Context(), v); err != nil {
			s.t.Fatal(err)
		}
	}
}

var (
	shutOut = changes(func(o *v1alpha1.Ownership) { o.Replicas[1].Fenced = &o.Epoch })
	isOver  = changes(func(o *v1alpha1.Ownership) { o.Primary.Phase, o.FenceRequest = v1alpha1.PrimaryFenced, nil })
	taken   = changes(func(o *v1alpha1.Ownership) { takenBy(o, v1alpha1.PrimaryPreparing) })
	written = changes(func(o *v1alpha1.Ownership) { o.Primary.Phase = v1alpha1.PrimaryActive })
)

func takenBy(o *v1alpha1.Ownership, phase v1alpha1.PrimaryPhase) {
	o.Epoch = v1alpha1.Epoch{Number: 8, ID: "eight"}
	o.Lineage = append(o.Lineage, v1alpha1.Branch{Epoch: o.Epoch})
	o.Primary = v1alpha1.Primary{Node: "node-2", Boot: "boot", Phase: phase}
}

func TestAFailoverIsForetoldAndNothingIsDone(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, disks())
	out, err := s.failover("demo")
	if !errors.Is(err, errUnconfirmed) || out != `Volume vol-shareddemoaaaaaaaaaaaaaaaaaaaaaa, which node node-1 writes in epoch 7:
  node node-2 would shut node node-1 out at the disk
  on node node-1 these pods would end: shop/db
  the next pod can go on at: node-2
Node node-1 answers. Its pods would lose what they have not synced. To move its volumes without that:
  kubectl berth drain node-1
` {
		t.Errorf("%v: %s", err, out)
	}
	if r := s.volume().Status.Ownership.FenceRequest; r != nil {
		t.Errorf("asked for %+v", r)
	}
}

func TestAFailoverIsAskedForAndFollowed(t *testing.T) {
	s := newStage(t, interceptor.Funcs{}, disks(), shutOut, isOver, taken, written)
	out, err := s.failover("shop/demo", "--yes")
	if err != nil || out != `node node-2 is asked to shut node node-1 out
the disk refuses what node node-1 writes
epoch 7 of node node-1 is over, and pods that it leaves behind are ended
node node-2 takes the volume in epoch 8
node node-2 may write
` {
		t.Errorf("%v: %s", err, out)
	}
	keys := s.volume().Status.Ownership.Keys
	if last := keys[len(keys)-1]; last.Node != "node-2" || !last.Fence || last.Epoch.Number != 7 {
		t.Errorf("keys: %+v", keys)
	}
}

func TestOneOfSeveralWritersIsShutOutAndTheOthersGoOn(t *testing.T) {
	out, err := newStage(t, interceptor.Funcs{}, disks(shared)).failover("demo", "--yes")
	if err == nil || !strings.Contains(err.Error(), "several nodes write volume "+demo+" (node-1, node-2): name the one that is to be shut out with --from") || out != "" {
		t.Errorf("%v: %s", err, out)
	}
	s := newStage(t, interceptor.Funcs{}, disks(shared))
	if out, err := s.failover("demo", "--from", "node-2"); !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "which node node-2 writes in epoch 6:\n") || !strings.Contains(out, "these nodes would go on writing: node-1\n") {
		t.Errorf("%v: %s", err, out)
	}
	var asked v1alpha1.Ownership
	ends := func(s *stage) {
		changes(func(o *v1alpha1.Ownership) {
			asked = *o.DeepCopy()
			o.Replicas[0].Fenced, o.Writers[1].Phase, o.Writers[1].FenceRequest = &o.Writers[1].Epoch, v1alpha1.PrimaryFenced, nil
		})(s)
	}
	s = newStage(t, interceptor.Funcs{}, disks(shared), ends)
	if out, err := s.failover("demo", "--from", "node-2", "--yes"); err != nil || out != `node node-1 is asked to shut node node-2 out
the disk refuses what node node-2 writes
epoch 6 of node node-2 is over, and pods that it leaves behind are ended
these nodes write the volume: node-1
` {
		t.Errorf("%v: %s", err, out)
	}
	if r := asked.Writers[1].FenceRequest; r == nil || r.Executor != "node-1" || r.Epoch.Number != 6 || asked.Writers[0].FenceRequest != nil || asked.FenceRequest != nil || asked.Primary.Node != "node-1" {
		t.Errorf("asked for %+v", asked.Writers)
	}
}

func TestAFailoverGoesOnFromARecordThatHasChangedMeanwhile(t *testing.T) {
	once := true
	s := newStage(t, interceptor.Funcs{SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
		if once {
			once = false
			return apierrors.NewConflict(v1alpha1.GroupVersion.WithResource("volumes").GroupResource(), demo, nil)
		}
		return c.SubResource(sub).Update(ctx, o, opts...)
	}}, disks(), shutOut, isOver, taken, written)
	if out, err := s.failover("demo", "--yes"); err != nil || once || !strings.Contains(out, "node node-2 may write") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAFailoverAsksNobodyOnceTheEpochIsOver(t *testing.T) {
	third := func(v *v1alpha1.Volume) {
		v.Status.Ownership.Replicas = append(v.Status.Ownership.Replicas, v1alpha1.OwnedReplica{Node: "node-3", State: v1alpha1.OwnedReady})
	}
	const already = "epoch 7 of node node-1 is over already: no node is asked to shut it out\n"
	for name, test := range map[string]struct {
		meanwhile func(*stage)
		acts      []func(*stage)
		want      string
	}{
		"the next node writes": {func(s *stage) { taken(s); written(s) }, nil,
			already + "node node-2 takes the volume in epoch 8\nnode node-2 may write\n"},
		"the writer is shut out": {isOver, []func(*stage){taken, written},
			already + "node node-2 takes the volume in epoch 8\nnode node-2 may write\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var s *stage
			moved := false
			s = newStage(t, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, is := o.(*v1alpha1.Volume); is && !moved { // between the look and the question
					moved = true
					test.meanwhile(s)
				}
				return c.Get(ctx, key, o, opts...)
			}}, disks(third), test.acts...)
			out, err := s.failover("demo", "--yes", "--timeout", "1m")
			if err != nil || out != test.want {
				t.Errorf("%v: %s", err, out)
			}
			if r := s.volume().Status.Ownership.FenceRequest; r != nil {
				t.Errorf("asked for %+v", r)
			}
		})
	}
}

func TestAFailoverThatDoesNotEndSaysWhatItWaitsFor(t *testing.T) {
	waits := func(s *stage) {
		v := s.volume()
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionWaiting, Status: metav1.ConditionTrue, Reason: "BrakeHeld", Message: "too many nodes look lost"}}
		if err := s.Status().Update(s.t.Context(), v); err != nil {
			s.t.Fatal(err)
		}
	}
	_, err := newStage(t, interceptor.Funcs{}, disks(), shutOut, waits).failover("demo", "--yes", "--timeout", "2m")
	if err == nil || err.Error() != "not finished after 2m0s (too many nodes look lost); it goes on by itself: kubectl berth replicas "+demo {
		t.Errorf("%v", err)
	}
}

func TestAFailoverIsRefusedWithTheReason(t *testing.T) {
	forgets := func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Persistent = false }
	for told, args := range map[string][]string{
		"node node-3 cannot shut node node-1 out":                          {"demo", "--to", "node-3"},
		"data is neither a volume that can fail over nor the claim of one": {"data"},
	} {
		if _, err := newStage(t, interceptor.Funcs{}, disks()).failover(append(args, "--yes")...); err == nil || !strings.Contains(err.Error(), told) {
			t.Errorf("%v: %v", args, err)
		}
	}
	s := newStage(t, interceptor.Funcs{}, disks(forgets))
	if _, err := s.failover("demo", "--yes"); err == nil || !strings.Contains(err.Error(), "kubectl taint nodes node-1 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute") {
		t.Errorf("%v", err)
	}
	if s.volume().Status.Ownership.FenceRequest != nil {
		t.Error("asked for a fence that proves nothing")
	}
}

func TestAClaimThatStandsForTwoVolumesIsRefusedWithBothNames(t *testing.T) {
	other := sharedDisk()
	other.Name, other.Spec.ClaimRef = "vol-second", &v1alpha1.ClaimReference{Namespace: "shop", Name: "demo"}
	_, err := newStage(t, interceptor.Funcs{}, append(disks(), other)).failover("demo", "--yes")
	if err == nil || !strings.Contains(err.Error(), "demo stands for two volumes") || !strings.Contains(err.Error(), other.Name) || !strings.Contains(err.Error(), demo) {
		t.Errorf("%v", err)
	}
}

func TestAVolumeThatWasBoundAnewIsNotTakenForItsFirstClaim(t *testing.T) {
	// The volume was made for shop/old and retained; shop/old was made anew, and its pod runs beside.
	list := managed(asItIs, func(v *v1alpha1.Volume) {
		v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "old", UID: "gone"}
	})
	other := podOn("node-1")
	other.Name, other.UID = "other", "other"
	other.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "old"
	s := newStage(t, interceptor.Funcs{}, append(list, other))
	if out, err := s.drain("node-1"); !errors.Is(err, errUnconfirmed) || !strings.Contains(out, "these pods would be evicted: shop/db\n") {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := s.failover("old", "--yes"); err == nil || errors.Is(err, errUnconfirmed) || out != "" {
		t.Errorf("%v: %s", err, out)
	}
}
