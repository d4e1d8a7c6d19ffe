package storageclass

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

// refuses fails the test unless an error is of this package and contains a text. An
// empty text means that there must be no error.
func refuses(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("got %v", err)
	case says != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), says)):
		t.Errorf("got %v, want %q", err, says)
	}
}

func TestOptionsOfMkfsAreThoseOfTheFilesystem(t *testing.T) {
	for name, tc := range map[string]struct {
		fsType           v1alpha1.FSType
		options, refused string
	}{
		"none":                        {fsType: v1alpha1.Ext4},
		"none of none":                {},
		"one of ext4":                 {fsType: v1alpha1.Ext4, options: "-I 512"},
		"one of ext4 for xfs":         {v1alpha1.XFS, "-I 512", `parameter "mkfsOptions": "-I" is not supported for xfs (supported: -b -d`},
		"one for a filesystem of ZFS": {v1alpha1.Dataset, "-I 512", `no mkfs makes a filesystem of ZFS: leave it out, or name ext4 or xfs as "csi.storage.k8s.io/fstype"`},
		"none for one of ZFS":         {fsType: v1alpha1.Dataset},
		"one that is no value":        {v1alpha1.XFS, "-m reflink=2", "reflink=0|1"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, CheckMkfsOptions(tc.fsType, tc.options), tc.refused) })
	}
}

func TestMountOptionsAreThoseOfTheFilesystem(t *testing.T) {
	for name, tc := range map[string]struct {
		fsType  v1alpha1.FSType
		options []string
		refused string
	}{
		"none":                             {fsType: v1alpha1.Ext4},
		"one of both":                      {v1alpha1.XFS, []string{"noatime"}, ""},
		"one of xfs for ext4":              {v1alpha1.Ext4, []string{"noatime", "inode64"}, `"inode64" is not supported for ext4`},
		"one of xfs for a copy of either":  {"", []string{"inode64"}, ""},
		"one of neither":                   {"", []string{"barrier=0"}, `for ext4`},
		"two that no filesystem has both":  {"", []string{"inode64", "data=ordered"}, `for xfs`},
		"what Berth decides by itself":     {v1alpha1.XFS, []string{"nouuid"}, "nouuid"},
		"what a pod must not have from it": {v1alpha1.Ext4, []string{"suid"}, `"suid" is not supported`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, CheckMountOptions(tc.fsType, tc.options), tc.refused) })
	}
}
