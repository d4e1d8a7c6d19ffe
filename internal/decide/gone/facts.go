package gone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Facts describe a Volume, its node and its claim.
type Facts struct {
	Volume *v1alpha1.Volume
	Node   string
	// Present says whether there is a Node of that name.
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

// Watched says for how long this process has seen a node missing.
type Watched struct {
	// For is that time, by a clock that does not jump.
	For time.Duration
	// Whole says that For covers all the time that the Volume's mark counts.
	Whole bool
}

// Settle is how long a process must see a node missing if it did not see the absence begin.
// It gives nodes and people time to come back after a failure that ended the process before.
const Settle = 10 * time.Minute

// left is how much longer this process has to see the node missing.
func (w Watched) left(after time.Duration) time.Duration {
	if !w.Whole {
		after = min(after, Settle)
	}
	return after - w.For
}

// MarkOf is the Volume's condition NodeGone; zero if it has none.
func MarkOf(v *v1alpha1.Volume) metav1.Condition {
	if c := meta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionNodeGone); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// Counting reports whether the delay counts from a mark's last transition. It does not while
// the claim is kept: if its class is later changed to release claims, nodes that went before
// still get the whole delay.
func Counting(m metav1.Condition) bool {
	return m.Status == metav1.ConditionTrue && m.Reason != v1alpha1.ReasonClaimKept
}

// onlyOn reports whether a node has the only copy of a Volume.
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
