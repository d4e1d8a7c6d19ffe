package report

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
)

// Revisions follow how far the agent's watch of its Volumes has come.
//
// A scheduler that sees a Volume vanish cannot know whether its data went too. It
// counts the data on until the node has spoken in the knowledge of the deletion.
// So a deletion has to be answered by a report, even if no figure changes. That the
// node had said in the Volume that the replica was gone is no answer: what the replica
// took may be cleared away still, and only a report tells.
type Revisions struct {
	node   string
	latest func() string

	mu   sync.Mutex
	owed string
}

// NewRevisions follows a node's Volumes; latest is the revision up to which the
// watch's store has come, empty while that is not known.
func NewRevisions(node string, latest func() string) *Revisions {
	return &Revisions{node: node, latest: latest}
}

// Latest is the revision that the store has come to.
func (r *Revisions) Latest() string { return r.latest() }

// Owed is the revision that the next report has to have come to.
func (r *Revisions) Owed() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.owed
}

// Deleted takes in that the watch no longer shows an object, as its handler is
// told.
func (r *Revisions) Deleted(object any) {
	revision := r.latest() // what a missed deletion left is known to be as new as this
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

// before says whether a revision comes before another. None comes before every
// one, and nothing comes before none.
func before(a, b string) bool {
	if a == "" || b == "" {
		return a == "" && b != ""
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
