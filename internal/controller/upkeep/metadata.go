package upkeep

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/internal/controller/usecase"
)

// tidyMetadata corrects finalizer and labels, and says whether it changed any.
func tidyMetadata(o client.Object, finalizer string, at usecase.Placed, nodes usecase.Nodes) bool {
	if o.GetDeletionTimestamp() != nil {
		return len(at.Holders(nodes)) == 0 && controllerutil.RemoveFinalizer(o, finalizer)
	}
	changed := controllerutil.AddFinalizer(o, finalizer)
	labels := at.NodeLabels(nodes)
	if !maps.Equal(labels, o.GetLabels()) {
		o.SetLabels(labels)
		changed = true
	}
	return changed
}
