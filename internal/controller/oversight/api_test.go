package oversight_test

import (
	"context"
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/guard"
	guardlease "berth.dev/berth/internal/guard/lease"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

const boot = "boot-1"

var (
	epochs = driver.Driver{Name: "disk.berth.dev", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, Kind: ownership.Snapshots}
	e1, e2 = lineage.Epoch{Number: 1, ID: "one"}, lineage.Epoch{Number: 2, ID: "two"}
	first  = lineage.Point{Epoch: e1, Seq: 1}
	nodes  = []string{"n1", "n2", "n3"}
)

// answers are those of the replicas.
type answers []ownership.Peer

func (a answers) Ask(_ context.Context, _ string, asked []string) (given []ownership.Peer) {
	for _, p := range a {
		if slices.Contains(asked, p.Node) {
			given = append(given, p)
		}
	}
	return given
}

// lives renews the leases of a node, as its guard, agent and kubelet do, until it is told to stop.
func (s *scene) lives(node string) (dies context.CancelFunc) {
	ctx, dies := context.WithCancel(s.t.Context())
	l := &guardlease.Lease{Client: s.Guard(s.t, node), Node: node, Namespace: apitest.Namespace, Boot: boot, Now: s.clock.Now}
	agent := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + node}}
	kubelet := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: node}}
	s.create(agent)
	s.create(kubelet)
	began, answered := s.clock.Now(), s.clock.Now()
	go func() {
		ticks := s.clock.NewTicker(5 * time.Second)
		defer ticks.Stop()
		for ctx.Err() == nil {
			sent := s.clock.Now()
			err := l.Renew(ctx, func([]string) (guard.Renewal, error) {
				return guard.Renewal{Watchdog: true, Sent: sent.Sub(began), Silent: sent.Sub(answered)}, nil
			})
			if err == nil {
				answered = sent
			}
			for _, o := range []*coordinationv1.Lease{agent, kubelet} {
				before := client.MergeFrom(o.DeepCopy())
				o.Spec.RenewTime = &metav1.MicroTime{Time: sent}
				if s.Client.Patch(ctx, o, before) != nil {
					break // it is over
				}
			}
			select {
			case <-ctx.Done():
			case <-ticks.C():
			}
		}
	}()
	return dies
}

// await returns how long something takes, on the fast clock.
func (s *scene) await(what string, since time.Time, is func() bool) time.Duration {
	s.t.Helper()
	deadline := time.NewTimer(3 * time.Minute) // a machine that compiles at the same time is slow, not broken
	defer deadline.Stop()
	for !is() {
		select {
		case <-deadline.C:
			s.t.Fatalf("it did not come to this: %s; the steps were %v", what, s.taken())
		case <-s.clock.After(40 * time.Millisecond):
		}
	}
	took := s.clock.Since(since)
	s.t.Logf("%6.2f s  %s", took.Seconds(), what)
	return took
}

func (s *scene) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

func (s *scene) fenced() bool {
	v := controllertest.Volume(s.t, s.Environment, s.id)
	return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced
}

// has tells whether an object of that name exists.
func has[T client.Object](s *scene, o T, namespace, name string) bool {
	s.t.Helper()
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func (s *scene) podEnded() bool { return !has(s, &corev1.Pod{}, "default", "db") }

func copies() *ownership.Volume {
	v := &ownership.Volume{
		Kind: ownership.Snapshots, Factor: 3, Size: 1 << 30, Epoch: e2, RecoveryPoint: first, Lineage: lineage.Lineage{{Epoch: e1}, {Epoch: e2, From: first}},
		Primary:  ownership.Primary{Node: "n1", Boot: boot, Phase: ownership.Active},
		Failover: ownership.Failover{Automatic: true, MaxDataLoss: time.Minute},
	}
	for _, n := range nodes {
		v.Replicas = append(v.Replicas, ownership.Replica{Node: n, State: ownership.Ready, Point: first})
	}
	return v
}

func TestATaintFencesThePrimaryOnARealAPIServer(t *testing.T) {
	v := copies()
	v.Kind, v.Factor, v.RecoveryPoint, v.Lineage = ownership.Attachments, 2, lineage.Point{}, lineage.Lineage{{Epoch: e1}, {Epoch: e2}}
	v.Sharing, v.Replicas = ownership.Sharing{MaxShares: 2}, []ownership.Replica{{Node: "n1", State: ownership.Ready}, {Node: "n2", State: ownership.Ready}}
	s := newScene(t, v, nil)
	for _, n := range nodes[1:] {
		defer s.lives(n)()
	}
	s.attach("n1")
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	began := s.clock.Now()
	taint := []byte(`{"spec":{"taints":[{"key":"node.kubernetes.io/out-of-service","value":"nodeshutdown","effect":"NoExecute"}]}}`)
	if err := s.Client.Patch(t.Context(), n, client.RawPatch("application/merge-patch+json", taint)); err != nil {
		t.Fatal(err)
	}
	s.await("tainted -> fenced", began, s.fenced)
	s.await("tainted -> the pod ended", began, s.podEnded)
	s.await("tainted -> Kubernetes may detach the volume", began, func() bool {
		return slices.Equal(s.inUse("n1"), []corev1.UniqueVolumeName{"kubernetes.io/csi/other.example.com^a"})
	})
	if !has(s, &corev1.Pod{}, "default", "waits") {
		t.Error("the pod of the standby was ended")
	}
	s.await("tainted -> the record has been Fenced, once", began, func() bool {
		return slices.Equal(s.taken(), []string{"Fenced, losses 0, expires true"})
	})
}

func TestTheLapsedLeaseOfAGuardFencesThePrimaryOnARealAPIServer(t *testing.T) {
	answer := ownership.Copy{Exists: true, Points: []lineage.Point{first}, Promise: ownership.Promise{Epoch: e2, Primary: "n1", Boot: boot, Lineage: copies().Lineage}}
	s := newScene(t, copies(), answers{{Node: "n2", Copy: answer}, {Node: "n3", Copy: answer}})
	dies := s.lives("n1")
	for _, n := range nodes[1:] {
		defer s.lives(n)()
	}
	s.await("all nodes live", s.clock.Now(), func() bool { return s.clock.Since(s.clock.began) > 40*time.Second })
	if s.fenced() {
		t.Fatal("a living node was fenced")
	}
	dies()
	began := s.clock.Now()
	if took := s.await("silent -> fenced", began, s.fenced); took < ownership.SelfFenceAfter+ownership.SelfFenceMargin-6*time.Second {
		t.Errorf("it was fenced after %s", took)
	}
	s.await("silent -> the pod ended", began, s.podEnded)
	if !has(s, &corev1.Pod{}, "default", "waits") {
		t.Error("the pod of the standby was ended")
	}
	s.await("silent -> the record has been Fenced, once", began, func() bool {
		return slices.Equal(s.taken(), []string{"Fenced, losses 1, expires false"})
	})
}
