package snapshot

import (
	"testing"
	"testing/synctest"

	"berth.dev/berth/api/v1alpha1"
)

// The deletion was made before the API server was restored, so the API server does not know it.
func TestASnapshotIsKeptThoughTheWatchShowsItsObjectAsDeleted(t *testing.T) {
	n := newNode(t, object(saying(ready()), deleting))
	n.take()
	n.sync()
	n.live = nil
	for range 3 {
		if _, err := n.stepStale(); err != nil {
			t.Fatal(err)
		}
	}
	if !n.has() || n.worker.Orphans.All()[id].Reason != v1alpha1.OrphanNoObject {
		t.Errorf("the snapshot is there: %v; orphans %+v", n.has(), n.worker.Orphans.All())
	}
}

// A caller that makes a volume from a snapshot holds the snapshot's lock.
func TestNothingIsDoneAboutASnapshotThatIsHeld(t *testing.T) {
	for name, test := range map[string]struct {
		snapshot *v1alpha1.Snapshot
		taken    bool
	}{
		"the worker would take the snapshot":   {object(), false},
		"the worker would remove the snapshot": {object(saying(ready()), deleting), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(t, test.snapshot)
				if test.taken {
					n.take()
				}
				unlock, err := n.locks.Lock(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := n.step()
					ended <- err
				}()
				synctest.Wait()
				if n.has() != test.taken {
					t.Errorf("it is there: %v, while it is held", n.has())
				}
				unlock()
				if err := <-ended; err != nil || n.has() == test.taken {
					t.Errorf("%v; it is there: %v, afterwards", err, n.has())
				}
			})
		})
	}
}
