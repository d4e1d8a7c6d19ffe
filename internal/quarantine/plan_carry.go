package quarantine

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// Gather reads what a plan follows from.
func Gather(ctx context.Context, c client.Reader, node, poolClass string) (Facts, error) {
	var (
		nodes     v1alpha1.StorageNodeList
		volumes   v1alpha1.VolumeList
		snapshots v1alpha1.SnapshotList
		pvs       corev1.PersistentVolumeList
		claims    corev1.PersistentVolumeClaimList
	)
	for what, list := range map[string]client.ObjectList{
		"storage nodes": &nodes, "volumes": &volumes, "snapshots": &snapshots, "PersistentVolumes": &pvs, "claims": &claims,
	} {
		if err := c.List(ctx, list); err != nil {
			return Facts{}, fmt.Errorf("listing %s: %w", what, err)
		}
	}
	return Facts{
		Nodes: nodes.Items, Volumes: volumes.Items, Snapshots: snapshots.Items, PVs: pvs.Items, Claims: claims.Items,
		Node: node, PoolClass: poolClass,
	}, nil
}

// Carry carries the steps of a plan out, and notes in each whether it is done. A step that fails
// does not keep the others back. Adopt and AdoptSnapshot look again at all that the plan saw.
func Carry(ctx context.Context, c client.Client, steps []Step, poolClass, storageClass string) []Step {
	for i := range steps {
		s := &steps[i]
		if s.Action != Adopting {
			continue
		}
		var err error
		if v1alpha1.IsSnapshotName(s.Name) {
			_, _, err = AdoptSnapshot(ctx, c, SnapshotAdoption{Node: s.Node, Name: s.Name, PoolClass: poolClass})
		} else {
			a := Adoption{Node: s.Node, Name: s.Name, PoolClass: poolClass, StorageClass: storageClass}
			if pv, read := exportedBy(ctx, served.Guard(c), s.Name); read != nil {
				err = read
			} else if pv == nil {
				namespace, name, _ := strings.Cut(s.Claim, "/")
				a.Claim = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: namespace, Name: name}
			}
			if err == nil {
				_, err = Adopt(ctx, c, a)
			}
		}
		if s.Done = err == nil; err != nil {
			s.Error = err.Error()
		}
	}
	return steps
}
