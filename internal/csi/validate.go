package csi

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/storageclass"
	"berth.dev/berth/internal/usecase/volumes"
)

// ValidateVolumeCapabilities confirms that an existing volume supports the capabilities.
// If it does not, that is no error: the response confirms nothing and says why.
func (c *Controller) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if err := checkID(r.GetVolumeId()); err != nil {
		return nil, err
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume capabilities are missing")
	}
	v, err := c.volumes.Get(ctx, r.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if reason := unfit(c.driver, v, r); reason != "" {
		return &csi.ValidateVolumeCapabilitiesResponse{Message: reason}, nil
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext:      r.GetVolumeContext(),
		VolumeCapabilities: r.GetVolumeCapabilities(),
		Parameters:         r.GetParameters(),
	}}, nil
}

// unfit says why a volume cannot be used as asked, or returns an empty string.
func unfit(d driver.Driver, v volumes.Volume, r *csi.ValidateVolumeCapabilitiesRequest) string {
	use, err := parseCapabilities(d, r.GetVolumeCapabilities())
	switch {
	case err != nil:
		return err.Error()
	case use.many && !v.ManyWriters:
		return "the volume was not made for ReadWriteMany: one node at a time writes it"
	case use.mode != v.Mode:
		return fmt.Sprintf("the volume is a %s volume", v.Mode)
	case use.fsType != "" && use.fsType != v.FSType:
		return fmt.Sprintf("the volume's filesystem is %s", v.FSType)
	}
	if v.Mode == v1alpha1.Filesystem {
		if err := storageclass.CheckMountOptions(v.FSType, mountOptions(r.GetVolumeCapabilities())); err != nil {
			return err.Error()
		}
	}
	if len(r.GetParameters()) == 0 {
		return ""
	}
	return unlike(d, v, r)
}

// unlike says how a volume differs from the parameters, or returns an empty string.
func unlike(d driver.Driver, v volumes.Volume, r *csi.ValidateVolumeCapabilitiesRequest) string {
	parameters, _, err := parseParameters(d, r.GetParameters(), use{mode: v.Mode, many: v.ManyWriters})
	switch {
	case err != nil:
		return err.Error()
	case parameters.PoolClass != v.PoolClass:
		return fmt.Sprintf("the volume's PoolClass is %s", v.PoolClass)
	case parameters.FSType != "" && v.FSType != "" && parameters.FSType != v.FSType:
		return fmt.Sprintf("the volume's filesystem is %s", v.FSType)
	case v.Mode == v1alpha1.Filesystem && v.Source == nil && parameters.MkfsOptions != v.MkfsOptions:
		return fmt.Sprintf("the volume's filesystem was made with the options %q", v.MkfsOptions)
	}
	return ""
}
