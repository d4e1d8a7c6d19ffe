package replica

import (
	"testing"
	"testing/synctest"

	"berth.dev/berth/api/v1alpha1"
)

// lost is a node with data whose Volume is gone, while the watch still shows the Volume.
func lost(t *testing.T, shown ...option) *node {
	t.Helper()
	n := newNode(volume(append([]option{on(here), saying(ready("1Gi", "1Gi"))}, shown...)...))
	n.carve(t, "ext4")
	n.drop()
	return n
}

// The deletion was made before the API server was restored, so the API server does not know it.
func TestDataIsKeptThoughTheWatchShowsItsVolumeAsDeleted(t *testing.T) {
	n := lost(t, deleting)
	for range 3 {
		if _, err := n.stepStale(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !n.has() || n.worker.Orphans.All()[id].Reason != v1alpha1.OrphanNoObject {
		t.Errorf("the data is there: %v; orphans %+v", n.has(), n.worker.Orphans.All())
	}
}

// Stage holds the lock while it formats and mounts the volume that the worker would remove.
func TestNothingIsDoneAboutAVolumeThatIsBeingStaged(t *testing.T) {
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		carved bool
	}{
		"the worker would carve the volume":  {volume(on(here)), false},
		"the worker would remove the volume": {volume(on(here), saying(ready("1Gi", "1Gi")), deleting), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNode(test.volume)
				if test.carved {
					n.carve(t, "ext4")
				}
				unlock, err := n.worker.Locks.Lock(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				ended := make(chan error, 1)
				go func() {
					_, err := n.step(t.Context())
					ended <- err
				}()
				synctest.Wait()
				if n.has() != test.carved {
					t.Errorf("the data is there: %v, while it is staged", n.has())
				}
				unlock()
				if err := <-ended; err != nil || n.has() == test.carved {
					t.Errorf("%v; the data is there: %v, afterwards", err, n.has())
				}
			})
		})
	}
}
