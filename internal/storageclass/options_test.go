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
		"no options for ext4":                {fsType: v1alpha1.Ext4},
		"no options and no filesystem":       {},
		"an option of ext4":                  {fsType: v1alpha1.Ext4, options: "-I 512"},
		"an option of ext4 for xfs":          {v1alpha1.XFS, "-I 512", `parameter "mkfsOptions": "-I" is not supported for xfs (supported: -b -d`},
		"an option for a filesystem of ZFS":  {v1alpha1.Dataset, "-I 512", `no mkfs makes a filesystem of ZFS: leave it out, or name ext4 or xfs as "csi.storage.k8s.io/fstype"`},
		"no options for a filesystem of ZFS": {fsType: v1alpha1.Dataset},
		"an option with a wrong value":       {v1alpha1.XFS, "-m reflink=2", "reflink=0|1"},
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
		"no options":                {fsType: v1alpha1.Ext4},
		"an option of ext4 and xfs": {v1alpha1.XFS, []string{"noatime"}, ""},
		"an option of xfs for ext4": {v1alpha1.Ext4, []string{"noatime", "inode64"}, `"inode64" is not supported for ext4`},
		"an option of xfs for a copy with an unknown filesystem": {"", []string{"inode64"}, ""},
		"an option of no filesystem":                             {"", []string{"barrier=0"}, `for ext4`},
		"an option of xfs together with an option of ext4":       {"", []string{"inode64", "data=ordered"}, `for xfs`},
		"an option that Berth sets":                              {v1alpha1.XFS, []string{"nouuid"}, "nouuid"},
		"an option that gives a pod too much power":              {v1alpha1.Ext4, []string{"suid"}, `"suid" is not supported`},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, CheckMountOptions(tc.fsType, tc.options), tc.refused) })
	}
}
