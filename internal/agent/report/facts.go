package report

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// Facts are the inputs of a report besides the pools, most of them from the API server.
type Facts struct {
	// Node is the metadata of the Node; nil when there is no such Node (any more).
	Node           *metav1.PartialObjectMetadata
	PoolClasses    []v1alpha1.PoolClass
	StorageClasses []storagev1.StorageClass
	// Expected are the pools that hold, or are to hold, volumes of this node.
	Expected []string
	// Orphans are volumes and snapshots in the pools that no object accounts for, by
	// name.
	Orphans map[string]orphans.Orphan
	// Remembered are the pools that a class asks Berth to make and that the previous report
	// lists: Berth makes a pool only once.
	Remembered []string
	// Standings are how the wishes for pools stand.
	Standings []wish.Standing
	// Accounted are the replicas that Volumes account for.
	Accounted map[replica]bool
	// Revision that the watch of the Volumes had reached when these facts were read; empty
	// if not known.
	Revision string
	// Owed is the revision that has to be reported; empty if any will do.
	Owed string
}

// serving returns the classes that a pool serves on this node, by name.
func (f Facts) serving(p provision.Pool) []v1alpha1.PoolClass {
	var serving []v1alpha1.PoolClass
	for _, c := range f.PoolClasses {
		if poolclass.Serves(&c, p, f.labels()) {
			serving = append(serving, c)
		}
	}
	slices.SortFunc(serving, func(a, b v1alpha1.PoolClass) int { return compare(a.Name, b.Name) })
	return serving
}

func (f Facts) labels() map[string]string {
	if f.Node == nil {
		return nil
	}
	return f.Node.GetLabels()
}
