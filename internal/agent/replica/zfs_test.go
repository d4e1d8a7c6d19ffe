package replica

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

func TestAZvolIsMadeAsItsClassSaysThen(t *testing.T) {
	tank := provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank/berth"}
	n := newNode(volume(func(v *v1alpha1.Volume) { v.Spec.PoolClass, v.Spec.Replicas[0].Pool = "tank", tank.Name }))
	n.disks.AddPool(memory.PoolConfig{PoolRef: tank, Total: 10 * gib})
	class := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{
		Pools: []string{"tank/berth"}, Volblocksize: "64Ki", Compression: "zstd",
	}}}
	n.classes["tank"] = class
	n.settle(t)
	class.Spec.ZFS.Compression = "off"
	n.settle(t)
	if got, want := n.disks.ZFS(id), (provision.ZFSOptions{BlockSize: 64 << 10, Compression: "zstd"}); got != want {
		t.Errorf("made with %+v, want %+v", got, want)
	}
}
