package csi

import (
	"cmp"
	"strings"
	"unicode"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
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
	if use, err = use.complete(parameters.FSType); err != nil {
		return volumes.Request{}, err
	}
	topology, err := parseRequirements(r.GetAccessibilityRequirements())
	if err != nil {
		return volumes.Request{}, err
	}
	return volumes.Request{
		Name:      r.GetName(),
		Size:      parseSize(r.GetCapacityRange()),
		Mode:      use.mode,
		FSType:    use.fsType,
		PoolClass: parameters.PoolClass,
		Claim:     claim(parameters),
		Topology:  topology,
	}, nil
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

// complete fills in the filesystem of a Filesystem volume. The provisioner hands
// the StorageClass's filesystem over in the capability; where a caller leaves it
// among the parameters the two must not contradict each other.
func (u use) complete(fromClass v1alpha1.FSType) (use, error) {
	if u.mode == v1alpha1.Block {
		return u, nil
	}
	if u.fsType != "" && fromClass != "" && u.fsType != fromClass {
		return use{}, invalid("the volume capability asks for %s and parameter %q for %s", u.fsType, storageclass.FSTypeKey, fromClass)
	}
	u.fsType = cmp.Or(u.fsType, fromClass, storageclass.DefaultFSType)
	return u, nil
}

func parseSize(r *csi.CapacityRange) volumes.Size {
	return volumes.Size{Required: r.GetRequiredBytes(), Limit: r.GetLimitBytes()}
}

func claim(p storageclass.Parameters) *v1alpha1.ClaimReference {
	if p.ClaimName == "" {
		return nil
	}
	return &v1alpha1.ClaimReference{Namespace: p.ClaimNamespace, Name: p.ClaimName}
}

func checkID(id string) error {
	if id == "" {
		return invalid("volume id is missing")
	}
	return nil
}
