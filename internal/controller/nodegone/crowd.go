package nodegone

import (
	"time"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// crowd is how many nodes may be gone at once before it looks like a mistake.
	crowd = 3
	// lately is how long a node that is gone counts though nothing of it is to be released.
	lately = 24 * time.Hour
)

// Crowd is how many nodes with volumes went lately, or have claims that are to be
// released, and how many nodes there are with them.
type Crowd struct{ Gone, Known int }

// tooMany is whether so many are gone that it is taken for a mistake.
func (c Crowd) tooMany() bool { return c.Gone > crowd || 2*c.Gone > c.Known }

// CrowdOf counts the nodes that are gone, by their Volumes; nodes are those that have a Node.
// due is whether the claim of a Volume that says that it is kept would be released now: its class
// was changed, or the claim came to be.
func CrowdOf(volumes []v1alpha1.Volume, nodes map[string]bool, now time.Time, due func(*v1alpha1.Volume) bool) Crowd {
	gone := map[string]bool{}
	for i := range volumes {
		v := &volumes[i]
		for _, r := range v.Spec.Replicas {
			if !nodes[r.Node] && !gone[r.Node] && counts(v, now, due) {
				gone[r.Node] = true
			}
		}
	}
	return Crowd{Gone: len(gone), Known: len(gone) + len(nodes)}
}

// counts is whether a Volume makes its missing node one of the crowd. A node that died long
// ago, and whose claims stay or were released, is no sign of anything.
func counts(v *v1alpha1.Volume, now time.Time, due func(*v1alpha1.Volume) bool) bool {
	m := mark(v)
	settled := m.Reason == ReasonKept || m.Reason == ReasonReleased
	return !settled || now.Sub(m.LastTransitionTime.Time) < lately || m.Reason == ReasonKept && due(v)
}
