//go:build e2e && thorough

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

func TestAVolumeOnASharedDiskOutlivesTheNodeThatWritesIt(t *testing.T) {
	b := beginFor(t, 10*limit)
	s := newSAN(b)
	v, claim := s.volume("data-db-0")
	s.writer("db", claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, lost := pod.UID, pod.Spec.NodeName
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := s.acknowledges(pod)
	b.eventually("twenty writes are acknowledged", func() bool { return acknowledged.Load() >= 20 })

	steps := &failover{}
	b.lab("power", "off", lost)
	t.Cleanup(func() { b.lab("power", "on", lost) })
	steps.reach("the power is off")
	s.awaitVolume(v, "fenced", func(v *v1alpha1.Volume) bool { return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced })
	steps.reach("the node is fenced: it provably writes no more")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != lost
	}), "replacing the pod")
	steps.reach("its pod has ended, and the next is bound to another node")
	s.awaitVolume(v, "promoted", func(v *v1alpha1.Volume) bool {
		o := v.Status.Ownership
		return o.Primary.Phase == v1alpha1.PrimaryActive && o.Primary.Node == pod.Spec.NodeName
	})
	steps.reach("that node's attachment is the primary")
	b.awaitRunning(pod)
	steps.reach("the pod runs")
	again := s.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	steps.reach("a write is acknowledged")
	s.isComplete(pod, acknowledged.Load())

	b.lab("power", "on", lost)
	b.eventually("the node has attached the disk again", func() bool { return s.attached(lost) })
	steps.reach("the node that lost its power is a replica again")
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	if on := v.Status.Ownership.Primary.Node; on != pod.Spec.NodeName {
		t.Errorf("the primary is %s, and the pod is on %s", on, pod.Spec.NodeName)
	}
	s.isComplete(pod, acknowledged.Load())
	t.Log("\n" + steps.String())
}

// A target that forgets its reservations when it restarts shuts no writer out, so nothing fails over by itself,
// unless a system says that the power of the node is off. The lab's switch is such a system.
func TestAVolumeWithoutLastingReservationsGoesOnWhenThePowerOfItsNodeIsSaidToBeOff(t *testing.T) {
	b := beginFor(t, 10*limit)
	s := newSAN(b)
	s.persistent = false
	v, claim := s.volume("data-db-0")
	s.writer("db", claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, lost := pod.UID, pod.Spec.NodeName
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := s.acknowledges(pod)
	b.eventually("a write is acknowledged", func() bool { return acknowledged.Load() > 0 })

	steps := &failover{}
	b.lab("power", "off", lost, "--tell")
	t.Cleanup(func() { b.lab("power", "on", lost) })
	steps.reach("the power is off, and the Node says so")
	s.awaitVolume(v, "fenced", func(v *v1alpha1.Volume) bool { return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced })
	steps.reach("the node is fenced: it provably writes no more")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != lost
	}), "replacing the pod")
	b.awaitRunning(pod)
	again := s.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	steps.reach("a write is acknowledged")
	s.isComplete(pod, acknowledged.Load())
	t.Log("\n" + steps.String())
}

// failover has the steps of one failover, with the time at which each was reached.
type failover struct {
	names []string
	at    []time.Time
}

func (f *failover) reach(step string) {
	f.names, f.at = append(f.names, step), append(f.at, time.Now())
}

func (f *failover) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, name := range f.names {
		fmt.Fprintf(w, "%.1f s\t  %s\n", f.at[i].Sub(f.at[0]).Seconds(), name)
	}
	_ = w.Flush()
	return out.String()
}
