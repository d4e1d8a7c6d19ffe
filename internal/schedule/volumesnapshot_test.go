package schedule

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
)

const (
	snapshotObject = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {namespace: shop, name: nightly, uid: u1, resourceVersion: "7", annotations: {x: a long text}, finalizers: [x]}
spec: {volumeSnapshotClassName: local, source: {persistentVolumeClaimName: data}}
status: {boundVolumeSnapshotContentName: content, readyToUse: true, restoreSize: 1Gi, creationTime: "2026-01-02T03:04:05Z"}
`
	contentObject = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: content, uid: u2}
spec: {driver: local.berth.dev, deletionPolicy: Delete, volumeSnapshotRef: {namespace: shop, name: nightly, uid: u1}, source: {volumeHandle: pvc-1}}
status: {snapshotHandle: snap-1, readyToUse: true, restoreSize: 1073741824}
`
)

func parsed(t *testing.T, text string, fields ...any) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		path, _ := fields[i].([]string)
		if err := unstructured.SetNestedField(o.Object, fields[i+1], path...); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// untyped finds objects by kind; with an error it finds nothing.
type untyped struct {
	client.Reader
	objects map[string]*unstructured.Unstructured
	err     error
}

func (u untyped) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o := u.objects[into.GetObjectKind().GroupVersionKind().Kind]
	switch {
	case u.err != nil:
		return u.err
	case o == nil || o.GetName() != key.Name || o.GetNamespace() != key.Namespace:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	into.(*unstructured.Unstructured).Object = o.Object
	return nil
}

func TestAVolumeSnapshotIsReadTheSameWholeOrCut(t *testing.T) {
	tests := map[string]struct {
		snapshot, content *unstructured.Unstructured
		want              *VolumeSnapshot
	}{
		"no snapshot": {nil, nil, nil},
		"a ready snapshot": {parsed(t, snapshotObject), parsed(t, contentObject),
			&VolumeSnapshot{Namespace: "shop", Name: "nightly", Ready: true, Driver: v1alpha1.LocalDriverName, Handle: "snap-1"}},
		"a snapshot that is being deleted": {parsed(t, snapshotObject, []string{"metadata", "deletionTimestamp"}, "2026-01-02T03:04:05Z"), parsed(t, contentObject),
			&VolumeSnapshot{Namespace: "shop", Name: "nightly", Deleting: true, Ready: true, Driver: v1alpha1.LocalDriverName, Handle: "snap-1"}},
		"a snapshot without a status": {parsed(t, snapshotObject, []string{"status"}, map[string]any{}), parsed(t, contentObject),
			&VolumeSnapshot{Namespace: "shop", Name: "nightly"}},
		"a snapshot that could not be taken": {parsed(t, snapshotObject, []string{"status"}, map[string]any{"error": map[string]any{"message": "no room"}}), nil,
			&VolumeSnapshot{Namespace: "shop", Name: "nightly", Problem: "no room"}},
		"a snapshot without the content": {parsed(t, snapshotObject), nil, &VolumeSnapshot{Namespace: "shop", Name: "nightly", Ready: true}},
		"a snapshot with the content of another snapshot": {parsed(t, snapshotObject), parsed(t, contentObject, []string{"spec", "volumeSnapshotRef", "uid"}, "u9"),
			&VolumeSnapshot{Namespace: "shop", Name: "nightly", Ready: true}},
		"a snapshot of an unknown shape": {parsed(t, snapshotObject, []string{"status"}, "fine"), nil, &VolumeSnapshot{Namespace: "shop", Name: "nightly"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for form, change := range map[string]func(*unstructured.Unstructured) *unstructured.Unstructured{
				"whole": func(o *unstructured.Unstructured) *unstructured.Unstructured { return o },
				"cut":   CutVolumeSnapshot,
			} {
				objects := map[string]*unstructured.Unstructured{}
				for _, o := range []*unstructured.Unstructured{test.snapshot, test.content} {
					if o != nil {
						objects[o.GetKind()] = change(o)
					}
				}
				got, err := Cached{untyped{objects: objects}}.VolumeSnapshot(t.Context(), "shop", "nightly")
				if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
					t.Errorf("%s: %v\n%s", form, err, diff)
				}
			}
		})
	}
}

func TestUnreadFieldsOfAVolumeSnapshotAreCutOff(t *testing.T) {
	got := CutVolumeSnapshot(parsed(t, snapshotObject))
	want := parsed(t, `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {namespace: shop, name: nightly, uid: u1, resourceVersion: "7"}
status: {boundVolumeSnapshotContentName: content, readyToUse: true}
`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestAClusterMayKnowNoVolumeSnapshots(t *testing.T) {
	absent := untyped{err: &meta.NoKindMatchError{GroupKind: VolumeSnapshotKind.GroupKind()}}
	if _, err := (Cached{absent}).VolumeSnapshot(t.Context(), "shop", "nightly"); !errors.Is(err, ErrNoVolumeSnapshots) {
		t.Errorf("got %v", err)
	}
	if _, err := (Listed{Snapshots: func() client.Reader { return nil }}).VolumeSnapshot(t.Context(), "shop", "nightly"); !errors.Is(err, ErrNoVolumeSnapshots) {
		t.Errorf("got %v", err)
	}
	broken := errors.New("the API server is away")
	if _, err := (Cached{untyped{err: broken}}).VolumeSnapshot(t.Context(), "shop", "nightly"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
