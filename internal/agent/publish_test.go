package agent

import (
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

func TestCapacityFollowsTheFirstSecond(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, "")
	s.clock = clock
	pc, sc := s.classes()
	s.create(pc, sc)
	s.start()
	await(t, "the first capacity", func() bool { return s.capacity() == "10Gi" })
	writes := s.traffic.count("PATCH", "")
	for range 16 { // all within one second, by the agent's clock
		if err := s.disks.PutForeign(s.pool, fmt.Sprint(s.traffic.count("PATCH", ""), clock.Now().UnixNano()), 64*mib); err != nil {
			t.Fatal(err)
		}
		clock.Step(10 * time.Millisecond)
	}
	if n := s.traffic.count("PATCH", "") - writes; n != 0 {
		t.Errorf("%d writes within the second", n)
	}
	left := resource.NewQuantity(10*gib-16*64*mib, resource.BinarySI).String()
	await(t, "the capacity after all changes", func() bool {
		clock.Step(time.Second) // more than once: the last change may come after a write that this step let through
		return s.capacity() == left
	})
}

func TestARefusalIsSeenInTheCapacityThatTheSchedulerReads(t *testing.T) {
	s := newSite(t, "")
	pc, sc := s.classes()
	s.create(pc, sc)
	s.start()
	await(t, "the first capacity", func() bool { return s.capacity() == "10Gi" })
	if err := s.disks.PutForeign(s.pool, "root", 9*gib+512*mib); err != nil {
		t.Fatal(err)
	}
	s.create(s.volume("a"))
	defer s.finish("a")
	await(t, "the refusal", s.says("a", v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace))
	await(t, "a capacity that does not invite again", func() bool { return s.capacity() == "512Mi" })
}

func TestAClassThatComesAndGoesTakesItsCapacityAlong(t *testing.T) {
	s := newSite(t, "")
	pc, sc := s.classes()
	pc.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "ssd"}}
	s.create(pc, sc)
	s.start()
	await(t, "the first report", func() bool { return s.storageNode() != nil })
	if s.capacity() != "" {
		t.Error("a capacity is published for a node that is not selected")
	}
	s.label(map[string]string{"disk": "ssd"})
	await(t, "the capacity of a selected node", func() bool { return s.capacity() == "10Gi" })
	s.label(nil)
	await(t, "the capacity to go with the label", func() bool { return s.capacity() == "" })
}

// label sets the labels of the site's Node.
func (s *site) label(labels map[string]string) {
	s.t.Helper()
	n := &corev1.Node{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.name}, n); err != nil {
		s.t.Fatal(err)
	}
	n.Labels = labels
	if err := s.Client.Update(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
}

func TestADeletedReportAndCapacityArePublishedAgain(t *testing.T) {
	s := newSite(t, "")
	pc, sc := s.classes()
	s.create(pc, sc)
	s.start()
	await(t, "the first capacity", func() bool { return s.capacity() == "10Gi" })
	if err := s.Client.Delete(t.Context(), s.storageNode()); err != nil {
		t.Fatal(err)
	}
	err := s.Client.DeleteAllOf(t.Context(), &storagev1.CSIStorageCapacity{}, client.InNamespace(apitest.Namespace), client.MatchingLabelsSelector{Selector: ownCapacities(s)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "both again", func() bool { return s.storageNode() != nil && s.capacity() == "10Gi" })
}

func TestTheAgentSaysThatItIsAlive(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s := newSite(t, "")
	s.clock = clock
	s.start()
	lease := func() *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		if s.Client.Get(t.Context(), client.ObjectKey{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + s.name}, l) != nil {
			return nil
		}
		return l
	}
	await(t, "the first heartbeat", func() bool { return lease() != nil })
	first := lease().Spec.RenewTime
	await(t, "another one", func() bool {
		clock.Step(time.Second)
		return lease().Spec.RenewTime.After(first.Time)
	})
}
