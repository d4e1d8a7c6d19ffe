package inline

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

func TestAnInlineZvolIsMadeAsItsClassSays(t *testing.T) {
	n := newNode(t)
	n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, Total: gib})
	n.class.Spec = v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{
		Pools: []string{"tank"}, Volblocksize: "8Ki", Compression: "lz4",
	}}
	n.publish()
	if got, want := n.disks.ZFS(id), (provision.ZFSOptions{BlockSize: 8 << 10, Compression: "lz4"}); got != want {
		t.Errorf("made with %+v, want %+v", got, want)
	}
}
