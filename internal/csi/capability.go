package csi

import (
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/storageclass"
)

// accessModes are the access modes in which only one node at a time uses a volume.
var accessModes = []csi.VolumeCapability_AccessMode_Mode{
	csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER,
	csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY,
}

// use is the requested use of a volume, as far as it shapes the volume.
type use struct {
	mode   v1alpha1.VolumeMode
	fsType v1alpha1.FSType // empty: not given, or Block
}

// parseCapabilities reads the capabilities of a request. They must agree with
// each other: a volume is either a filesystem or a block device.
func parseCapabilities(capabilities []*csi.VolumeCapability) (use, error) {
	if len(capabilities) == 0 {
		return use{}, invalid("volume capabilities are missing")
	}
	var all use
	for i, capability := range capabilities {
		one, err := parseCapability(capability)
		switch {
		case err != nil:
			return use{}, err
		case i == 0:
			all = one
		case one != all:
			return use{}, invalid("volume capabilities disagree: %s and %s", all, one)
		}
	}
	return all, nil
}

func parseCapability(capability *csi.VolumeCapability) (use, error) {
	mode := capability.GetAccessMode().GetMode()
	if !slices.Contains(accessModes, mode) {
		return use{}, invalid("access mode %s is not supported: %s", mode, storageclass.OneNode)
	}
	switch {
	case capability.GetBlock() != nil:
		return use{mode: v1alpha1.Block}, nil
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
