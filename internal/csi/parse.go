package csi

import (
	"strings"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/internal/controller/volumes"
	"berth.dev/berth/internal/storageclass"
)

// maxName is the longest CSI name and id that the specification allows, in bytes.
const maxName = 128

func parseCreate(r *csi.CreateVolumeRequest) (volumes.Request, error) {
	if err := checkCreate(r); err != nil {
		return volumes.Request{}, err
	}
	parameters, err := storageclass.Parse(r.GetParameters())
	if err != nil {
		return volumes.Request{}, err
	}
	use, err := parseCapabilities(r.GetVolumeCapabilities())
	if err != nil {
		return volumes.Request{}, err
	}
	topology, err := parseRequirements(r.GetAccessibilityRequirements())
	if err != nil {
		return volumes.Request{}, err
	}
	w := volumes.Wish{
		Name: r.GetName(), Parameters: parameters, Mode: use.mode, FSType: use.fsType,
		Size: parseSize(r.GetCapacityRange()), Topology: topology,
	}
	return w.Request()
}

func checkCreate(r *csi.CreateVolumeRequest) error {
	name := r.GetName()
	switch {
	case name == "":
		return invalid("volume name is missing")
	case len(name) > maxName:
		return invalid("volume name is %d bytes long, at most %d are allowed", len(name), maxName)
	case strings.ContainsFunc(name, unicode.IsControl):
		return invalid("volume name %q contains control characters", name)
	case r.GetVolumeContentSource() != nil:
		return invalid("creating a volume from a snapshot or another volume is not supported")
	case len(r.GetMutableParameters()) > 0:
		return invalid("a VolumeAttributesClass is not supported")
	}
	return nil
}

func parseSize(r *csi.CapacityRange) volumes.Size {
	return volumes.Size{Required: r.GetRequiredBytes(), Limit: r.GetLimitBytes()}
}

func checkID(id string) error {
	if id == "" {
		return invalid("volume id is missing")
	}
	return nil
}
