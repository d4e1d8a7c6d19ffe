package volumes

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
)

// Sizes in bytes.
const (
	// DefaultSize is made when no size is asked for.
	DefaultSize = int64(1) << 30
	// MaxSize is the largest size that is not taken for a mistake.
	MaxSize = int64(1) << 60

	minBlock = int64(4) << 20
	minExt4  = int64(32) << 20
	minXFS   = int64(300) << 20
)

// Size is a requested size in bytes: at least Required, at most Limit. Zero means no bound.
type Size struct{ Required, Limit int64 }

// Check refuses a size that no volume can have.
func (s Size) Check() error {
	switch {
	case s.Required < 0 || s.Limit < 0:
		return fail(provision.ErrInvalid, "a size cannot be negative: %d required, limit %d", s.Required, s.Limit)
	case s.Limit > 0 && s.Limit < s.Required:
		return fail(provision.ErrInvalid, "the limit of %s is below the required %s", quantity.Bytes(s.Limit), quantity.Bytes(s.Required))
	case s.Required > MaxSize:
		return fail(ErrOutOfRange, "%s is more than the %s that a volume can have", quantity.Bytes(s.Required), quantity.Bytes(MaxSize))
	}
	return nil
}

// bytes is the size to ask the node for: at least what the filesystem needs.
func (s Size) bytes(mode v1alpha1.VolumeMode, fsType v1alpha1.FSType) (int64, error) {
	if err := s.Check(); err != nil {
		return 0, err
	}
	least := Minimum(mode, fsType)
	if s.Limit > 0 && s.Limit < least {
		return 0, fail(ErrOutOfRange, "the limit of %s is below the %s that %s needs", quantity.Bytes(s.Limit), quantity.Bytes(least), kind(mode, fsType))
	}
	wanted := s.Required
	if wanted == 0 {
		wanted = DefaultSize
		if s.Limit > 0 {
			wanted = min(wanted, s.Limit)
		}
	}
	return max(wanted, least), nil
}

// Minimum is the smallest size of a kind of volume.
func Minimum(mode v1alpha1.VolumeMode, fsType v1alpha1.FSType) int64 {
	switch {
	case mode == v1alpha1.Block:
		return minBlock
	case fsType == v1alpha1.XFS:
		return minXFS
	default:
		return minExt4
	}
}

func kind(mode v1alpha1.VolumeMode, fsType v1alpha1.FSType) string {
	if mode == v1alpha1.Block {
		return "a block volume"
	}
	return string(fsType)
}
