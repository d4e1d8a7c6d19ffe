package volumes

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quantity"
)

// Difference says how an existing volume differs from a request, or returns an empty
// string. The place of a volume is no part of its shape.
func Difference(spec *v1alpha1.VolumeSpec, r Request) string {
	have := spec.Capacity.Value()
	switch {
	case spec.VolumeMode != r.Mode:
		return fmt.Sprintf("its volumeMode is %s, not %s", spec.VolumeMode, r.Mode)
	case (spec.Sharing == v1alpha1.Shared) != (r.Sharing() == v1alpha1.Shared):
		return fmt.Sprintf("its sharing is %s, not %s", spec.Sharing, r.Sharing())
	case r.FSType != "" && spec.FSType != r.FSType:
		return fmt.Sprintf("its filesystem is %s, not %s", spec.FSType, r.FSType)
	case spec.MkfsOptions != r.MkfsOptions:
		return fmt.Sprintf("its filesystem is made with the options %q, not with %q", spec.MkfsOptions, r.MkfsOptions)
	case spec.PoolClass != r.PoolClass:
		return fmt.Sprintf("its PoolClass is %s, not %s", spec.PoolClass, r.PoolClass)
	case have < r.Size.Required:
		return fmt.Sprintf("its size is %s, less than the required %s", quantity.Bytes(have), quantity.Bytes(r.Size.Required))
	case r.Size.Limit > 0 && have > r.Size.Limit:
		return fmt.Sprintf("its size is %s, more than the limit of %s", quantity.Bytes(have), quantity.Bytes(r.Size.Limit))
	}
	if have, want := sourceName(spec.Source), sourceName(r.Source); have != want {
		return fmt.Sprintf("it was made from %s, not from %s", have, want)
	}
	return claimDifference(spec.ClaimRef, r.Claim)
}

// sourceName is for people.
func sourceName(s *v1alpha1.VolumeSource) string {
	switch {
	case s == nil:
		return "nothing"
	case s.Snapshot != "":
		return "snapshot " + s.Snapshot
	default:
		return "volume " + s.Volume
	}
}

func claimDifference(have, want *v1alpha1.ClaimReference) string {
	if have == nil || want == nil || *have == *want {
		return ""
	}
	return fmt.Sprintf("it belongs to claim %s/%s, not %s/%s", have.Namespace, have.Name, want.Namespace, want.Name)
}
