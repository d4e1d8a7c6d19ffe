package volumes

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
)

// object makes the complete Volume for a request: the agent's answer is the only
// other write that a create needs.
func object(r Request, bytes int64, at place) *v1alpha1.Volume {
	v := &v1alpha1.Volume{
		Spec: v1alpha1.VolumeSpec{
			Capacity:    *resource.NewQuantity(bytes, resource.BinarySI),
			VolumeMode:  r.Mode,
			FSType:      r.FSType,
			MkfsOptions: r.MkfsOptions,
			PoolClass:   r.PoolClass,
			ClaimRef:    r.Claim,
			Source:      r.Source,
			Sharing:     v1alpha1.Exclusive,
			Placement:   v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{Factor: 1},
		},
	}
	v.Name = v1alpha1.VolumeName(r.Name)
	if r.Reservation {
		v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
	}
	v.Finalizers = []string{v1alpha1.VolumeFinalizer}
	putOn(v, at)
	return v
}

// putOn makes a place the volume's only one. The labels of earlier nodes stay: those
// nodes may hold a part of the volume until they report otherwise.
func putOn(v *v1alpha1.Volume, at place) {
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: at.node, Pool: at.pool}}
	if v.Labels == nil {
		v.Labels = map[string]string{}
	}
	v.Labels[v1alpha1.ReplicaLabel(at.node)] = ""
}
