package storageclass

import (
	"strings"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision/mkfs"
)

// OneNode is why an access mode of several nodes is refused, also that of readers: a pod
// elsewhere would wait for ever.
const OneNode = "the volume lives on one node (use ReadWriteOnce or ReadWriteOncePod; " +
	"pods of that node share a ReadWriteOnce volume, as readers with readOnly: true)"

// CheckMkfsOptions returns an error that names the option and what is allowed unless
// a filesystem can be made with the options.
func CheckMkfsOptions(fsType v1alpha1.FSType, options string) error {
	if options == "" {
		return nil
	}
	if fsType == v1alpha1.Dataset {
		return Invalid("parameter %q: no mkfs makes a filesystem of ZFS: leave it out, or name %s or %s as %q",
			MkfsOptionsKey, v1alpha1.Ext4, v1alpha1.XFS, FSTypeKey)
	}
	if err := mkfs.Check(string(fsType), options); err != nil {
		return Invalid("parameter %q: %v", MkfsOptionsKey, err)
	}
	return nil
}

// CheckMountOptions returns an error that names the option and what is allowed unless
// a filesystem can be mounted with the options. Where it is not said which filesystem
// it is, that is if none can.
func CheckMountOptions(fsType v1alpha1.FSType, options []string) error {
	if fsType != "" {
		if err := mount.CheckAsked(string(fsType), options); err != nil {
			return Invalid("%v", err)
		}
		return nil
	}
	var problems []string
	for _, each := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Dataset} {
		err := CheckMountOptions(each, options)
		if err == nil {
			return nil
		}
		problems = append(problems, err.Error())
	}
	return Invalid("%s", strings.Join(problems, "; "))
}
