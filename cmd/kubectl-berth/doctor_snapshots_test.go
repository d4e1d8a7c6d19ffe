package main

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"berth.dev/berth/api/v1alpha1"
)

// snapshotting lets a cluster answer a list of the snapshot API with an error, or with VolumeSnapshotContents.
func snapshotting(c client.Client, refusal error, found ...unstructured.Unstructured) client.Client {
	return interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			switch u, raw := list.(*unstructured.UnstructuredList); {
			case !raw:
				return c.List(ctx, list, options...)
			case refusal != nil:
				return refusal
			case u.GetKind() == "VolumeSnapshotContentList":
				u.Items = found
			}
			return nil
		},
	})
}

func TestTheDoctorFollowsVolumeSnapshotsIfItMayReadThem(t *testing.T) {
	const snapshot = "snap-7d0e3a52-9b1c-4f6e-a2d7-c5b8e1f40396"
	given := unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "kept"},
		"spec":     map[string]any{"driver": v1alpha1.LocalDriverName, "source": map[string]any{"snapshotHandle": snapshot}},
	}}
	lost := "Error SnapshotLost\n  VolumeSnapshotContent kept\n  there is no Snapshot " + snapshot
	const note = "note: VolumeSnapshotContents may not be read"
	group := schema.GroupResource{Group: "snapshot.storage.k8s.io", Resource: "volumesnapshotcontents"}
	for name, tc := range map[string]struct {
		refusal  error
		has, not string
	}{
		"they may be read":               {nil, lost, note},
		"they may not be read":           {apierrors.NewForbidden(group, "", nil), note, "SnapshotLost"},
		"the cluster has no such object": {&meta.NoKindMatchError{}, "3 disagreements", "note:"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := consult(t, snapshotting(awake(t, wreck(t)), tc.refusal, given), func() {})
			if exitCode(err) != 2 || !strings.Contains(out, tc.has) || strings.Contains(out, tc.not) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
