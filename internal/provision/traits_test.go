package provision_test

import (
	"slices"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
)

func TestEachTypeHasItsTraits(t *testing.T) {
	for _, tc := range []struct {
		provisioner, pool string
		kind              ledger.Kind
		copies            string
		tree, ofTrees     string
		standard          string
		ofDisks           string
		fillsUp           bool
	}{
		{provision.LVM, "vg0", ledger.Thick, v1alpha1.FeatureCopiesThick, "", "", "ext4", "volume group", false},
		{provision.LVMThin, "vg0/thin", ledger.Thin, v1alpha1.FeatureCopies, "", "", "ext4", "", true},
		{provision.ZFS, "zfs:tank/berth", ledger.Thick, v1alpha1.FeatureCopies, "zfs", v1alpha1.FeatureDatasets, "zfs", "zpool", false},
		{provision.Btrfs, "btrfs:data", ledger.Thick, v1alpha1.FeatureCopies, "btrfs", "", "btrfs", "filesystem", false},
		{provision.Device, "disk:wwn-1", ledger.Device, "", "", "", "ext4", "", false},
	} {
		t.Run(tc.provisioner, func(t *testing.T) {
			got := provision.TraitsOf(tc.provisioner)
			if got.Type != tc.provisioner || provision.TypeOf(tc.pool) != tc.provisioner {
				t.Errorf("type %s, and %s is of type %s", got.Type, tc.pool, provision.TypeOf(tc.pool))
			}
			if got.Kind != tc.kind || got.Copies != tc.copies || got.OfDisks != tc.ofDisks || got.FillsUp() != tc.fillsUp {
				t.Errorf("kind %v, copies %q, of disks %q, fills up %v", got.Kind, got.Copies, got.OfDisks, got.FillsUp())
			}
			if got.Tree != tc.tree || got.TreeFeature != tc.ofTrees || got.Default() != tc.standard || got.Devices != (tc.provisioner != provision.Btrfs) {
				t.Errorf("tree %q with feature %q, %q by default, devices %v", got.Tree, got.TreeFeature, got.Default(), got.Devices)
			}
		})
	}
	if got := provision.TraitsOf("Other"); got != (provision.Traits{}) {
		t.Errorf("a type that is not known: %+v", got)
	}
}

func TestTheFormOfANameTellsTheTypeOfAPool(t *testing.T) {
	for pool, want := range map[string]string{
		"vg0": provision.LVM, "zfs": provision.LVM, "vg0/thin": provision.LVMThin, "disk/thin": provision.LVMThin,
		"zfs:tank": provision.ZFS, "zfs:tank/berth": provision.ZFS, "btrfs": provision.LVM, "btrfs:data": provision.Btrfs, "disk:a": provision.Device, "disk:a/b": provision.Device,
	} {
		if got := provision.TypeOf(pool); got != want {
			t.Errorf("%s is of type %s, want %s", pool, got, want)
		}
	}
}

func TestAFilesystemIsMadeByMkfsOrIsAVolumeByItself(t *testing.T) {
	for filesystem, of := range map[string]string{provision.Ext4: "", provision.XFS: "", provision.Raw: "", "": "", "zfs": provision.ZFS, "btrfs": provision.Btrfs} {
		if got := provision.TraitsOfTree(filesystem).Type; got != of {
			t.Errorf("%q is the tree of type %q, want %q", filesystem, got, of)
		}
		if got := provision.ByItself(filesystem); (got == filesystem) != (of != "" || filesystem == "") {
			t.Errorf("%q is %q by itself", filesystem, got)
		}
	}
	if got, want := provision.Filesystems(), []string{"ext4", "xfs", "zfs", "btrfs"}; !slices.Equal(got, want) {
		t.Errorf("filesystems %v, want %v", got, want)
	}
}

func TestAVolumeHasOneOfTheFormsThatItsTypeKnows(t *testing.T) {
	for name, tc := range map[string]struct {
		traits       provision.Traits
		device, tree bool
		filesystems  []string
	}{
		"devices alone":         {provision.Traits{Devices: true}, true, false, []string{"ext4", "xfs"}},
		"devices and trees":     {provision.Traits{Devices: true, Tree: "zfs"}, true, true, []string{"ext4", "xfs", "zfs"}},
		"trees alone":           {provision.Traits{Tree: "zfs"}, false, true, []string{"zfs"}},
		"trees of another kind": {provision.Traits{Tree: "btrfs"}, false, false, []string{"btrfs"}},
	} {
		t.Run(name, func(t *testing.T) {
			if device, tree := tc.traits.Has(""), tc.traits.Has("zfs"); device != tc.device || tree != tc.tree {
				t.Errorf("a device %v, a tree %v", device, tree)
			}
			if got := tc.traits.Filesystems(); !slices.Equal(got, tc.filesystems) {
				t.Errorf("filesystems %v, want %v", got, tc.filesystems)
			}
		})
	}
}
