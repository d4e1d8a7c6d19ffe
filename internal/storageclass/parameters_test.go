package storageclass

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		parameters map[string]string
		want       Parameters
		refused    string // part of the message; empty means accepted
	}{
		"a pool class is all that is needed": {
			parameters: map[string]string{"poolClass": "fast"},
			want:       Parameters{PoolClass: "fast"},
		},
		"a filesystem may be named": {
			parameters: map[string]string{"poolClass": "fast", "csi.storage.k8s.io/fstype": "xfs"},
			want:       Parameters{PoolClass: "fast", FSType: v1alpha1.XFS},
		},
		"options of mkfs may be given": {
			parameters: map[string]string{"poolClass": "fast", "mkfsOptions": "-I 512\n-i 8192 "},
			want:       Parameters{PoolClass: "fast", MkfsOptions: "-I 512 -i 8192"},
		},
		"the provisioner adds the claim and the volume name": {
			parameters: map[string]string{
				"poolClass":                        "fast",
				"csi.storage.k8s.io/pvc/name":      "data",
				"csi.storage.k8s.io/pvc/namespace": "shop",
				"csi.storage.k8s.io/pv/name":       "pvc-1",
			},
			want: Parameters{PoolClass: "fast", ClaimNamespace: "shop", ClaimName: "data"},
		},
		"no pool class is refused":                         {parameters: nil, refused: `"poolClass" is required`},
		"an empty pool class is refused":                   {parameters: map[string]string{"poolClass": ""}, refused: `"poolClass"`},
		"a pool class with a path is refused":              {parameters: map[string]string{"poolClass": "../fast"}, refused: `"../fast"`},
		"an unknown key is named with the known":           {parameters: map[string]string{"poolClass": "a", "raid": "1"}, refused: `unknown parameter "raid" (known: poolClass, csi.storage.k8s.io/fstype, mkfsOptions)`},
		"a key in another case gets a suggestion":          {parameters: map[string]string{"poolclass": "a"}, refused: `did you mean "poolClass"?`},
		"an unprefixed fstype gets a suggestion":           {parameters: map[string]string{"poolClass": "a", "fsType": "xfs"}, refused: `did you mean "csi.storage.k8s.io/fstype"?`},
		"options of mkfs in another case get a suggestion": {parameters: map[string]string{"poolClass": "a", "mkfsoptions": "-K"}, refused: `did you mean "mkfsOptions"?`},
		"an unsupported filesystem is refused":             {parameters: map[string]string{"poolClass": "a", "csi.storage.k8s.io/fstype": "vfat"}, refused: `"vfat" is not supported (supported: ext4, xfs; zfs in PoolClasses with provisioner ZFS; btrfs in PoolClasses with provisioner Btrfs)`},
		"a filesystem with an option is refused":           {parameters: map[string]string{"poolClass": "a", "csi.storage.k8s.io/fstype": "ext4 -F"}, refused: "not supported"},
		"half a claim is refused":                          {parameters: map[string]string{"poolClass": "a", "csi.storage.k8s.io/pvc/name": "data"}, refused: "go together"},
		"a malformed claim name is refused":                {parameters: map[string]string{"poolClass": "a", "csi.storage.k8s.io/pvc/name": "a/b", "csi.storage.k8s.io/pvc/namespace": "n"}, refused: `"a/b"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.parameters)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Fatalf("got error %v, want one with %q", err, test.refused)
				}
				if !errors.Is(err, ErrInvalid) {
					t.Errorf("%v does not wrap ErrInvalid", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFilesystemOfZFSIsForClassesOfZFS(t *testing.T) {
	for name, tc := range map[string]struct {
		provisioner v1alpha1.ProvisionerType
		fsType      v1alpha1.FSType
		byDefault   v1alpha1.FSType
		refused     string
	}{
		"zfs in a zpool":         {v1alpha1.ProvisionerZFS, v1alpha1.Dataset, v1alpha1.Dataset, ""},
		"ext4 in a zpool":        {v1alpha1.ProvisionerZFS, v1alpha1.Ext4, v1alpha1.Dataset, ""},
		"xfs in a zpool":         {v1alpha1.ProvisionerZFS, v1alpha1.XFS, v1alpha1.Dataset, ""},
		"ext4 in a group":        {v1alpha1.ProvisionerLVM, v1alpha1.Ext4, v1alpha1.Ext4, ""},
		"zfs in a group":         {v1alpha1.ProvisionerLVM, v1alpha1.Dataset, v1alpha1.Ext4, "PoolClass fast has LVM: use ext4 or xfs"},
		"zfs in a thin pool":     {v1alpha1.ProvisionerLVMThin, v1alpha1.Dataset, v1alpha1.Ext4, "PoolClass fast has LVMThin"},
		"zfs on a whole disk":    {v1alpha1.ProvisionerDevice, v1alpha1.Dataset, v1alpha1.Ext4, "PoolClass fast has Device"},
		"zfs in an unread class": {"", v1alpha1.Dataset, v1alpha1.Ext4, "provisioner ZFS"},
	} {
		t.Run(name, func(t *testing.T) {
			class := &v1alpha1.PoolClass{Spec: v1alpha1.PoolClassSpec{Provisioner: tc.provisioner}}
			class.Name = "fast"
			refuses(t, CheckFSType(tc.fsType, class), tc.refused)
			if got := FSTypeFor(tc.provisioner); got != tc.byDefault {
				t.Errorf("by default %s, want %s", got, tc.byDefault)
			}
		})
	}
}
