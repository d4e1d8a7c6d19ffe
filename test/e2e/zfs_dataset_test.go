//go:build e2e && thorough

package e2e

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

func TestADatasetGrowsUnderItsPodAndIsCopiedAndGoes(t *testing.T) {
	t.Parallel()
	b := begin(t)
	p := pools{b}
	class := p.zpool("files", "", v1alpha1.ZFSPools{Recordsize: "8Ki", Compression: "zstd"}) // without a filesystem: the class chooses it
	source := b.claim("source", class, "200Mi")
	writer := b.run("writer", source, cluster.Steadfast)
	volume := b.volumeOf(source)
	if volume.Spec.FSType != v1alpha1.Dataset {
		t.Errorf("the filesystem is %s", volume.Spec.FSType)
	}
	dataset := "files/berth/berth-volumes/" + volume.Name
	if got := b.onNode(zfsNode, "zfs", "get", "-H", "-o", "value", "recordsize,compression,mountpoint", dataset); got != "8K\nzstd\nlegacy" {
		t.Errorf("%s is kept as %q", dataset, got)
	}
	b.sh(writer, "echo before > /data/file")
	taken, held := b.snapshot("taken", class, source)
	b.sh(writer, "echo after > /data/file")

	b.resize(source, "400Mi") // while its pod runs
	b.must(cluster.Await(b.within(), b.Cluster, source, "400Mi", cluster.HasCapacity("400Mi")), "growing")
	b.must(cluster.Await(b.within(), b.Cluster, volume, "400Mi", func(v *v1alpha1.Volume) bool {
		entry := v.Entry(zfsNode)
		return entry != nil && entry.Capacity != nil && entry.Capacity.Cmp(resource.MustParse("400Mi")) >= 0
	}), "growing the dataset")
	if mib := b.sh(writer, "df -Pm /data | awk 'NR==2 {print ($2 > 350)}'"); mib != "1" {
		t.Errorf("the filesystem did not grow: %s", b.sh(writer, "df -Pm /data"))
	}
	b.reads(writer, "after")

	p.copiesOutlive(class, source, writer, taken, held)
}

// copiesOutlive restores a snapshot of a claim that has "before" in it, clones the claim, which has "after", and
// deletes the claim and the snapshot: both copies still have what they began with.
func (p pools) copiesOutlive(class string, source *corev1.PersistentVolumeClaim, writer *corev1.Pod, taken *snapshotv1.VolumeSnapshot, held *v1alpha1.Snapshot) {
	p.Helper()
	volume := p.volumeOf(source)
	restored := p.run("restored", p.claim("restored", class, "300Mi", cluster.FromSnapshot(taken.Name)), cluster.Steadfast)
	p.reads(restored, "before")
	cloned := p.run("cloned", p.claim("cloned", class, "400Mi", cluster.FromClaim(source.Name)), cluster.Steadfast)
	p.reads(cloned, "after")

	p.remove(writer)
	p.remove(source)
	p.must(cluster.AwaitGone(p.within(), p.Cluster, volume), "deleting the source")
	p.remove(taken)
	p.must(cluster.AwaitGone(p.within(), p.Cluster, held), "deleting the snapshot")
	p.reads(restored, "before")
	p.reads(cloned, "after")
}
