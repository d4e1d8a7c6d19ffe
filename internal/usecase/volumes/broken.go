package volumes

import "berth.dev/berth/api/v1alpha1"

// troubled returns the node that failed to make the volume for a reason that may pass; empty if
// there is none.
func troubled(v *v1alpha1.Volume) string {
	for _, replica := range v.Spec.Replicas {
		if entry := v.Entry(replica.Node); entry != nil && entry.State == v1alpha1.ReplicaFailed && entry.Reason == v1alpha1.ReasonProvisionerError {
			return replica.Node
		}
	}
	return ""
}

// broken reports whether a node counts as one that refused: it had failed when this call began,
// it still fails, and nothing was ever carved. In the first call such a failure is transient, and
// the claim keeps its node. But a node that looks healthy while its commands fail would keep the
// claim for ever.
func (a *attempt) broken(v *v1alpha1.Volume, node string) bool {
	return node != "" && node == a.troubled && troubled(v) == node && !Carved(v)
}
