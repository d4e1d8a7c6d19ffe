//go:build e2e && thorough

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// orphans is a bench that loses objects and adopts their data.
type orphans struct{ *bench }

// lose deletes a Volume or a Snapshot without telling any node to delete its data, as an
// old backup of the API server does. The finalizer must go first, and the controller puts
// it back. So lose deletes only the very version that has no finalizer.
func (o orphans) lose(lost client.Object) {
	o.Helper()
	for ctx := o.within(); ; {
		o.must(o.Get(ctx, client.ObjectKeyFromObject(lost), lost), "reading "+lost.GetName())
		lost.SetFinalizers(nil)
		err := o.Update(ctx, lost)
		if err == nil {
			version := lost.GetResourceVersion()
			err = o.Delete(ctx, lost, client.Preconditions{ResourceVersion: &version})
		}
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			o.Fatalf("losing %s: %v", lost.GetName(), err)
		}
	}
}

// awaitOrphans waits until a node reports data as orphans, and until kubectl berth lists them.
func (o orphans) awaitOrphans(node string, names ...string) {
	o.Helper()
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	o.must(cluster.Await(o.within(), o.Cluster, report, "with orphans", func(n *v1alpha1.StorageNode) bool {
		for _, name := range names {
			if !reports(n, name) {
				return false
			}
		}
		return true
	}), "reporting orphans")
	var listed []struct{ Node, Name, Missing string }
	o.must(json.Unmarshal([]byte(o.plugin("orphans", "-o", "json")), &listed), "reading the list")
	for _, name := range names {
		if !slices.Contains(listed, struct{ Node, Name, Missing string }{node, name, "Object"}) {
			o.Errorf("%s is not in the list: %+v", name, listed)
		}
	}
}

// reports says whether a node reports data as an orphan.
func reports(n *v1alpha1.StorageNode, name string) bool {
	for _, p := range n.Status.Pools {
		for _, i := range p.Inventory {
			if i.Volume+i.Snapshot == name && i.Orphan != nil {
				return true
			}
		}
	}
	return false
}

// setPolicy sets the reclaim policy of a PersistentVolume.
func (o orphans) setPolicy(pv string, policy corev1.PersistentVolumeReclaimPolicy) {
	o.Helper()
	volume := &corev1.PersistentVolume{}
	o.must(o.Get(o.ctx, client.ObjectKey{Name: pv}, volume), "reading the PersistentVolume")
	before := volume.DeepCopy()
	volume.Spec.PersistentVolumeReclaimPolicy = policy
	o.must(o.Patch(o.ctx, volume, client.MergeFrom(before)), "setting the policy of PersistentVolume "+pv)
}

func TestDataWhoseObjectsWereLostIsAdoptedOrForgotten(t *testing.T) {
	const node = "node3"
	b := begin(t)
	o := orphans{b}
	here := cluster.OnNode(node)
	needed, needless := b.claim("needed", classExt4, "128Mi"), b.claim("needless", classExt4, "64Mi")
	for _, claim := range []*corev1.PersistentVolumeClaim{needed, needless} {
		writer := b.run("writes-"+claim.Name, claim, here)
		b.sh(writer, "echo "+claim.Name+" > /data/file && sync")
		b.remove(writer)
	}
	adopted, forgotten := b.volumeOf(needed), b.volumeOf(needless)

	// One volume keeps its PersistentVolume; the other keeps no object.
	o.setPolicy(forgotten.Name, corev1.PersistentVolumeReclaimRetain)
	b.remove(needless)
	b.remove(&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: forgotten.Name}})
	o.lose(adopted)
	o.lose(forgotten)
	b.must(b.Delete(b.ctx, &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: node}}), "deleting the report")
	o.awaitOrphans(node, adopted.Name, forgotten.Name)
	if lvs := b.logicalVolumes(node); !slices.Contains(lvs, adopted.Name) || !slices.Contains(lvs, forgotten.Name) {
		t.Fatalf("data went with its objects: %v", lvs)
	}

	if _, err := b.Plugin(b.within(), "forget", node, adopted.Name, "--yes"); err == nil {
		t.Error("data that a PersistentVolume refers to was forgotten")
	}
	b.plugin("adopt", node, adopted.Name)
	b.must(cluster.Await(b.within(), b.Cluster, adopted, "found", func(v *v1alpha1.Volume) bool {
		e := v.Entry(node)
		return v.Spec.Adopted && e != nil && e.Ready
	}), "adopting")
	b.reads(b.run("reader", needed, here), needed.Name)

	b.plugin("forget", node, forgotten.Name, "--yes")
	wiped(b, node, forgotten.Name)
	if lvs := b.logicalVolumes(node); !slices.Contains(lvs, adopted.Name) {
		t.Errorf("the adopted volume went with it: %v", lvs)
	}
}

func TestASnapshotWhoseObjectsWereLostIsAdoptedAndRestored(t *testing.T) {
	b := begin(t)
	o := orphans{b}
	class := pools{b}.thin("adopted", "ext4")
	source := b.claim("source", class, "128Mi")
	writer := b.run("writer", source, cluster.Steadfast)
	b.sh(writer, "echo before > /data/file && sync")
	taken, held := b.snapshot("taken", class, source)
	b.sh(writer, "echo after > /data/file && sync")

	content := o.contentOf(taken)
	o.deletes(content, snapshotv1.VolumeSnapshotContentRetain)
	b.remove(taken)
	b.remove(content)
	o.lose(held)
	o.awaitOrphans(thinNode, held.Name)

	as := b.namespace + "/found"
	o.apply(b.plugin("adopt", thinNode, held.Name, "--volume-snapshot", as))
	found := &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "found"}}
	b.must(cluster.Await(b.within(), b.Cluster, found, "ready to use", cluster.ReadyToUse), "adopting the snapshot")
	o.deletes(o.contentOf(found), snapshotv1.VolumeSnapshotContentDelete) // for the end of the test
	b.reads(b.run("reader", b.claim("restored", class, "128Mi", cluster.FromSnapshot(found.Name)), cluster.Steadfast), "before")
	b.reads(writer, "after")
}

// contentOf returns the VolumeSnapshotContent that a VolumeSnapshot is bound to.
func (o orphans) contentOf(s *snapshotv1.VolumeSnapshot) *snapshotv1.VolumeSnapshotContent {
	o.Helper()
	c := &snapshotv1.VolumeSnapshotContent{}
	o.must(o.Get(o.ctx, client.ObjectKey{Name: *s.Status.BoundVolumeSnapshotContentName}, c), "reading the content of "+s.Name)
	return c
}

// deletes sets whether the snapshot is deleted with its content.
func (o orphans) deletes(c *snapshotv1.VolumeSnapshotContent, policy snapshotv1.DeletionPolicy) {
	o.Helper()
	before := c.DeepCopy()
	c.Spec.DeletionPolicy = policy
	o.must(o.Patch(o.ctx, c, client.MergeFrom(before)), "setting the policy of "+c.Name)
}

// apply makes the objects of a manifest.
func (o orphans) apply(manifest string) {
	o.Helper()
	for i, text := range strings.Split(manifest, "\n---\n") {
		object := &unstructured.Unstructured{}
		o.must(yaml.Unmarshal([]byte(text), &object.Object), fmt.Sprintf("reading object %d of the manifest", i))
		o.create(object)
	}
}
