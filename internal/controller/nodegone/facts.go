package nodegone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Facts are what is known of a Volume, its node and its claim.
type Facts struct {
	Volume *v1alpha1.Volume
	Node   string
	// Present is whether there is a Node of that name.
	Present bool
	// Class of the volume; nil if there is none of that name.
	Class *v1alpha1.PoolClass
	// PersistentVolume of the volume, and the very claim that it is bound to; nil if there
	// is none.
	PersistentVolume *corev1.PersistentVolume
	Claim            *corev1.PersistentVolumeClaim
	Watched          Watched
	Crowd            Crowd
	Now              time.Time
}

// Watched is what this process has seen of a node's absence.
type Watched struct {
	// For how long, by a clock that does not jump.
	For time.Duration
	// Whole is whether it has seen all that the Volume's mark counts.
	Whole bool
}

// settle is how long a process must have seen a node's absence that it did not see begin:
// time for nodes and people to come back, after whatever befell the one before.
const settle = 10 * time.Minute

// left is how much longer this process has to see the absence.
func (w Watched) left(after time.Duration) time.Duration {
	if !w.Whole {
		after = min(after, settle)
	}
	return after - w.For
}

// mark is the Volume's condition NodeGone; zero if it has none.
func mark(v *v1alpha1.Volume) metav1.Condition {
	if c := meta.FindStatusCondition(v.Status.Conditions, Condition); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// counting is whether the delay counts since a mark's last transition. It does not while
// the claim is kept: a class that is told to release claims later gives nodes that went before
// the whole delay.
func counting(m metav1.Condition) bool {
	return m.Status == metav1.ConditionTrue && m.Reason != ReasonKept
}

// onlyOn is whether a node has the only copy of a Volume.
func onlyOn(v *v1alpha1.Volume, node string) bool {
	if len(v.Spec.Replicas) != 1 || v.Spec.Replicas[0].Node != node || v.Spec.Replication.Factor > 1 {
		return false
	}
	for _, e := range v.Status.Replicas {
		if e.Node != node && e.State != v1alpha1.ReplicaGone {
			return false
		}
	}
	return true
}
