package csi

import (
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/internal/mount"
)

// parseFlags returns the mount options without "ro" and "rw", and whether the mount is
// read-only.
func parseFlags(capability *csi.VolumeCapability) (options []string, readOnly bool) {
	readOnly = capability.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
	flags := capability.GetMount().GetMountFlags()
	readOnly = readOnly || slices.Contains(flags, "ro")
	options = slices.DeleteFunc(slices.Clone(flags), func(f string) bool { return f == "ro" || f == "rw" })
	return options, readOnly
}

// seLinuxContext returns the SELinux context that the kubelet wants the volume mounted with,
// or empty. The kubelet sends it for each pod, so that Berth can refuse a pod with another
// context.
func seLinuxContext(capability *csi.VolumeCapability) (string, error) {
	options, _ := parseFlags(capability)
	for _, o := range options {
		if mount.IsContext(o) {
			label := mount.Context([]string{o})
			if label == "" {
				return "", invalid("mount option %.300q is no SELinux context", o)
			}
			return label, nil
		}
	}
	return "", nil
}

// mountOptions returns the mount options that any of the capabilities asks for.
func mountOptions(capabilities []*csi.VolumeCapability) []string {
	var all []string
	for _, c := range capabilities {
		options, _ := parseFlags(c)
		for _, o := range options {
			if !slices.Contains(all, o) {
				all = append(all, o)
			}
		}
	}
	return all
}
