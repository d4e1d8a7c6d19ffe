//go:build e2e && thorough

package e2e

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

func TestAZvolIsInAManagedZpoolThatGrowsByAPairOfDisks(t *testing.T) {
	t.Parallel()
	b := begin(t)
	p := pools{b}
	b.onNode(zfsNode, "modprobe", "zfs")
	name := "made-" + b.namespace
	var disks []string
	for range 4 {
		disks = append(disks, p.plugged(zfsNode, "512M"))
	}
	b.Cleanup(func() { b.onNode(zfsNode, "zpool", "destroy", "-f", name) })
	class := p.class("managed", v1alpha1.PoolClassSpec{
		Provisioner:  v1alpha1.ProvisionerZFS,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelHostname: zfsNode}},
		ZFS: &v1alpha1.ZFSPools{Pools: []string{name}, Create: &v1alpha1.ZpoolCreation{
			Disks: v1alpha1.DevicePools{Paths: disks[:2]}, Layout: v1alpha1.ZpoolMirror,
		}},
	})
	t.Cleanup(func() { p.gone() })
	var made int64
	p.await(zfsNode, "a zpool", func(p v1alpha1.Pool) bool {
		made = p.Total.Value()
		return p.Name == "zfs:"+name && p.Health == v1alpha1.PoolHealthy && p.LastChange != nil && p.LastChange.Reason == v1alpha1.PoolMade
	})
	pod := b.run("first", b.claim("data", class, "100Mi"))
	b.sh(pod, "echo kept > /data/file && sync")

	c := &v1alpha1.PoolClass{}
	b.must(b.Get(b.within(), client.ObjectKey{Name: class}, c), "reading the class")
	c.Spec.ZFS.Create.Disks.Paths = disks
	b.must(b.Update(b.within(), c), "adding disks to the class")
	p.await(zfsNode, "a zpool that has grown", func(p v1alpha1.Pool) bool {
		return p.Name == "zfs:"+name && p.Total.Value() > made*3/2 && p.LastChange != nil && p.LastChange.Reason == v1alpha1.PoolGrown
	})
	if status := b.onNode(zfsNode, "zpool", "status", name); strings.Count(status, "mirror-") != 2 {
		t.Errorf("it is made of\n%s", status)
	}
	if got := b.sh(pod, "cat /data/file"); got != "kept" {
		t.Errorf("read %q", got)
	}
}
