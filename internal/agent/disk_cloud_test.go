package agent

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/attacher"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/provision/shared/simcloud"
)

const ofCloud = simcloud.Scheme + ":///disk"

// inCloud makes the volume a disk of a cloud, and runs the controller that attaches it.
func inCloud(t *testing.T) (*scene, *simcloud.Cloud) {
	t.Helper()
	m := newMedium()
	cloud := simcloud.New(simcloud.Config{Clock: clock.RealClock{}, Attach: time.Second, Detach: time.Second})
	if err := cloud.Create(t.Context(), ofCloud, simcloud.Spec{Identity: diskIdentity, Bytes: int64(len(m.data)), Shares: 2}); err != nil {
		t.Fatal(err)
	}
	m.target, _ = cloud.Disk(ofCloud)
	s := newShared(t, func(s *scene, node string) machinery {
		name := s.nodes[node].name
		cloud.AddMachine(name)
		n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}} // as the agent of pools makes it
		if err := s.Client.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(t.Context()), n) })
		made := m.machineryOf(node, cloud.Kernel(name, ofCloud))
		made.Disks = func(book ordered.Book) shared.Disks {
			return shared.Schemes(map[string]shared.Disks{simcloud.Scheme: ordered.New(cloud.Machine(name), book, clock.RealClock{})})
		}
		return made
	}, func(v *v1alpha1.Volume) { v.Spec.Replication.Attachments.Disk.Handle = ofCloud })
	for _, n := range s.nodes {
		attaches(t, attacher.New(cloud, attacher.Objects{
			Cached: s.oversight, Live: s.oversight, Status: s.oversight, Scheme: simcloud.Scheme, Clock: clock.RealClock{},
		}, clock.RealClock{}), n.name)
	}
	return s, cloud
}

// attaches carries out the orders of a node as they come, until the test ends.
func attaches(t *testing.T, a *attacher.Attacher, node string) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for range tick.C {
			if _, err := a.Carry(t.Context(), node); t.Context().Err() != nil {
				return
			} else if err != nil {
				t.Errorf("carrying out the orders of %s: %v", node, err)
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}

func TestADiskThatAControllerAttachesMovesFromNodeToNodeWithItsData(t *testing.T) {
	s, cloud := inCloud(t)
	movesWithItsData(s)
	if at := cloud.At(ofCloud); !slices.Contains(at, s.nodes[alpha].name) {
		t.Errorf("the disk is attached to %q", at)
	}
}
