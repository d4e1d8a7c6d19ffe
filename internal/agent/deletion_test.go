package agent

import (
	"context"
	"sync/atomic"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// behind is a node that reports nothing more once something was deleted, until it catches
// up. It counts how often the agent looks for a volume that is not there.
type behind struct {
	poold.Node
	deleted  atomic.Bool
	caughtUp chan struct{}
	lookups  atomic.Int32
}

func (n *behind) Delete(ctx context.Context, id string) error {
	n.deleted.Store(true)
	return n.Node.Delete(ctx, id)
}

func (n *behind) Get(ctx context.Context, id string) (provision.Volume, error) {
	v, err := n.Node.Get(ctx, id)
	if err != nil {
		n.lookups.Add(1)
	}
	return v, err
}

func (n *behind) Report(ctx context.Context) ([]provision.Pool, error) {
	if n.deleted.Load() {
		select {
		case <-n.caughtUp:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return n.Node.Report(ctx)
}

func TestADeletedVolumeIsNotLookedForThoughTheLatestReportShowsIt(t *testing.T) {
	s := newSite(t, "")
	n := &behind{Node: s.node, caughtUp: make(chan struct{})}
	s.node = n
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	a := s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the report of it", func() bool { return a.observer.MayHaveVolume(v1alpha1.VolumeName(s.name + "a")) })
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	await(t, "the data to go", s.says("a", isGone, v1alpha1.ReasonRemoved))
	s.finish("a")
	// The agent's next action for another volume shows that it has seen the end of this one.
	s.create(s.volume("b"))
	defer s.finish("b")
	await(t, "another replica", s.says("b", isReady, v1alpha1.ReasonCarved))
	if looked := n.lookups.Load(); looked != 0 {
		t.Errorf("it was looked for %d times", looked)
	}
	close(n.caughtUp)
}
