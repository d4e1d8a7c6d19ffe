//go:build e2e && thorough

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
	"berth.dev/berth/test/install"
)

// These tests need a node whose kernel has simple quotas of btrfs. Guests have an older kernel, this
// machine has it: lab up --native.

// btrfs makes a filesystem, a class over it, and a class for snapshots with the same name. When the test ends,
// nothing of Berth may be in the filesystem.
func (p pools) btrfs(label string) (class string) {
	p.Helper()
	nodes, err := install.Nodes(p.ctx, p.Lab)
	p.must(err, "asking the lab for its nodes")
	node, path := nodes[0].Name, install.BtrfsPath(label)
	disk, err := install.MakeBtrfs(p.ctx, p.Lab, nodes[0], label)
	p.must(err, "making a filesystem")
	p.Cleanup(func() {
		p.onNode(node, "umount", path)
		p.onNode(node, "wipefs", "--all", disk)
	})
	pc := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerBtrfs, Btrfs: &v1alpha1.BtrfsPools{Filesystems: []string{label}},
	}}
	pc.Name = label + "-" + p.namespace
	sc := cluster.StorageClass(pc.Name, map[string]string{"poolClass": pc.Name})
	vsc := cluster.SnapshotClass(pc.Name)
	p.create(pc, sc, vsc)
	p.Cleanup(func() {
		p.goneWithSnapshots()
		p.eventually("no subvolume is left", func() bool { return p.onNode(node, "btrfs", "subvolume", "list", path) == "" })
		for _, o := range []client.Object{vsc, sc, pc} {
			if err := p.Delete(p.ctx, o); err != nil {
				p.Error(err)
			}
		}
	})
	p.await(node, "a filesystem that was mounted while the agent ran", func(p v1alpha1.Pool) bool {
		return p.Name == "btrfs:"+label && p.Health == v1alpha1.PoolHealthy && slices.Contains(p.Classes, pc.Name)
	})
	return pc.Name
}

func TestASubvolumeGrowsUnderItsPodAndIsCopiedAndGoes(t *testing.T) {
	b := begin(t)
	p := pools{b}
	class := p.btrfs("files")
	source := b.claim("source", class, "200Mi")
	writer := b.run("writer", source, cluster.Steadfast)
	volume := b.volumeOf(source)
	if volume.Spec.FSType != v1alpha1.Subvolume {
		t.Errorf("the filesystem is %s", volume.Spec.FSType)
	}
	b.sh(writer, "echo before > /data/file")
	taken, held := b.snapshot("taken", class, source)
	b.sh(writer, "echo after > /data/file")
	if out := b.sh(writer, "dd if=/dev/zero of=/data/large bs=1M count=300 2>&1; rm /data/large; sync"); !strings.Contains(out, "Disk quota exceeded") && !strings.Contains(out, "No space left") {
		t.Errorf("300 MiB fit into a volume of 200: %s", out)
	}

	b.resize(source, "400Mi") // while its pod runs
	b.must(cluster.Await(b.within(), b.Cluster, source, "400Mi", cluster.HasCapacity("400Mi")), "growing")
	b.must(cluster.Await(b.within(), b.Cluster, volume, "400Mi", func(v *v1alpha1.Volume) bool {
		entry := v.Entry(writer.Spec.NodeName)
		return entry != nil && entry.Capacity != nil && entry.Capacity.Cmp(resource.MustParse("400Mi")) >= 0
	}), "growing the subvolume")
	b.sh(writer, "dd if=/dev/zero of=/data/large bs=1M count=300 2>/dev/null && rm /data/large && sync")
	b.reads(writer, "after")

	p.copiesOutlive(class, source, writer, taken, held)
}

func TestARawClaimOfAPoolOfSubvolumesIsRefused(t *testing.T) {
	b := begin(t)
	class := pools{b}.btrfs("refused")
	claim := b.claim("raw", class, "100Mi", cluster.Raw)
	b.create(cluster.Pod(b.namespace, "raw", []*corev1.PersistentVolumeClaim{claim}))
	b.awaitEvent(claim, "no raw block volumes: use volumeMode Filesystem")
}
