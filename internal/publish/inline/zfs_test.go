package inline

import (
	"errors"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

func TestAnInlineZvolIsMadeAsItsClassSays(t *testing.T) {
	n := newNode(t)
	n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, Total: gib})
	n.class.Spec = v1alpha1.PoolClassSpec{InlineVolumes: n.class.Spec.InlineVolumes, Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{
		Pools: []string{"tank"}, Volblocksize: "8Ki", Compression: "lz4",
	}}
	n.publish()
	if got, want := n.disks.Tuning(id), (provision.Tuning{BlockSize: 8 << 10, Compression: "lz4"}); got != want {
		t.Errorf("made with %+v, want %+v", got, want)
	}
}

func TestAnInlineDatasetIsMadeWhereItIsAskedFor(t *testing.T) {
	n := newNode(t)
	n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, Total: gib})
	n.class.Spec = v1alpha1.PoolClassSpec{InlineVolumes: n.class.Spec.InlineVolumes, Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{"tank"}, Recordsize: "8Ki"}}
	r := n.request()
	r.Filesystem = provision.Dataset
	for range 2 {
		if err := n.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		n.restart()
	}
	if got := n.mounts.Mounts("tank/" + id); len(got) != 1 || got[0] != n.target() {
		t.Errorf("mounted at %v", got)
	}
	if got := n.disks.Tuning(id).RecordSize; got != 8<<10 {
		t.Errorf("records of %d bytes", got)
	}
}

func TestAnInlineDatasetOfAnotherClassIsRefused(t *testing.T) {
	n := newNode(t)
	r := n.request()
	r.Filesystem = provision.Dataset
	if err := n.Publish(t.Context(), r); !errors.Is(err, provision.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
	if got := n.left(); got != nothing {
		t.Errorf("left on the node: %s", got)
	}
}
