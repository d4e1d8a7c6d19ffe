//go:build e2e && thorough

package e2e

import (
	"testing"

	"berth.dev/berth/test/cluster"
)

func TestACloneHasTheDataOfItsSourceAndALifeOfItsOwn(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := pools{b}.thin("cloned", "ext4")
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

// The time of a copy of a thick volume grows with its data, so the volumes here are small. A
// pod may write the source during the copy; the copy has the data of the moment it began.
func TestACloneOfAThickVolumeAndARestoreAreWholeCopies(t *testing.T) {
	t.Parallel()
	b := begin(t)
	vsc := cluster.SnapshotClass("thick-" + b.namespace)
	b.create(vsc)
	b.Cleanup(func() { b.remove(vsc) })
	b.Cleanup(pools{b}.goneWithSnapshots)
	files, disk := b.claim("files", classExt4, "64Mi"), b.claim("disk", classExt4, "64Mi", cluster.Raw)
	writer := b.run("writer", files, cluster.Steadfast)
	node := cluster.OnNode(writer.Spec.NodeName)
	raw := b.run("raw", disk, cluster.Steadfast, node)
	b.sh(writer, "echo before > /data/file && sync")
	b.sh(raw, "printf kept | dd of=/dev/volume bs=4 seek=1000 conv=notrunc,fsync 2>/dev/null")

	taken, held := b.snapshot("taken", vsc.Name, files)
	b.sh(writer, "echo after > /data/file && sync")
	restored := b.run("restored", b.claim("restored", classExt4, "96Mi", cluster.FromSnapshot(taken.Name)), cluster.Steadfast)
	b.reads(restored, "before")
	clone := b.run("clone", b.claim("clone", classExt4, "64Mi", cluster.FromClaim(files.Name)), cluster.Steadfast)
	b.reads(clone, "after")
	if n := refusedByNode(b, "restored", "clone"); n > 4 { // the stock scheduler does not know where a source is
		t.Errorf("two copies were refused %d times", n)
	}
	clonedRaw := b.run("cloned-raw", b.claim("disk-clone", classExt4, "64Mi", cluster.Raw, cluster.FromClaim(disk.Name)), cluster.Steadfast, node)
	if got := b.sh(clonedRaw, "dd if=/dev/volume bs=4 skip=1000 count=1 2>/dev/null"); got != "kept" {
		t.Errorf("the clone of the device holds %q", got)
	}

	b.remove(taken)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, held), "deleting the snapshot")
	b.sh(clone, "echo own > /data/file && sync")
	b.reads(writer, "after")
	b.reads(restored, "before")
	if left := b.onNode(writer.Spec.NodeName, "lvs", "--noheadings", "-o", "lv_name", "--select", "origin="+b.volumeOf(files).Name, group); left != "" {
		t.Errorf("what helped is left, and slows the volume down: %s", left)
	}
}
