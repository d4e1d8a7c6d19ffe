package volumes

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
)

// SelectedNode is the annotation by which a scheduler gives a claim its node.
const SelectedNode = "volume.kubernetes.io/selected-node"

// follow lets a copy be on a node, which is its source's, though a scheduler has chosen another one for
// its claim.
//
// A scheduler that knows nothing of sources chooses by room alone. A refusal tells it that the node
// was wrong and not which one is right, so that it may choose wrong ones for as long as there are
// any. A volume that is elsewhere tells it: the provisioner makes the PersistentVolume of the topology in the
// answer, the scheduler finds that its node cannot reach that, and schedules the pod again, which now
// has a bound claim. CSI would have the volume within the requisite topology; here that is a
// scheduler's tentative choice and no condition. What is one holds: allowedTopologies, and the requisite
// topology of every request that is not for a claim with a selected node.
func (a *attempt) follow(ctx context.Context, node string) error {
	allowed := a.request.Topology.Allowed
	if a.request.Source == nil || len(allowed) == 0 || slices.Contains(allowed, node) {
		return nil
	}
	may, err := a.mayFollow(ctx, allowed, node)
	if may {
		a.request.Topology = Topology{Allowed: []string{node}}
	}
	return err
}

// followAll is follow for each node that a volume is on.
func (a *attempt) followAll(ctx context.Context, v *v1alpha1.Volume) error {
	for _, replica := range v.Spec.Replicas {
		if err := a.follow(ctx, replica.Node); err != nil {
			return err
		}
	}
	return nil
}

// mayFollow is whether the allowed nodes are but the choice of a scheduler, and the claim's class
// allows the node too.
func (a *attempt) mayFollow(ctx context.Context, allowed []string, node string) (bool, error) {
	ref := a.request.Claim
	if ref == nil || len(allowed) != 1 {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := a.live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case claim.UID != ref.UID, claim.Annotations[SelectedNode] != allowed[0], claim.Spec.StorageClassName == nil:
		return false, nil
	}
	class := &storagev1.StorageClass{}
	err = a.live.Get(ctx, types.NamespacedName{Name: *claim.Spec.StorageClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading StorageClass %s: %w", *claim.Spec.StorageClassName, err)
	}
	return allows(class, node), nil
}

// allows is whether a class's allowedTopologies take in a node. Keys that are not Berth's match
// none of its nodes.
func allows(class *storagev1.StorageClass, node string) bool {
	if len(class.AllowedTopologies) == 0 {
		return true
	}
	return slices.ContainsFunc(class.AllowedTopologies, func(term corev1.TopologySelectorTerm) bool {
		return !slices.ContainsFunc(term.MatchLabelExpressions, func(e corev1.TopologySelectorLabelRequirement) bool {
			return e.Key != v1alpha1.TopologyKey || !slices.Contains(e.Values, node)
		})
	})
}
