package report

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

// Revisions follow how far the agent's watch of its Volumes has come.
//
// A scheduler that sees a Volume vanish cannot know whether its data went too. It keeps
// counting the data until the node reports with knowledge of the deletion. So the agent
// answers a deletion with a report, even if no figure changes. If the node's entry in the
// Volume said before that the replica was gone, that is no answer: the node may still be
// wiping the replica, and only a report tells that.
type Revisions struct {
	node   string
	latest func() string

	mu   sync.Mutex
	owed string
}

// NewRevisions follows a node's Volumes; latest returns the revision up to which the
// watch's store has come, empty while that is not known.
func NewRevisions(node string, latest func() string) *Revisions {
	return &Revisions{node: node, latest: latest}
}

// Latest returns the revision that the store has come to.
func (r *Revisions) Latest() string { return r.latest() }

// Owed returns the revision that the next report has to reach.
func (r *Revisions) Owed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owed
}

// Deleted notes that the watch no longer shows an object. The watch's handler calls it.
func (r *Revisions) Deleted(object any) {
	revision := r.latest() // a deletion that the watch missed is at most as new as this
	if v, ok := object.(*v1alpha1.Volume); ok {
		revision = v.ResourceVersion
	} else if _, missed := object.(cache.DeletedFinalStateUnknown); !missed {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before(r.owed, revision) {
		r.owed = revision
	}
}

// before says whether a revision comes before another. The empty revision comes before
// every other one, and nothing comes before it.
func before(a, b string) bool {
	if a == "" || b == "" {
		return a == "" && b != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
