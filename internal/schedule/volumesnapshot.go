package schedule

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrNoVolumeSnapshots is the answer while the cluster has no VolumeSnapshots, or
// they were not read yet.
var ErrNoVolumeSnapshots = errors.New("the cluster has no VolumeSnapshots, or they were not read yet")

// VolumeSnapshot has the facts that a Reader needs about a VolumeSnapshot and the
// VolumeSnapshotContent that it is bound to.
type VolumeSnapshot struct {
	Namespace, Name string
	// Deleting says whether it is being deleted.
	Deleting bool
	// Ready says whether volumes can be made from it. Problem is its driver's reason why not.
	Ready   bool
	Problem string
	// Driver is the driver that took it; empty while it is bound to no content.
	// Handle is the driver's id for it; empty while there is none.
	Driver, Handle string
}

// The kinds of the snapshot API. They are read without their Go types: a handful
// of fields is not worth the dependency.
const groupSnapshot = "snapshot.storage.k8s.io"

// VolumeSnapshotKind and VolumeSnapshotContentKind are the kinds to be read.
var (
	VolumeSnapshotKind        = schema.GroupVersionKind{Group: groupSnapshot, Version: "v1", Kind: "VolumeSnapshot"}
	VolumeSnapshotContentKind = schema.GroupVersionKind{Group: groupSnapshot, Version: "v1", Kind: "VolumeSnapshotContent"}
)

// The fields that are read, of either kind, in addition to the metadata.
var (
	fieldContent = []string{"status", "boundVolumeSnapshotContentName"}
	fieldReady   = []string{"status", "readyToUse"}
	fieldProblem = []string{"status", "error", "message"}
	fieldDriver  = []string{"spec", "driver"}
	fieldHandle  = []string{"status", "snapshotHandle"}
	fieldBoundTo = []string{"spec", "volumeSnapshotRef", "uid"}
)

// CutVolumeSnapshot returns an object of the snapshot API with only the fields that are read.
func CutVolumeSnapshot(from *unstructured.Unstructured) *unstructured.Unstructured {
	to := &unstructured.Unstructured{Object: map[string]any{}}
	to.SetGroupVersionKind(from.GroupVersionKind())
	to.SetNamespace(from.GetNamespace())
	to.SetName(from.GetName())
	to.SetUID(from.GetUID())
	to.SetResourceVersion(from.GetResourceVersion())
	to.SetDeletionTimestamp(from.GetDeletionTimestamp())
	for _, field := range [][]string{fieldContent, fieldReady, fieldProblem, fieldDriver, fieldHandle, fieldBoundTo} {
		if value, found, err := unstructured.NestedFieldNoCopy(from.Object, field...); found && err == nil {
			_ = unstructured.SetNestedField(to.Object, value, field...) // fails only where another field is no map
		}
	}
	return to
}

// readVolumeSnapshot reads a VolumeSnapshot and its content, or nil if there is
// none.
func readVolumeSnapshot(ctx context.Context, from client.Reader, namespace, name string) (*VolumeSnapshot, error) {
	snapshot, err := getSnapshotObject(ctx, from, VolumeSnapshotKind, client.ObjectKey{Namespace: namespace, Name: name})
	if snapshot == nil || err != nil {
		return nil, err
	}
	out := &VolumeSnapshot{Namespace: namespace, Name: name, Deleting: snapshot.GetDeletionTimestamp() != nil, Problem: text(snapshot, fieldProblem)}
	out.Ready, _, _ = unstructured.NestedBool(snapshot.Object, fieldReady...)
	bound := text(snapshot, fieldContent)
	if bound == "" {
		return out, nil
	}
	content, err := getSnapshotObject(ctx, from, VolumeSnapshotContentKind, client.ObjectKey{Name: bound})
	if err != nil {
		return nil, err
	}
	// The two have to name each other.
	if content != nil && text(content, fieldBoundTo) == string(snapshot.GetUID()) {
		out.Driver, out.Handle = text(content, fieldDriver), text(content, fieldHandle)
	}
	return out, nil
}

func getSnapshotObject(ctx context.Context, from client.Reader, kind schema.GroupVersionKind, key client.ObjectKey) (*unstructured.Unstructured, error) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o, err := get(ctx, from, key, o)
	if meta.IsNoMatchError(err) {
		return nil, ErrNoVolumeSnapshots
	}
	return o, err
}

// text returns a field, or empty.
func text(o *unstructured.Unstructured, field []string) string {
	value, _, _ := unstructured.NestedString(o.Object, field...)
	return value
}
