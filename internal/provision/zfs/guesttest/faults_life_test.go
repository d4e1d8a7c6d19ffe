//go:build platform

package guesttest

import (
	"berth.dev/berth/internal/provision"
)

const (
	mib = int64(1 << 20)
	// Both have the same length: one overwrites the other.
	before = "before the snapshot"
	behind = "behind the snapshot"

	zvolID, filesID         = "pvc-zvol", "pvc-files"
	zvolCopyID, filesCopyID = "pvc-zvol-restored", "pvc-files-restored"
	cloneID                 = "pvc-files-cloned"
	zvolSnapID, filesSnapID = "snap-zvol", "snap-files"
)

// The steps of a life. A loss of power comes in the middle of one: those before it were
// answered. Each can be done again.
const (
	zvolMade = iota
	filesMade
	inUse
	written
	zvolTaken
	filesTaken
	overwritten
	zvolRestored
	filesRestored
	filesCloned
	filesGrown
	filesDeleted
	zvolDropped
	zvolCopyDeleted
	zvolGrown
	filesCopyDeleted
	filesDropped
	cloneDeleted
	lived
)

// makes are the steps that make a volume, and grows those that make one larger.
var (
	makes = []int{zvolMade, filesMade, zvolRestored, filesRestored, filesCloned}
	grows = []int{filesGrown, zvolGrown}
)

// life makes a zvol and a dataset, copies them in every way, and deletes volumes and snapshots
// that depend on each other. In some steps it waits until leftovers are swept up. After the
// other steps the sweep goes on during the next step.
var life = [lived]func(n *powered){
	zvolMade:         func(n *powered) { n.make(zvolID, 4, "", provision.Source{}) },
	filesMade:        func(n *powered) { n.make(filesID, 4, provision.Dataset, provision.Source{}) },
	inUse:            func(n *powered) { n.use(filesID) },
	written:          func(n *powered) { n.put(zvolID, before); n.put(filesID, before) },
	zvolTaken:        func(n *powered) { n.take(zvolSnapID, zvolID) },
	filesTaken:       func(n *powered) { n.take(filesSnapID, filesID) },
	overwritten:      func(n *powered) { n.put(zvolID, behind); n.put(filesID, behind) },
	zvolRestored:     func(n *powered) { n.make(zvolCopyID, 8, "", provision.Source{Snapshot: zvolSnapID}) },
	filesRestored:    func(n *powered) { n.make(filesCopyID, 4, provision.Dataset, provision.Source{Snapshot: filesSnapID}) },
	filesCloned:      func(n *powered) { n.make(cloneID, 4, provision.Dataset, provision.Source{Volume: filesID}) },
	filesGrown:       func(n *powered) { n.grow(filesID, 8) },
	filesDeleted:     func(n *powered) { n.delete(filesID); n.Wait() },
	zvolDropped:      func(n *powered) { n.drop(zvolSnapID) },
	zvolCopyDeleted:  func(n *powered) { n.delete(zvolCopyID) },
	zvolGrown:        func(n *powered) { n.grow(zvolID, 8) },
	filesCopyDeleted: func(n *powered) { n.delete(filesCopyID); n.Wait() },
	filesDropped:     func(n *powered) { n.drop(filesSnapID) },
	cloneDeleted:     func(n *powered) { n.delete(cloneID) },
}

func (n *powered) make(id string, size int64, filesystem string, from provision.Source) {
	n.Helper()
	_, err := n.Create(n.Context(), provision.CreateRequest{ID: id, Pool: ref, Size: size * mib, Tree: filesystem, Source: from})
	n.must(err)
}

func (n *powered) grow(id string, size int64) {
	n.Helper()
	_, err := n.Expand(n.Context(), provision.ExpandRequest{ID: id, Size: size * mib})
	n.must(err)
}

func (n *powered) use(id string) {
	n.Helper()
	_, err := n.Format(n.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Dataset})
	n.must(err)
}

func (n *powered) take(id, of string) {
	n.Helper()
	_, err := n.Snapshot(n.Context(), provision.SnapshotRequest{ID: id, Volume: of})
	n.must(err)
}

func (n *powered) drop(id string) {
	n.Helper()
	n.must(n.DeleteSnapshot(n.Context(), id))
}

func (n *powered) delete(id string) {
	n.Helper()
	n.unused(id)
	n.must(n.Delete(n.Context(), id))
}
