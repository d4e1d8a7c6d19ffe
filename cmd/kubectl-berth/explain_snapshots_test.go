package main

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

const snapshotID = "snap-00000000-0000-0000-0000-000000000007"

// restoring makes the pod's claim one that is restored from a snapshot on node small.
func restoring(t *testing.T) func([]client.Object) []client.Object {
	return func(list []client.Object) []client.Object {
		for _, o := range list {
			if claim, ok := o.(*corev1.PersistentVolumeClaim); ok && claim.Name == "1" {
				claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &schedule.VolumeSnapshotKind.Group, Kind: schedule.VolumeSnapshotKind.Kind, Name: "nightly"}
			}
		}
		s := &v1alpha1.Snapshot{ObjectMeta: metav1.ObjectMeta{Name: snapshotID}}
		s.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "small", Pool: "vg0"}}
		s.Status.Replicas = []v1alpha1.SnapshotReplica{{Node: "small", State: v1alpha1.SnapshotReady}}
		return append(list, s, object(t, `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {namespace: shop, name: nightly, uid: u1}
status: {boundVolumeSnapshotContentName: content, readyToUse: true}
`), object(t, `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: content}
spec: {driver: local.berth.dev, volumeSnapshotRef: {uid: u1}}
status: {snapshotHandle: `+snapshotID+`}
`))
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// refuse answers requests for VolumeSnapshots with an error.
func refuse(err error) interceptor.Funcs {
	return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if o.GetObjectKind().GroupVersionKind() == schedule.VolumeSnapshotKind {
			return err
		}
		return c.Get(ctx, key, o, options...)
	}}
}

func TestExplainSaysWhereASnapshotIs(t *testing.T) {
	resource := schema.GroupResource{Group: schedule.VolumeSnapshotKind.Group, Resource: "volumesnapshots"}
	tests := map[string]struct {
		funcs       interceptor.Funcs
		told, notes string
	}{
		"the snapshot is on a node":            {interceptor.Funcs{}, `large: does not fit: claim "1" is made from snapshot "nightly", which is on node small`, ""},
		"the snapshot does not exist":          {refuse(apierrors.NewNotFound(resource, "nightly")), `claim "1" is made from snapshot "nightly", which does not exist`, ""},
		"the cluster has no VolumeSnapshots":   {refuse(&meta.NoKindMatchError{}), `which is not known: the cluster has no VolumeSnapshots`, ""},
		"the caller may not read the snapshot": {refuse(apierrors.NewForbidden(resource, "nightly", nil)), `which is not known`, "VolumeSnapshots in namespace shop, or their contents, may not be read"},
		"the API server has no answer ":        {refuse(apierrors.NewServiceUnavailable("later")), "", "reading snapshot shop/nightly: later"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"explain", "pod", "web"}, {"explain", "pvc", "1"}} {
				out, notes, err := run(t, restoring(t), test.funcs, args...)
				if err != nil {
					notes += err.Error()
				}
				if !strings.Contains(out, test.told) || !strings.Contains(notes, test.notes) || (notes == "") != (test.notes == "") {
					t.Errorf("%v: told %q, notes %q", args, out, notes)
				}
			}
		})
	}
}
