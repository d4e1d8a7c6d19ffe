package gone

import (
	"time"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// crowd is how many nodes may be gone at once before it looks like a mistake.
	crowd = 3
	// lately is how long a gone node counts although none of its claims is to be released.
	lately = 24 * time.Hour
)

// Crowd counts nodes. Gone are those with volumes that went lately, or whose claims
// are to be released. Known are these and all nodes that have a Node object.
type Crowd struct{ Gone, Known int }

// tooMany reports whether so many nodes are gone that it looks like a mistake.
func (c Crowd) tooMany() bool { return c.Gone > crowd || 2*c.Gone > c.Known }

// CrowdOf counts the gone nodes by their Volumes; nodes are those that have a Node object. due
// reports whether the claim of a Volume that is marked as kept would be released now: its class
// was changed, or the claim was made later.
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

// counts reports whether a Volume makes its missing node count. A node that died long ago,
// and whose claims stay or were released, does not point to a mistake.
func counts(v *v1alpha1.Volume, now time.Time, due func(*v1alpha1.Volume) bool) bool {
	m := MarkOf(v)
	settled := m.Reason == v1alpha1.ReasonClaimKept || m.Reason == v1alpha1.ReasonClaimReleased
	return !settled || now.Sub(m.LastTransitionTime.Time) < lately || m.Reason == v1alpha1.ReasonClaimKept && due(v)
}
