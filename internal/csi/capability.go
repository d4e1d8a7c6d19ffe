package csi

import (
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/storageclass"
)

// accessModes has the access modes of Kubernetes by those of CSI. Kubernetes has none for a
// single node that only reads: such a volume is as good as one that is written.
var accessModes = map[csi.VolumeCapability_AccessMode_Mode]corev1.PersistentVolumeAccessMode{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER:        corev1.ReadWriteOnce,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER: corev1.ReadWriteOncePod,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER:  corev1.ReadWriteOnce,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:   corev1.ReadWriteOnce,
	csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY:    corev1.ReadOnlyMany,
	csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER:  corev1.ReadWriteMany,
	csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:   corev1.ReadWriteMany,
}

// use is the requested use of a volume, as far as it shapes the volume.
type use struct {
	mode   v1alpha1.VolumeMode
	fsType v1alpha1.FSType // empty: not given, or Block
	// many: several nodes write at once.
	many bool
}

// parseCapabilities reads the capabilities of a request. They must agree with
// each other: a volume is either a filesystem or a block device. Several nodes may write if one of them says so.
func parseCapabilities(d driver.Driver, capabilities []*csi.VolumeCapability) (use, error) {
	if len(capabilities) == 0 {
		return use{}, invalid("volume capabilities are missing")
	}
	var all use
	for i, capability := range capabilities {
		one, err := parseCapability(d, capability)
		switch {
		case err != nil:
			return use{}, err
		case i == 0:
			all = one
		case one.mode != all.mode || one.fsType != all.fsType:
			return use{}, invalid("volume capabilities disagree: %s and %s", all, one)
		}
		all.many = all.many || one.many
	}
	return all, nil
}

func parseCapability(d driver.Driver, capability *csi.VolumeCapability) (use, error) {
	mode := capability.GetAccessMode().GetMode()
	of, known := accessModes[mode]
	if !known || d.Supports(of) != "" {
		return use{}, invalid("%s", d.Refuses(mode.String()))
	}
	switch many := of == corev1.ReadWriteMany; {
	case capability.GetBlock() != nil:
		return use{mode: v1alpha1.Block, many: many}, nil
	case many && capability.GetMount() != nil:
		return use{}, invalid("access mode %s is for volumeMode Block: two nodes that mount one filesystem destroy it", mode)
	case capability.GetMount() != nil:
		fsType, err := storageclass.ParseFSType(capability.GetMount().GetFsType())
		return use{mode: v1alpha1.Filesystem, fsType: fsType}, err
	default:
		return use{}, invalid("a volume capability says neither mount nor block")
	}
}

func (u use) String() string {
	if u.fsType == "" {
		return string(u.mode)
	}
	return fmt.Sprintf("%s with %s", u.mode, u.fsType)
}

func invalid(format string, args ...any) error {
	return &requestError{message: fmt.Sprintf(format, args...)}
}

// requestError is an errInvalid whose message does not contain the text of that class.
type requestError struct{ message string }

func (e *requestError) Error() string { return e.message }
func (e *requestError) Unwrap() error { return errInvalid }
