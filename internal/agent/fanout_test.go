package agent

import (
	"fmt"
	"testing"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/report"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/driver"
)

func ownCapacities(s *site) labels.Selector { return report.OwnCapacities(driver.Local(), s.name) }

func TestTheTrafficToAnAgentDoesNotGrowWithTheCluster(t *testing.T) {
	s := newSite(t, "")
	pc, sc := s.classes()
	s.create(pc, sc)
	s.start()
	await(t, "the first capacity", func() bool { return s.capacity() == "10Gi" })
	received := map[int]int64{}
	for _, others := range []int{10, 100} {
		received[others] = s.hears(others)
	}
	t.Logf("bytes received by other nodes: %v", received)
	// The two measurements differ by a heartbeat or a late write of the agent's own; a
	// hundred neighbours would add 200 KiB.
	if received[100] > 2*received[10]+16<<10 {
		t.Errorf("bytes received by other nodes: %v", received)
	}
}

// BenchmarkFanOut counts what an agent receives while other nodes join, each with
// all its objects, and one volume of its own is made.
func BenchmarkFanOut(b *testing.B) {
	for _, others := range []int{50, 500} {
		b.Run(fmt.Sprintf("%d-neighbours", others), func(b *testing.B) {
			s := newSite(b, "")
			pc, sc := s.classes()
			s.create(pc, sc)
			s.start()
			await(b, "the first capacity", func() bool { return s.capacity() == "10Gi" })
			var bytes int64
			for range b.N {
				bytes += s.hears(others)
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes-received")
		})
	}
}

// hears returns the bytes that the agent receives while neighbours are made, and then a
// volume of its own: by then the agent has received all events about the neighbours.
func (s *site) hears(others int) int64 {
	s.t.Helper()
	s.traffic.take()
	s.neighbours(others)
	name := fmt.Sprint("own", others)
	s.create(s.volume(name))
	defer s.finish(name)
	await(s.t, "the own replica", s.says(name, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved))
	return s.traffic.take()
}

// neighbours makes other nodes. They stay: the API server ends with the tests.
func (s *site) neighbours(count int) {
	s.t.Helper()
	var work errgroup.Group
	work.SetLimit(16)
	for i := range count {
		work.Go(func() error { return s.neighbour(fmt.Sprintf("%s-%d-%d", s.name, count, i)) })
	}
	if err := work.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// neighbour makes all objects that another node with one volume and one snapshot adds to
// a cluster.
func (s *site) neighbour(name string) error {
	capacity := resource.MustParse("1Gi")
	v := s.volume(name, func(v *v1alpha1.Volume) {
		v.Finalizers = nil
		v.Labels = map[string]string{v1alpha1.ReplicaLabel(name): ""}
		v.Spec.Replicas[0].Node = name
	})
	taken := s.snapshot(name, name)
	taken.Finalizers, taken.Labels, taken.Spec.Replicas[0].Node = nil, v.Labels, name
	for _, o := range []client.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + name}},
		&storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: name}, StorageClassName: "sc-" + s.name, Capacity: &capacity,
			NodeTopology: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TopologyKey: name}},
		},
		v, taken,
	} {
		if err := s.Client.Create(s.t.Context(), o); err != nil {
			return err
		}
	}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: name, State: v1alpha1.ReplicaReady, Ready: true, Capacity: &capacity}}
	if err := s.Client.Status().Update(s.t.Context(), v); err != nil {
		return err
	}
	now := metav1.Now()
	taken.Status.Replicas = []v1alpha1.SnapshotReplica{{
		Node: name, State: v1alpha1.SnapshotReady, Taken: &now, RestoreSize: &capacity, Allocated: &capacity, Reason: v1alpha1.ReasonTaken}}
	return s.Client.Status().Update(s.t.Context(), taken)
}
