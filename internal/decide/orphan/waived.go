package orphan

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Lost is data of an object that is being deleted, in a pool that is not on the node.
type Lost struct {
	// Name of the volume or the snapshot, and Pool that it was in.
	Name, Pool string
	// Deleted is the object's deletion timestamp.
	Deleted metav1.Time
}

// Waived says whether the StorageNode names the data in spec.forget, for that deletion. Then the
// object may go without its data. If the pool comes back, the data is an orphan.
func Waived(n *v1alpha1.StorageNode, l Lost, now time.Time) bool {
	return slices.ContainsFunc(n.Spec.Forget, func(f v1alpha1.ForgottenOrphan) bool {
		return f.Name == l.Name && f.Pool == l.Pool && f.Since.Equal(&l.Deleted) && now.Sub(f.At.Time).Abs() <= v1alpha1.ForgetValid
	})
}
