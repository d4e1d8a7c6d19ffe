package rules

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const (
	btrfsNeeded      = "btrfs must be set exactly when provisioner is Btrfs"
	filesystemsField = "spec.btrfs.filesystems"
	oneFilesystem    = "create: filesystems must name the one filesystem that is to be made"
	misplaced        = "fsType btrfs is for pools of btrfs, which have nothing else"
)

// filesystems makes the class one over filesystems of btrfs.
func filesystems(names ...string) func(*v1alpha1.PoolClass) {
	return func(c *v1alpha1.PoolClass) {
		c.Spec.Provisioner, c.Spec.LVM, c.Spec.Btrfs = v1alpha1.ProvisionerBtrfs, nil, &v1alpha1.BtrfsPools{Filesystems: names}
	}
}

func makingFilesystems(names ...string) func(*v1alpha1.PoolClass) {
	return both(filesystems(names...), func(c *v1alpha1.PoolClass) {
		c.Spec.Btrfs.Create = &v1alpha1.GroupCreation{Disks: v1alpha1.DevicePools{Paths: []string{"/dev/nvme*"}}}
	})
}

var btrfsClassCases = map[string]struct {
	change  func(*v1alpha1.PoolClass)
	refusal string
}{
	"filesystems":                 {change: filesystems("data", "fast_2.x-y")},
	"filesystems with some spare": {change: both(filesystems("data"), both(spare("10Gi"), percent(5)))},
	"no filesystem":               {change: filesystems(), refusal: filesystemsField},
	"the same twice":              {change: filesystems("data", "data"), refusal: "Duplicate value"},
	"the name in a StorageNode":   {change: filesystems("btrfs:data"), refusal: filesystemsField + "[0]"},
	"an option":                   {change: filesystems("-L"), refusal: filesystemsField + "[0]"},
	"a path":                      {change: filesystems("/mnt/data"), refusal: filesystemsField + "[0]"},
	"one that is made":            {change: makingFilesystems("data")},
	"two that are made":           {change: makingFilesystems("data", "more"), refusal: oneFilesystem},
	"filesystems of no class":     {change: both(filesystems("data"), func(c *v1alpha1.PoolClass) { c.Spec.Btrfs = nil }), refusal: btrfsNeeded},
	"filesystems and groups":      {change: func(c *v1alpha1.PoolClass) { c.Spec.Btrfs = &v1alpha1.BtrfsPools{Filesystems: []string{"data"}} }, refusal: btrfsNeeded},
}

func TestAPoolClassOverFilesystemsIsCreatedOnlyInAFormThatBtrfsCanServe(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range btrfsClassCases {
		t.Run(name, func(t *testing.T) {
			c := newClass(t, "vg")
			tc.change(c)
			expect(t, env.Client.Create(t.Context(), c), tc.refusal)
		})
	}
}

var subvolumeCases = map[string]struct {
	change  change
	refusal string
}{
	"in a filesystem":      {change: all(wanted("n1"), fsType(v1alpha1.Subvolume), inPool("btrfs:data"))},
	"without a place yet":  {change: all(wanted(), fsType(v1alpha1.Subvolume))},
	"in a volume group":    {change: all(wanted("n1"), fsType(v1alpha1.Subvolume), inPool("vg0")), refusal: misplaced},
	"one of two elsewhere": {change: all(wanted("n1", "n2"), fsType(v1alpha1.Subvolume), inPool("btrfs:data")), refusal: misplaced},
	"ext4":                 {change: all(wanted("n1"), inPool("btrfs:data")), refusal: misplaced},
	"a raw block volume": {change: all(wanted("n1"), inPool("btrfs:data"), func(v *v1alpha1.Volume) {
		v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, ""
	}), refusal: misplaced},
	"with options of mkfs": {change: all(wanted(), fsType(v1alpha1.Subvolume), made("-d single")), refusal: mkfsMisplaced},
}

func TestAVolumeInAFilesystemIsASubvolumeAndNothingElse(t *testing.T) {
	env := apitest.Start(t)
	for name, tc := range subvolumeCases {
		t.Run(name, func(t *testing.T) {
			expect(t, env.Client.Create(t.Context(), newVolume(t, tc.change)), tc.refusal)
		})
	}
}
