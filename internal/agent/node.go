package agent

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// nodeMetadata returns an empty object for reading or watching a Node's labels without its
// status, which changes all the time.
func nodeMetadata() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	return o
}

// onNode calls f when the Node comes or goes, or its labels change. The watch also shows each
// change of the Node's status, as another version of the same metadata: onNode ignores it.
func onNode(f func()) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { f() },
		UpdateFunc: func(old, now any) {
			if !sameNode(old, now) {
				f()
			}
		},
		DeleteFunc: func(any) { f() },
	}
}

func sameNode(old, now any) bool {
	a, ok := old.(*metav1.PartialObjectMetadata)
	b, both := now.(*metav1.PartialObjectMetadata)
	return ok && both && a.UID == b.UID && maps.Equal(a.Labels, b.Labels)
}

// watchTaints has the taints of the node's own Node watched besides its metadata.
func watchTaints(watched *cache.Options, node string) {
	for o := range watched.ByObject {
		if _, metadata := o.(*metav1.PartialObjectMetadata); metadata {
			delete(watched.ByObject, o) // an entry is for a kind, in whichever form it is watched
		}
	}
	watched.ByObject[&corev1.Node{}] = cache.ByObject{
		Field: fields.OneTermEqualSelector(metav1.ObjectNameField, node),
		Transform: func(object any) (any, error) {
			if _, whole := object.(*corev1.Node); whole {
				return taintsAlone(object)
			}
			return cache.TransformStripManagedFields()(object)
		},
	}
}
