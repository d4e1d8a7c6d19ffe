package replica

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/replica"
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
	if got, want := n.disks.Tuning(id), (provision.Tuning{BlockSize: 64 << 10, Compression: "zstd"}); got != want {
		t.Errorf("made with %+v, want %+v", got, want)
	}
}

func TestADatasetIsMadeForAFilesystemOfZFSAndADeviceForAllElse(t *testing.T) {
	tank := provision.PoolRef{Type: provision.ZFS, Name: "zfs:tank/berth"}
	for name, tc := range map[string]struct {
		change  option
		content provision.Content
		wants   string // the filesystem recorded in the end
	}{
		"zfs":       {func(v *v1alpha1.Volume) { v.Spec.FSType = v1alpha1.Dataset }, dataset("tank/berth/" + id), provision.Dataset},
		"ext4":      {func(*v1alpha1.Volume) {}, provision.Content{Source: "/dev/zfs:tank/berth/" + id}, provision.Ext4},
		"raw block": {block, provision.Content{Source: "/dev/zfs:tank/berth/" + id}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := volume(func(v *v1alpha1.Volume) { v.Spec.PoolClass, v.Spec.Replicas[0].Pool = "tank", tank.Name }, tc.change)
			n := newNode(wanted)
			n.disks.AddPool(memory.PoolConfig{PoolRef: tank, Total: 10 * gib})
			n.classes["tank"] = &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{
				Provisioner: v1alpha1.ProvisionerZFS, ZFS: &v1alpha1.ZFSPools{Pools: []string{"tank/berth"}},
			}}
			n.settle(t)
			if v, ok := n.disks.Device(tc.content.Source); !ok || v.Content.Tree != tc.content.Tree {
				t.Errorf("there is no %+v: %+v", tc.content, v)
			}
			facts := replica.Facts{Record: &provision.Volume{ID: id, Pool: tank, Size: gib, Content: tc.content}}
			if d := replica.Decide(placed.Look(wanted, here, facts)); d.Format.Filesystem != tc.wants {
				t.Errorf("to be formatted with %q, want %q", d.Format.Filesystem, tc.wants)
			}
		})
	}
}

func dataset(name string) provision.Content {
	return provision.Content{Source: name, Tree: provision.Dataset}
}
