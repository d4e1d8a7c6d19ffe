//go:build e2e && thorough

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// patient counts as counting does, and does not end when a write fails: it keeps its dead mount.
const patient = `n=$(tail -n 1 /data/log 2>/dev/null); n=${n:-0}
trap 'exit 0' TERM
while :; do
  if echo $((n+1)) | dd of=/data/log oflag=append conv=notrunc,fsync 2>/dev/null; then n=$((n+1)); echo $n; else sleep 1; fi
done`

// The path to the disk is away for longer than a session waits for it, so the filesystem shuts itself down. The pod does
// not end by itself, and its node is well but for the disk.
func TestAPodWhoseFilesystemHasShutItselfDownGoesOnWhereTheDiskIs(t *testing.T) {
	b := beginFor(t, 10*limit)
	s := newSAN(b)
	v, claim := s.volume("data-db-0")
	set := statefulSet("db", claim, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh", "-c", patient} })
	b.create(set)
	t.Cleanup(func() { b.remove(set) })
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, cut := pod.UID, pod.Spec.NodeName
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := s.acknowledges(pod)
	b.eventually("twenty writes are acknowledged", func() bool { return acknowledged.Load() >= 20 })

	steps := &failover{}
	b.lab("cut", cut, "--from", "san")
	heal := func() { b.lab("heal", cut, "--from", "san") }
	t.Cleanup(heal)
	steps.reach("the node is cut from the storage network")
	s.awaitVolume(v, "given up by the node", func(v *v1alpha1.Volume) bool {
		return stateOn(v, cut) != v1alpha1.OwnedReady || v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryReleased
	})
	steps.reach("the filesystem has shut itself down, and the node has given the epoch up")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "another pod", func(p *corev1.Pod) bool { return p.UID != first }), "ending the pod")
	steps.reach("its pod has ended")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != cut
	}), "replacing the pod")
	b.awaitRunning(pod)
	steps.reach("the next pod runs on another node")
	again := s.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	steps.reach("a write is acknowledged")
	s.isComplete(pod, acknowledged.Load())

	heal()
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	steps.reach("the node is a replica again")
	t.Log("\n" + steps.String())
}

// stateOn is the state of a node's replica.
func stateOn(v *v1alpha1.Volume, node string) v1alpha1.OwnedState {
	for _, r := range v.Status.Ownership.Replicas {
		if r.Node == node {
			return r.State
		}
	}
	return ""
}
