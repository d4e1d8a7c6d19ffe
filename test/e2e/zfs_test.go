//go:build e2e && thorough

package e2e

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// These tests need nodes with ZFS: lab up --zfs.

// zfsNode is the node with their zpools.
const zfsNode = "node2"

// zpool makes a zpool on a disk of its own, with a filesystem for Berth in it. Over that it
// makes a class whose volumes have the filesystem fs, or the class's default if fs is empty,
// and a class for snapshots. The classes have the same name. When the test ends, only the
// hidden filesystems may remain.
func (p pools) zpool(name, fs string, how v1alpha1.ZFSPools) (class string) {
	p.Helper()
	p.onNode(zfsNode, "modprobe", "zfs")
	p.onNode(zfsNode, "zpool", "create", "-m", "none", name, p.plugged(zfsNode, "4G"))
	p.Cleanup(func() { p.onNode(zfsNode, "zpool", "destroy", name) })
	dataset := name + "/berth"
	p.onNode(zfsNode, "zfs", "create", "-o", "volmode=dev", "-o", "berth.dev:pool="+dataset, dataset)

	how.Pools = []string{dataset}
	pc := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner:  v1alpha1.ProvisionerZFS,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: zfsNode}},
		ZFS:          &how,
	}}
	pc.Name = name + "-" + p.namespace
	parameters := map[string]string{"poolClass": pc.Name}
	if fs != "" {
		parameters["csi.storage.k8s.io/fstype"] = fs
	}
	sc := cluster.StorageClass(pc.Name, parameters)
	vsc := cluster.SnapshotClass(pc.Name)
	p.create(pc, sc, vsc)
	p.Cleanup(func() {
		p.goneWithSnapshots()
		p.tidied(dataset)
		for _, o := range []client.Object{vsc, sc, pc} {
			if err := p.Delete(p.ctx, o); err != nil {
				p.Error(err)
			}
		}
	})
	p.await(zfsNode, "a zpool that was made while the agent ran", func(p v1alpha1.Pool) bool {
		return p.Name == "zfs:"+dataset && p.Health == v1alpha1.PoolHealthy && slices.Contains(p.Classes, pc.Name)
	})
	return pc.Name
}

// tidied waits until a pool has only the hidden filesystems. A dataset that had snapshots goes
// a moment after the last of them.
func (p pools) tidied(dataset string) {
	p.Helper()
	ctx := p.within()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		left := strings.Fields(p.onNode(zfsNode, "zfs", "list", "-H", "-t", "all", "-o", "name", "-r", dataset))
		left = slices.DeleteFunc(left, func(name string) bool {
			return slices.Contains([]string{dataset, dataset + "/berth-volumes", dataset + "/berth-trash"}, name)
		})
		if len(left) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			p.Errorf("left in the zpool: %v", left)
			return
		case <-tick.C:
		}
	}
}

func TestAZvolIsKeptAsItsClassSaysAndGrowsAndOutlivesItsPods(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := pools{b}.zpool("kept", "xfs", v1alpha1.ZFSPools{Volblocksize: "64Ki", Compression: "zstd"})
	files, disk := b.claim("files", class, "400Mi"), b.claim("disk", class, "64Mi", cluster.Raw)
	writer, raw := b.run("writer", files, cluster.Steadfast), b.run("raw", disk, cluster.Steadfast)
	if writer.Spec.NodeName != zfsNode || raw.Spec.NodeName != zfsNode {
		t.Errorf("the pods are on %s and %s", writer.Spec.NodeName, raw.Spec.NodeName)
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{files, disk} {
		zvol := "kept/berth/berth-volumes/" + b.volumeOf(claim).Name
		if got := b.onNode(zfsNode, "zfs", "get", "-H", "-o", "value", "volblocksize,compression,volmode", zvol); got != "64K\nzstd\ndev" {
			t.Errorf("%s is kept as %q", zvol, got)
		}
	}
	b.sh(writer, "echo kept > /data/file && sync")
	b.sh(raw, "printf kept | dd of=/dev/volume bs=4 seek=1000 conv=notrunc,fsync 2>/dev/null")

	b.resize(disk, "128Mi")
	b.must(cluster.Await(b.within(), b.Cluster, disk, "128Mi", cluster.HasCapacity("128Mi")), "growing")
	b.remove(writer) // a filesystem on a zvol grows only while no pod uses it
	b.remove(raw)
	b.resize(files, "800Mi")
	b.must(cluster.Await(b.within(), b.Cluster, b.volumeOf(files), "800Mi", func(v *v1alpha1.Volume) bool {
		entry := v.Entry(zfsNode)
		return entry != nil && entry.Capacity != nil && entry.Capacity.Cmp(resource.MustParse("800Mi")) >= 0
	}), "growing the device")
	reader := b.run("reader", files, cluster.Steadfast)
	b.must(cluster.Await(b.within(), b.Cluster, files, "800Mi", cluster.HasCapacity("800Mi")), "growing")
	b.reads(reader, "kept")
	again := b.run("raw-again", disk, cluster.Steadfast)
	if got := b.sh(again, "dd if=/dev/volume bs=4 skip=1000 count=1 2>/dev/null; blockdev --getsize64 /dev/volume"); got != "kept134217728" {
		t.Errorf("the device has %q", got)
	}
}

func TestSnapshotsAndClonesOfZvolsOutliveTheirSource(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := pools{b}.zpool("copied", "ext4", v1alpha1.ZFSPools{})
	source := b.claim("source", class, "200Mi")
	writer := b.run("writer", source, cluster.Steadfast)
	b.sh(writer, "echo before > /data/file && sync")
	taken, held := b.snapshot("taken", class, source)
	b.sh(writer, "echo after > /data/file && sync")

	restored := b.run("restored", b.claim("restored", class, "400Mi", cluster.FromSnapshot(taken.Name)), cluster.Steadfast)
	b.reads(restored, "before")
	if mib := b.sh(restored, "df -Pm /data | awk 'NR==2 {print ($2 > 300)}'"); mib != "1" {
		t.Errorf("the filesystem did not grow: %s", b.sh(restored, "df -Pm /data"))
	}
	cloned := b.run("cloned", b.claim("cloned", class, "200Mi", cluster.FromClaim(source.Name)), cluster.Steadfast)
	b.reads(cloned, "after")
	b.sh(cloned, "echo own > /data/file && sync")
	b.reads(writer, "after")

	volume := b.volumeOf(source)
	b.remove(writer)
	b.remove(source)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, volume), "deleting the source")
	b.reads(b.run("again", b.claim("again", class, "200Mi", cluster.FromSnapshot(taken.Name)), cluster.Steadfast), "before")
	b.remove(taken)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, held), "deleting the snapshot")
	b.reads(restored, "before")
	b.reads(cloned, "own")
}
