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

// SelectedNode is the annotation in which a scheduler writes the node of a claim.
const SelectedNode = "volume.kubernetes.io/selected-node"

// follow lets a copy be on the node of its source, though a
// scheduler has chosen another node for its claim.
//
// A scheduler that does not know of sources chooses by room alone. A refusal tells it that the
// node was wrong, but not which one is right, so it may choose wrong nodes as long as there are
// any. A volume on another node tells it: the provisioner makes the PersistentVolume from the
// topology in the answer. The scheduler finds that its node cannot reach that PersistentVolume,
// and schedules the pod again, which now has a bound claim. CSI asks for a volume within the
// requisite topology. Here that topology is only a scheduler's tentative choice. Real conditions
// still hold: allowedTopologies, and the requisite topology of every request that is not for a
// claim with a selected node.
func (c *call) follow(ctx context.Context, node string) error {
	allowed := c.request.Topology.Allowed
	if c.request.Source == nil || slices.Contains(allowed, node) {
		return nil
	}
	may, err := c.mayFollow(ctx, allowed, node)
	if may {
		c.request.Topology = Topology{Allowed: []string{node}}
	}
	return err
}

// followAll calls follow for each node that a volume is on.
func (c *call) followAll(ctx context.Context, v *v1alpha1.Volume) error {
	for _, replica := range v.Spec.Replicas {
		if err := c.follow(ctx, replica.Node); err != nil {
			return err
		}
	}
	return nil
}

// mayFollow reports whether the allowed nodes are only the choice of a scheduler, and the claim's
// class allows the node too.
func (c *call) mayFollow(ctx context.Context, allowed []string, node string) (bool, error) {
	ref := c.request.Claim
	if ref == nil || len(allowed) != 1 {
		return false, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	err := c.live.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, claim)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading claim %s/%s: %w", ref.Namespace, ref.Name, err)
	case claim.UID != ref.UID, claim.Annotations[SelectedNode] != allowed[0], claim.Spec.StorageClassName == nil:
		return false, nil
	}
	class := &storagev1.StorageClass{}
	err = c.live.Get(ctx, types.NamespacedName{Name: *claim.Spec.StorageClassName}, class)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading StorageClass %s: %w", *claim.Spec.StorageClassName, err)
	}
	return allows(class, node), nil
}

// allows reports whether a class's allowedTopologies include a node. Keys that are not Berth's
// match none of its nodes.
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
