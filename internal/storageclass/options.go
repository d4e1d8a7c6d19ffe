package storageclass

import (
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/mkfs"
)

// CheckMkfsOptions returns an error unless a filesystem can be made with the options.
// The error names the option and the allowed ones.
func CheckMkfsOptions(fsType v1alpha1.FSType, options string) error {
	if options == "" {
		return nil
	}
	if tree := provision.TraitsOfTree(string(fsType)); tree.Type != "" {
		return Invalid("parameter %q: no mkfs makes a filesystem of %s: leave it out, or name %s or %s as %q",
			MkfsOptionsKey, tree.Type, v1alpha1.Ext4, v1alpha1.XFS, FSTypeKey)
	}
	if err := mkfs.Check(string(fsType), options); err != nil {
		return Invalid("parameter %q: %v", MkfsOptionsKey, err)
	}
	return nil
}

// CheckMountOptions returns an error unless a filesystem can be mounted with the
// options. The error names the option and the allowed ones. If fsType is empty, it
// returns an error only if no filesystem can be mounted with them.
func CheckMountOptions(fsType v1alpha1.FSType, options []string) error {
	if fsType != "" {
		if err := mount.CheckAsked(string(fsType), options); err != nil {
			return Invalid("%v", err)
		}
		return nil
	}
	var problems []string
	for _, each := range provision.Filesystems() {
		err := CheckMountOptions(v1alpha1.FSType(each), options)
		if err == nil {
			return nil
		}
		problems = append(problems, err.Error())
	}
	return Invalid("%s", strings.Join(problems, "; "))
}
