package quarantine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// VolumeSnapshot returns the two objects by which users reach a snapshot: a
// VolumeSnapshotContent that retains it, and a VolumeSnapshot of the given name. It does
// not create them: the snapshot API is not Berth's, and a cluster may lack it.
//
// It refuses a snapshot that a VolumeSnapshotContent refers to already: two of them
// would each believe to be the only one.
func VolumeSnapshot(ctx context.Context, c client.Reader, s *v1alpha1.Snapshot, as types.NamespacedName) ([]*unstructured.Unstructured, error) {
	content, err := contentOf(ctx, c, s.Name)
	if err != nil {
		return nil, err
	}
	if content != "" {
		return nil, refuse("VolumeSnapshotContent %s refers to %s already", content, s.Name)
	}
	return []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": schedule.VolumeSnapshotContentKind.GroupVersion().String(),
			"kind":       schedule.VolumeSnapshotContentKind.Kind,
			"metadata":   map[string]any{"name": s.Name},
			"spec": map[string]any{
				"driver":            served.Name,
				"deletionPolicy":    "Retain", // a user who deletes a VolumeSnapshot does not mean to delete found data
				"source":            map[string]any{"snapshotHandle": s.Name},
				"sourceVolumeMode":  string(s.Spec.VolumeMode),
				"volumeSnapshotRef": map[string]any{"namespace": as.Namespace, "name": as.Name},
			},
		}},
		{Object: map[string]any{
			"apiVersion": schedule.VolumeSnapshotKind.GroupVersion().String(),
			"kind":       schedule.VolumeSnapshotKind.Kind,
			"metadata":   map[string]any{"namespace": as.Namespace, "name": as.Name},
			"spec":       map[string]any{"source": map[string]any{"volumeSnapshotContentName": s.Name}},
		}},
	}, nil
}

// contentOf is the name of the VolumeSnapshotContent of a snapshot; empty if there is
// none, or if the cluster has no such objects.
func contentOf(ctx context.Context, c client.Reader, handle string) (string, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schedule.VolumeSnapshotContentKind.GroupVersion().WithKind(schedule.VolumeSnapshotContentKind.Kind + "List"))
	err := c.List(ctx, &list)
	if meta.IsNoMatchError(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("listing VolumeSnapshotContents: %w", err)
	}
	for i := range list.Items {
		o := list.Items[i].Object
		driver, _, _ := unstructured.NestedString(o, "spec", "driver")
		given, _, _ := unstructured.NestedString(o, "spec", "source", "snapshotHandle")
		taken, _, _ := unstructured.NestedString(o, "status", "snapshotHandle")
		if served.Took(driver) && (given == handle || taken == handle) {
			return list.Items[i].GetName(), nil
		}
	}
	return "", nil
}
