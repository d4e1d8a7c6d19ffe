package native

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestACgroupIsMadeWhileAnotherNodeRemovesTheEmptyParent(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "lab")
	var others sync.WaitGroup
	made := make(chan struct{})
	others.Go(func() {
		for {
			select {
			case <-made:
				return
			default:
				_ = os.Remove(parent) // fails while it does not exist, or has a child
			}
		}
	})
	for range 2000 {
		if err := makeCgroup(filepath.Join(parent, "node1")); err != nil {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(parent, "node1")); err != nil {
			t.Error(err)
		}
	}
	close(made)
	others.Wait()
}
