package upkeep

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/internal/usecase"
)

// tidyMetadata corrects finalizer, labels and the annotation of forgotten nodes, and says whether
// it changed any. An object under deletion does not wait for nodes whose labels are forgotten.
func tidyMetadata(o client.Object, finalizer string, at usecase.Placed, nodes usecase.Nodes, forgotten map[string]bool) bool {
	changed := endWords(o, nodes)
	if o.GetDeletionTimestamp() != nil {
		waits := slices.ContainsFunc(at.Holders(nodes), func(h usecase.Holder) bool { return !forgotten[h.Label] })
		return !waits && controllerutil.RemoveFinalizer(o, finalizer) || changed
	}
	changed = controllerutil.AddFinalizer(o, finalizer) || changed
	labels := at.NodeLabels(nodes)
	if !maps.Equal(labels, o.GetLabels()) {
		o.SetLabels(labels)
		changed = true
	}
	return changed
}
