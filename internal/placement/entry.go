package placement

import "berth.dev/berth/api/v1alpha1"

// Entry is a node's report on a volume, or nil.
func Entry(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	for i := range v.Status.Replicas {
		if v.Status.Replicas[i].Node == node {
			return &v.Status.Replicas[i]
		}
	}
	return nil
}
