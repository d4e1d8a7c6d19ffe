package native

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestACgroupIsMadeWhileAnotherNodeRemovesTheEmptyParent(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "lab")
	for range 3000 {
		var other sync.WaitGroup
		other.Go(func() {
			for range 10 {
				_ = os.Remove(parent) // fails while it does not exist, or has a child
			}
		})
		if err := makeCgroup(filepath.Join(parent, "node1")); err != nil {
			t.Fatal(err)
		}
		other.Wait()
		if err := os.RemoveAll(parent); err != nil {
			t.Fatal(err)
		}
	}
}
