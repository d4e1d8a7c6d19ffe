//go:build e2e

package e2e

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// thinNode has the thin pools of these tests. Their pods are not evicted from it: it runs
// several of them at once, and may be slow to renew its lease.
const thinNode = "node3"

// thin makes a thin pool for one test, a class over it that makes volumes with a
// filesystem, and a class for snapshots, all with the same name. When the test ends
// the pool must be empty.
func (p pools) thin(name, fs string) (class string) {
	p.Helper()
	pool := group + "/" + name
	p.onNode(thinNode, "lvcreate", "--yes", "--type", "thin-pool", "--size", "1g", "--name", name, group)
	p.Cleanup(func() { p.onNode(thinNode, "lvremove", "--yes", pool) })
	pc := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner:  v1alpha1.ProvisionerLVMThin,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: thinNode}},
		LVMThin:      &v1alpha1.LVMThinPools{ThinPools: []string{pool}, OverprovisionPercent: 500, MaxFillPercent: 90},
	}}
	pc.Name = name + "-" + p.namespace
	sc := cluster.StorageClass(pc.Name, map[string]string{"poolClass": pc.Name, "csi.storage.k8s.io/fstype": fs})
	vsc := cluster.SnapshotClass(pc.Name)
	p.create(pc, sc, vsc)
	p.Cleanup(func() {
		p.goneWithSnapshots()
		if left := p.onNode(thinNode, "lvs", "--noheadings", "-o", "lv_name", "--select", "pool_lv="+name, group); left != "" {
			p.Errorf("left in the pool: %s", left)
		}
		for _, o := range []client.Object{vsc, sc, pc} {
			if err := p.Delete(p.ctx, o); err != nil {
				p.Error(err)
			}
		}
	})
	return pc.Name
}

// goneWithSnapshots is like gone, for a test that takes snapshots.
func (p pools) goneWithSnapshots() {
	p.Helper()
	var all snapshotv1.VolumeSnapshotList
	p.must(p.List(p.ctx, &all, client.InNamespace(p.namespace)), "listing snapshots")
	for i := range all.Items {
		p.must(client.IgnoreNotFound(p.Delete(p.ctx, &all.Items[i])), "deleting a snapshot")
		p.must(cluster.AwaitGone(p.within(), p.Cluster, &all.Items[i]), "deleting a snapshot")
	}
	p.gone()
}

// A copy of an xfs filesystem has the UUID of its source. The kernel does not mount both
// at once without a special option. Other tests try clones on ext4.
func TestASnapshotIsRestoredLargerBesideItsSourceAndOutlivesIt(t *testing.T) {
	t.Parallel()
	b := begin(t)
	class := pools{b}.thin("restored", "xfs")
	source := b.claim("source", class, "400Mi")
	writer := b.run("writer", source, cluster.Steadfast)
	b.sh(writer, "echo before > /data/file && sync")
	taken, held := b.snapshot("taken", class, source)
	b.sh(writer, "echo after > /data/file && sync")

	larger := b.claim("larger", class, "800Mi", cluster.FromSnapshot(taken.Name))
	reader := b.run("reader", larger, cluster.Steadfast)
	b.reads(reader, "before")
	if n := refusedByNode(b, larger.Name); n > 2 { // the stock scheduler does not know where the snapshot is
		t.Errorf("the copy was refused %d times", n)
	}
	if mib := b.sh(reader, "df -Pm /data | awk 'NR==2 {print ($2 > 600)}'"); mib != "1" {
		t.Errorf("the filesystem did not grow: %s", b.sh(reader, "df -Pm /data"))
	}
	b.sh(reader, "echo restored > /data/file && sync")
	b.reads(writer, "after")

	volume := b.volumeOf(source)
	b.remove(writer)
	b.remove(source)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, volume), "deleting the source")
	again := b.run("again", b.claim("again", class, "400Mi", cluster.FromSnapshot(taken.Name)), cluster.Steadfast)
	b.reads(again, "before")
	b.remove(taken)
	b.must(cluster.AwaitGone(b.within(), b.Cluster, held), "deleting the snapshot")
	b.reads(reader, "restored")
}
