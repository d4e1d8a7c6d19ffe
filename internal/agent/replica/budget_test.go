package replica

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision/memory"
)

// tally counts the operations that a real provisioner may need a process for.
type tally struct {
	mu     sync.Mutex
	counts map[memory.Operation]int
}

func (c *tally) Before(_ context.Context, op memory.Operation, _ string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[op]++
	return nil
}

func (*tally) After(context.Context, memory.Operation, string) error { return nil }

// take returns the counts, without Get of a volume that is there, which needs no process.
func (c *tally) take() map[memory.Operation]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts = map[memory.Operation]int{}
	return counts
}

func TestAMissingVolumeIsNotLookedFor(t *testing.T) {
	c := &tally{counts: map[memory.Operation]int{}}
	n := newNode(volume())
	n.disturb = c
	n.restart()
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[memory.Operation]int{memory.Create: 1}, c.take()); diff != "" {
		t.Errorf("operations of a create: %s", diff)
	}
	n.settle(t) // the event of the node's own report
	if diff := cmp.Diff(map[memory.Operation]int{memory.Get: 1}, c.take()); diff != "" {
		t.Errorf("operations of a look at a volume that is there: %s", diff)
	}
	n.edit(deleting)
	if _, err := n.step(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[memory.Operation]int{memory.Get: 1, memory.Delete: 1}, c.take()); diff != "" {
		t.Errorf("operations of a delete: %s", diff)
	}
	n.settle(t) // the event of the node's own report
	n.drop()
	n.settle(t) // the event of the object's deletion
	if diff := cmp.Diff(map[memory.Operation]int{}, c.take()); diff != "" {
		t.Errorf("operations after a delete: %s", diff)
	}
}

func TestAReplicaThatLeftItsNodeIsNotLookedFor(t *testing.T) {
	for name, unwanted := range map[string]option{"deleted": deleting, "moved away": on("n2")} {
		t.Run(name, func(t *testing.T) {
			c := &tally{counts: map[memory.Operation]int{}}
			n := newNode(volume(unwanted, saying(gone())))
			n.disturb = c
			n.restart()
			n.settle(t)
			if diff := cmp.Diff(map[memory.Operation]int{}, c.take()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABlockVolumeThatFoundNoRoomIsLookedForOnce(t *testing.T) {
	c := &tally{counts: map[memory.Operation]int{}}
	n := newNode(volume(block, of("99Gi")))
	n.disturb = c
	n.restart()
	for _, want := range []map[memory.Operation]int{{memory.Get: 1, memory.Create: 1}, {memory.Create: 1}} {
		if _, err := n.step(t.Context()); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, c.take()); diff != "" {
			t.Error(diff)
		}
	}
	if !sameState(n.entry(t), v1alpha1.ReplicaFailed, v1alpha1.ReasonNoSpace) {
		t.Errorf("entry %+v", n.entry(t))
	}
}
