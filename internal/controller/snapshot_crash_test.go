package controller_test

import (
	"errors"
	"fmt"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
)

func TestACrashWhileASnapshotIsTakenConverges(t *testing.T) {
	tests := map[string]struct {
		refused bool
		writes  int
	}{
		"taken":                             {false, 1},
		"refused, given up, and then taken": {true, 2},
	}
	for name, test := range tests {
		for at := 1; at <= test.writes; at++ {
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s, write %d, before it %t", name, at, before), func(t *testing.T) {
					crashWhileTaking(t, test.refused, newCrash(at, before))
				})
			}
		}
	}
}

// crashWhileTaking takes a snapshot in a process that crashes, and again in the next.
func crashWhileTaking(t *testing.T, refused bool, c *crash) {
	cluster := newCluster(t)
	n := cluster.node(t, "n", 10*gi)
	first := controllertest.Start(t, cluster.Environment)
	r := snapshotOf(mustCreate(t, first, cluster.request(n)).ID)
	id := v1alpha1.SnapshotName(r.Name)
	first.Stop(t)
	if refused {
		n.SetFailure(v1alpha1.ReasonNoSpace, "full")
	}
	crashing := controllertest.Start(t, cluster.Environment, controllertest.WithWrap(c.wrap))
	if _, err := crashing.Snapshots.Create(within(t), r); !errors.Is(err, errCrash) {
		t.Fatalf("the call ended with %v and not with the process", err)
	}
	crashing.Stop(t)
	n.SetFailure("", "")

	next := controllertest.Start(t, cluster.Environment)
	controllertest.EventuallySnapshot(t, cluster.Environment, id, func(*v1alpha1.Snapshot) error {
		_, err := next.Snapshots.Create(within(t), r)
		return err
	})
	if size, taken := n.Taken(id); !taken || size != gi {
		t.Errorf("the node has %d bytes of it, %t", size, taken)
	}
	if err := next.Snapshots.Delete(within(t), id); err != nil {
		t.Fatal(err)
	}
	controllertest.EventuallySnapshot(t, cluster.Environment, id, noSnapshot)
}
