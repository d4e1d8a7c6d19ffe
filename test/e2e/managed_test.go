//go:build e2e && thorough

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

func TestAManagedPoolIsMadeOfADiskAndGrowsByAnother(t *testing.T) {
	t.Parallel()
	b := begin(t)
	p := pools{b}
	const node = "node3"
	group := "made-" + b.namespace
	pool := group + "/thin"
	first, second := p.plugged(node, "512M"), p.plugged(node, "512M")
	b.Cleanup(func() { b.onNode(node, "vgremove", "--yes", "--force", group) })
	class := p.class("managed", v1alpha1.PoolClassSpec{
		Provisioner:  v1alpha1.ProvisionerLVMThin,
		NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/hostname": node}},
		LVMThin: &v1alpha1.LVMThinPools{
			ThinPools: []string{pool}, OverprovisionPercent: 300,
			Create:     &v1alpha1.ThinPoolCreation{Disks: &v1alpha1.DevicePools{Paths: []string{first}}, SizePercent: 50},
			AutoExtend: &v1alpha1.ThinPoolExtension{AtPercent: 70, ByPercent: 20},
		},
	})
	t.Cleanup(func() { p.gone() })
	var made int64
	p.await(node, "a thin pool", func(p v1alpha1.Pool) bool {
		made = p.Total.Value()
		return p.Name == pool && p.Health == v1alpha1.PoolHealthy && p.LastChange != nil && p.LastChange.Reason == v1alpha1.PoolMade
	})
	pod := b.run("first", b.claim("data", class, "600Mi"))
	b.sh(pod, "echo kept > /data/file && sync")

	c := &v1alpha1.PoolClass{}
	b.must(b.Get(b.within(), client.ObjectKey{Name: class}, c), "reading the class")
	c.Spec.LVMThin.Create.Disks.Paths = []string{first, second}
	b.must(b.Update(b.within(), c), "adding a disk to the class")
	var grown int64
	p.await(node, "a thin pool that has grown", func(p v1alpha1.Pool) bool {
		grown = p.Total.Value()
		return p.Name == pool && grown >= 2*made
	})
	b.sh(pod, "dd if=/dev/urandom of=/data/more bs=1M count=380 && sync") // three quarters of the volume
	p.await(node, "a thin pool that was extended", func(p v1alpha1.Pool) bool {
		return p.Name == pool && p.Total.Value() > grown && p.LastChange != nil && p.LastChange.Reason == v1alpha1.PoolExtended
	})
	if got := b.sh(pod, "cat /data/file"); got != "kept" {
		t.Errorf("read %q", got)
	}
}
