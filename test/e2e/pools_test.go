//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// pools is a bench that makes pools and classes for the time of a test.
type pools struct{ *bench }

// plugged puts an empty disk into a node for the time of a test, and returns its path.
func (p pools) plugged(node, size string) string {
	p.Helper()
	name, device, _ := strings.Cut(p.lab("disk", "add", node, "--size", size), " ")
	p.Cleanup(func() { p.lab("disk", "remove", node, name) })
	p.onNode(node, "udevadm", "wait", "--timeout=60", device)
	return device
}

// class makes a PoolClass, and a StorageClass of the same name, for one test.
func (p pools) class(name string, spec v1alpha1.PoolClassSpec) string {
	p.Helper()
	c := &v1alpha1.PoolClass{Spec: spec}
	c.Name = name + "-" + p.namespace
	sc := cluster.StorageClass(c.Name, map[string]string{"poolClass": c.Name})
	p.create(c, sc)
	p.Cleanup(func() {
		for _, o := range []client.Object{sc, c} {
			if err := p.Delete(p.ctx, o); err != nil {
				p.Error(err)
			}
		}
	})
	return c.Name
}

// await waits until a pool of a node is as it should be.
func (p pools) await(node, what string, is func(v1alpha1.Pool) bool) {
	p.Helper()
	n := &v1alpha1.StorageNode{}
	n.Name = node
	p.must(cluster.Await(p.within(), p.Cluster, n, what, func(n *v1alpha1.StorageNode) bool {
		return slices.ContainsFunc(n.Status.Pools, is)
	}), "the pools of "+node)
}

func TestAThinPoolIsPromisedTwiceAndFilledAsDataIsWritten(t *testing.T) {
	t.Parallel()
	b := begin(t)
	p := pools{b}
	const node, pool = "node2", group + "/thin"
	b.onNode(node, "lvcreate", "--yes", "--type", "thin-pool", "--size", "2g", "--name", "thin", group)
	t.Cleanup(func() { b.onNode(node, "lvremove", "--yes", pool) })
	class := p.class("thin", v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVMThin,
		LVMThin:     &v1alpha1.LVMThinPools{ThinPools: []string{pool}, OverprovisionPercent: 200, MaxFillPercent: 90},
	})
	t.Cleanup(func() { p.gone() })

	files, disk := b.claim("files", class, "2Gi"), b.claim("disk", class, "1Gi", cluster.Raw)
	pod := b.run("files", files)
	raw := b.run("disk", disk)
	if pod.Spec.NodeName != node || raw.Spec.NodeName != node {
		t.Errorf("the pods are on %s and %s", pod.Spec.NodeName, raw.Spec.NodeName)
	}
	b.resize(files, "3Gi")
	b.must(cluster.Await(b.within(), b.Cluster, files, "3Gi", cluster.HasCapacity("3Gi")), "growing")
	b.sh(pod, "dd if=/dev/zero of=/data/file bs=1M count=200 && sync")
	b.sh(raw, "printf kept | dd of=/dev/volume bs=4 seek=1000 conv=notrunc,fsync")
	p.await(node, "more than 200 MiB filled", func(p v1alpha1.Pool) bool {
		return p.Name == pool && p.Filled != nil && p.Filled.Cmp(resource.MustParse("200Mi")) > 0
	})
	if got := b.sh(raw, "dd if=/dev/volume bs=4 skip=1000 count=1 2>/dev/null"); got != "kept" {
		t.Errorf("read %q from the raw volume", got)
	}

	b.resize(disk, "2Gi")
	b.awaitEvent(disk, "more asked")
}

// gone removes the pods and claims of a test, and waits until its volumes are gone: the
// test removes their pool next.
func (p pools) gone() {
	p.Helper()
	volumes := p.volumes(p.within())
	p.must(p.DeleteAllOf(p.ctx, cluster.Pod(p.namespace, "", nil), client.InNamespace(p.namespace)), "deleting pods")
	p.must(p.DeleteAllOf(p.ctx, cluster.Claim(p.namespace, "", "", "1"), client.InNamespace(p.namespace)), "deleting claims")
	for _, v := range volumes {
		p.must(cluster.AwaitGone(p.within(), p.Cluster, &v), "deleting "+v.Name)
	}
}

func TestAWholeDiskIsAVolumeAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := begin(t)
	p := pools{b}
	const node = "node3"
	device := p.plugged(node, "128M")
	class := p.class("disk", v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerDevice, Devices: &v1alpha1.DevicePools{Paths: []string{device}},
	})
	t.Cleanup(func() { p.gone() })
	empty := func(p v1alpha1.Pool) bool {
		return slices.Contains(p.Classes, class) && p.Health == v1alpha1.PoolHealthy && p.LargestVolume.Cmp(p.Total) == 0
	}
	p.await(node, "an empty disk", empty)

	claim := b.claim("data", class, "50Mi")
	pod := b.run("first", claim)
	b.sh(pod, "echo a secret that must not stay > /data/file && sync")
	b.remove(pod)
	second := b.run("second", claim)
	if got := b.sh(second, "cat /data/file"); got != "a secret that must not stay" {
		t.Errorf("read %q", got)
	}
	if got := b.sh(second, "df -Pm /data | awk 'NR==2 {print ($2 > 100)}'"); got != "1" {
		t.Errorf("the volume is not the whole disk: %s", b.sh(second, "df -Pm /data"))
	}

	p.gone()
	p.await(node, "an empty disk again", empty)
	if got := b.onNode(node, "sh", "-c", "tr -d '\\0' <"+device+" | wc -c"); got != "0" {
		t.Errorf("%s bytes of the disk are not zero after its release", got)
	}
}
