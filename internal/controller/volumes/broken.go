package volumes

import "berth.dev/berth/api/v1alpha1"

// troubled is the node that a volume found no way onto yet, for a reason that may pass, when the
// call began; empty if there is none.
func troubled(v *v1alpha1.Volume) string {
	for _, replica := range v.Spec.Replicas {
		if entry := v.Entry(replica.Node); entry != nil && entry.State == v1alpha1.ReplicaFailed && entry.Reason == v1alpha1.ReasonProvisionerError {
			return replica.Node
		}
	}
	return ""
}

// broken is whether a node counts as one that refused: it failed before this call, it fails
// still, and nothing was ever carved. To the first call such a failure is transient, and the
// claim keeps its node. A node that looks healthy and whose commands fail would keep it for ever.
func (a *attempt) broken(v *v1alpha1.Volume, node string) bool {
	return node != "" && node == a.troubled && troubled(v) == node && !Carved(v)
}
