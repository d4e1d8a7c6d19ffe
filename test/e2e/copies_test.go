//go:build e2e && thorough

package e2e

import (
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

func TestACloneHasTheDataOfItsSourceAndALifeOfItsOwn(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := b.thin("cloned", "ext4")
	files, disk := b.claim("files", class, "200Mi"), b.claim("disk", class, "64Mi", cluster.Raw)
	writer, raw := b.run("writer", files, cluster.Steadfast), b.run("raw", disk, cluster.Steadfast)
	b.sh(writer, "echo shared > /data/file && sync")
	b.sh(raw, "printf kept | dd of=/dev/volume bs=4 seek=1000 conv=notrunc,fsync 2>/dev/null")

	cloned := b.run("cloned", b.claim("files-clone", class, "200Mi", cluster.FromClaim(files.Name)), cluster.Steadfast)
	clonedRaw := b.run("cloned-raw", b.claim("disk-clone", class, "128Mi", cluster.Raw, cluster.FromClaim(disk.Name)), cluster.Steadfast)
	b.reads(cloned, "shared")
	b.sh(cloned, "echo own > /data/file && sync")
	b.reads(writer, "shared")
	if got := b.sh(clonedRaw, "dd if=/dev/volume bs=4 skip=1000 count=1 2>/dev/null; blockdev --getsize64 /dev/volume"); got != "kept134217728" {
		t.Errorf("the clone of the device has %q", got)
	}
	b.remove(writer)
	b.remove(files)
	b.reads(cloned, "own")
}

func TestWhatAThickPoolCannotCopyIsSaidWhereTheUserLooks(t *testing.T) {
	t.Parallel()
	b := begin(t)
	vsc := cluster.SnapshotClass("thick-" + b.namespace)
	b.create(vsc)
	t.Cleanup(func() { b.remove(vsc) })
	claim := b.claim("data", classExt4, "64Mi")
	writer := b.run("writer", claim, cluster.Steadfast)
	volume := b.volumeOf(claim)

	s := cluster.VolumeSnapshot(b.namespace, "refused", vsc.Name, claim.Name)
	b.create(s)
	b.must(cluster.Await(b.within(), b.Cluster, s, "refused", func(s *snapshotv1.VolumeSnapshot) bool {
		return strings.Contains(cluster.Refused(s), "provisioner LVM has no snapshots")
	}), "taking a snapshot")
	clone := b.claim("clone", classExt4, "64Mi", cluster.FromClaim(claim.Name))
	b.create(cluster.Pod(b.namespace, "waits", []*corev1.PersistentVolumeClaim{clone}, cluster.OnNode(writer.Spec.NodeName)))
	b.awaitEvent(clone, "provisioner LVM makes no copies")

	b.remove(s)
	var held v1alpha1.SnapshotList
	b.must(b.List(b.ctx, &held), "listing Snapshots")
	for _, each := range held.Items {
		if each.Spec.Volume == volume.Name && each.DeletionTimestamp == nil {
			t.Errorf("Snapshot %s is left: %+v", each.Name, each.Status)
		}
	}
}
