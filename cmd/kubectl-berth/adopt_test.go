package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// darkroom is the cluster of wreck, whose node has a snapshot that lost its object too.
func darkroom(t *testing.T) client.Client {
	t.Helper()
	c := wreck(t)
	n := &v1alpha1.StorageNode{}
	if err := c.Get(t.Context(), client.ObjectKey{Name: "node-3"}, n); err != nil {
		t.Fatal(err)
	}
	n.Status.Pools[0].Inventory = append(n.Status.Pools[0].Inventory, v1alpha1.InventoryItem{
		Snapshot: photo, Allocated: resource.MustParse("1Gi"),
		Orphan: &v1alpha1.Orphan{Since: metav1.Unix(0, 0), Reason: v1alpha1.OrphanNoObject, Size: resource.MustParse("1Gi"), Filesystem: "ext4", Source: missing},
	})
	if err := c.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAdoptingASnapshotSaysWhatWasMadeAndHowToUseIt(t *testing.T) {
	c := darkroom(t)
	want := func(done string) string {
		return "Snapshot " + photo + ": " + done + ", of volume " + missing + ", of PoolClass fast\n" +
			"Whether the data was found: kubectl get bsnap " + photo + "\n" +
			"To use it: a VolumeSnapshotContent with snapshotHandle " + photo + "; --volume-snapshot NAME prints one\n"
	}
	out, notes, err := say(t, c, "adopt", "node-3", photo, "--pool-class", "fast")
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if diff := cmp.Diff(want("made"), out); diff != "" {
		t.Error(diff)
	}
	manifests, notes, err := say(t, c, "adopt", "node-3", photo, "--volume-snapshot", "nightly")
	if err != nil || notes != want("there already") {
		t.Fatal(err, notes)
	}
	if diff := cmp.Diff(printed, manifests); diff != "" {
		t.Error(diff)
	}
}

const printed = `---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata:
  name: snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f
spec:
  deletionPolicy: Retain
  driver: local.berth.dev
  source:
    snapshotHandle: snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f
  sourceVolumeMode: Filesystem
  volumeSnapshotRef:
    name: nightly
    namespace: shop
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata:
  name: nightly
  namespace: shop
spec:
  source:
    volumeSnapshotContentName: snap-0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f
`

func TestAPersistentVolumeThatWasReleasedIsKeptForAnotherClaim(t *testing.T) {
	c := wreck(t)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: missing}}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: missing}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db-0", UID: "gone"}
	if err := c.Create(t.Context(), pv); err != nil {
		t.Fatal(err)
	}
	out, _, err := say(t, c, "adopt", "node-3", missing, "--claim", "db-copy")
	if err != nil || !strings.Contains(out, "PersistentVolume "+missing+": there already, Retain, for claim shop/db-copy from now on\n") {
		t.Errorf("%v: %s", err, out)
	}
}
