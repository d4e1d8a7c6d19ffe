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

func TestAnInlineVolumeHasTheFilesystemOfItsClass(t *testing.T) {
	n := newNode(t)
	n.disks.AddPool(memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}, Total: gib})
	n.class.Spec = v1alpha1.PoolClassSpec{InlineVolumes: n.class.Spec.InlineVolumes, Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{"tank"}}}
	r := n.request()
	r.Filesystem = ""
	small := r
	small.Size = 1 << 20
	if err := n.Publish(t.Context(), small); !errors.Is(err, provision.ErrInvalid) || n.left() != nothing {
		t.Errorf("a MiB: %v, %s", err, n.left())
	}
	for range 2 { // the kubelet asks again after a restart
		if err := n.Publish(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		n.restart()
	}
	if v, err := n.pool.Get(t.Context(), id); err != nil || v.Filesystem != provision.Dataset {
		t.Errorf("the volume has %q, %v", v.Filesystem, err)
	}
}

// An earlier agent made a device in any class, and died before it made the filesystem.
func TestABlankInlineVolumeOfAnEarlierAgentBecomesExt4(t *testing.T) {
	n := newNode(t)
	tank := provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank"}
	n.disks.AddPool(memory.PoolConfig{PoolRef: tank, Total: gib})
	n.class.Spec = v1alpha1.PoolClassSpec{InlineVolumes: n.class.Spec.InlineVolumes, Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{"tank"}}}
	r := n.request()
	if _, err := n.pool.Create(t.Context(), provision.CreateRequest{ID: id, Pool: tank, Size: r.Size, Inline: owner}); err != nil {
		t.Fatal(err)
	}
	r.Filesystem = ""
	if err := n.Publish(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if v, err := n.pool.Get(t.Context(), id); err != nil || v.Filesystem != provision.Ext4 {
		t.Errorf("the volume has %q, %v", v.Filesystem, err)
	}
}
