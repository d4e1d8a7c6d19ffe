package agent

import (
	"context"
	"sync/atomic"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// slow is a node that copies its sources for a long time.
type slow struct {
	poold.Node
	busy atomic.Bool
}

func (n *slow) seen(v provision.Volume) provision.Volume {
	v.Copying = n.busy.Load() && v.Source != (provision.Source{})
	return v
}

func (n *slow) Create(ctx context.Context, r provision.CreateRequest) (provision.Volume, error) {
	v, err := n.Node.Create(ctx, r)
	return n.seen(v), err
}

func (n *slow) Get(ctx context.Context, id string) (provision.Volume, error) {
	v, err := n.Node.Get(ctx, id)
	return n.seen(v), err
}

func (n *slow) Report(ctx context.Context) ([]provision.Pool, error) {
	pools, err := n.Node.Report(ctx)
	for i := range pools {
		for j := range pools[i].Volumes {
			pools[i].Volumes[j] = n.seen(pools[i].Volumes[j])
		}
	}
	return pools, err
}

func (n *slow) DeleteSnapshot(ctx context.Context, id string) error {
	if n.busy.Load() {
		return provision.ErrInUse
	}
	return n.Node.DeleteSnapshot(ctx, id)
}

func TestASnapshotThatIsDeletedWhileAVolumeIsMadeFromItGoesAfterwards(t *testing.T) {
	s := newSite(t, "")
	n := &slow{Node: s.node}
	n.busy.Store(true)
	s.node = n
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.write("a", "what was")
	s.create(s.snapshot("s", "a"))
	defer s.free()
	await(t, "the snapshot", s.tells("s", v1alpha1.SnapshotReady, v1alpha1.ReasonTaken))
	s.create(s.volume("b", s.from("s", "", "1Gi")))
	defer s.finish("b")
	await(t, "the copy to begin", s.says("b", v1alpha1.ReplicaCopying, v1alpha1.ReasonCopying))
	if e := s.entry("b"); e.Ready || e.Capacity.Value() != gib || e.Allocated.Value() != gib {
		t.Errorf("entry %+v", e)
	}
	if err := s.Client.Delete(t.Context(), s.getSnapshot("s")); err != nil {
		t.Fatal(err)
	}
	await(t, "the refusal", s.tells("s", v1alpha1.SnapshotFailed, v1alpha1.ReasonInUse))
	n.busy.Store(false)
	if err := s.disks.PutForeign(s.pool, "noise", mib); err != nil { // the pool signals a change
		t.Fatal(err)
	}
	await(t, "the copy", s.says("b", isReady, v1alpha1.ReasonCarved))
	await(t, "the snapshot to go", s.tells("s", v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved))
	if got := s.read("b"); got != "what was" {
		t.Errorf("the copy holds %q", got)
	}
}
