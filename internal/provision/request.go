package provision

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"berth.dev/berth/internal/provision/mkfs"
)

// Filesystems that Format makes.
const (
	Ext4 = "ext4"
	XFS  = "xfs"
)

// Dataset is a filesystem of ZFS itself. It is made with the volume, in a zpool alone.
const Dataset = "zfs"

// Raw is recorded in place of a filesystem of a block device that was given to a pod as it is.
// Nothing is made on it; from then on it may hold data. Snapshots and copies of it bear the same
// record: they hold what it held.
const Raw = "raw"

// IsDataset says whether a volume's device is a dataset: its name is no path.
func IsDataset(device string) bool { return device != "" && !strings.HasPrefix(device, "/") }

// MinSize is the smallest volume in bytes that a filesystem is made on; a blank
// volume may be of any size.
func MinSize(filesystem string) int64 {
	switch filesystem {
	case XFS:
		return 300 << 20 // mkfs.xfs refuses less
	case Ext4:
		return 32 << 20 // less has no room for a journal worth the name
	case Dataset:
		return 32 << 20 // as ext4, so that who reckons need not know which it will be
	default:
		return 1
	}
}

// MaxSize bounds every size in bytes: 1 EiB, so that rounding and adding spare
// bytes cannot overflow.
const MaxSize = 1 << 60

// InlinePrefix begins the ids of inline volumes, and of no others.
const InlinePrefix = "inline-"

const (
	maxPoolName = 253
	maxLabels   = 16
	maxLabelKey = 63
	maxLabel    = 512
)

var (
	// An id becomes a device name and an argument. The prefixes keep it away from every
	// name that LVM, ZFS or a tool's option parser reserves.
	volumeID = regexp.MustCompile(`^(pvc|vol|inline)-[a-z0-9][a-z0-9-]{0,58}$`)
	// What names a pool of any type; each provisioner knows its own more exactly.
	poolName = regexp.MustCompile(`^([a-z]+:)?[A-Za-z0-9_+.][A-Za-z0-9_+.-]*(/[A-Za-z0-9_+.][A-Za-z0-9_+.-]*)*$`)
	labelKey = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)
	// What an LVM tag may hold, without the "=" that ends the key.
	label = regexp.MustCompile(`^[A-Za-z0-9_+./:-]*$`)
	// A pod's UID and the name of a volume in it.
	inlinePart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)
)

// CheckID returns ErrInvalid for what cannot be the id of a volume.
func CheckID(id string) error {
	if !volumeID.MatchString(id) || strings.HasSuffix(id, "-") {
		return fmt.Errorf("%w: %q is no volume id", ErrInvalid, id)
	}
	return nil
}

// Check returns ErrInvalid for a request that can never be met.
func (r CreateRequest) Check() error {
	if err := CheckID(r.ID); err != nil {
		return err
	}
	if err := cmp.Or(checkPool(r.Pool.Name), checkSize(r.Size), r.Limits.check(), r.checkOwner(), r.Source.check(), r.Wipe.check(), r.ZFS.check(), r.checkFilesystem()); err != nil {
		return err
	}
	if len(r.Labels) > maxLabels {
		return fmt.Errorf("%w: %d labels, at most %d can be kept", ErrInvalid, len(r.Labels), maxLabels)
	}
	for k, v := range r.Labels {
		if len(k) > maxLabelKey || !labelKey.MatchString(k) || len(v) > maxLabel || !label.MatchString(v) {
			return fmt.Errorf("%w: label %q=%q cannot be kept with a volume", ErrInvalid, k, v)
		}
	}
	return nil
}

// Check returns ErrInvalid for a request that can never be met.
func (r ExpandRequest) Check() error {
	if err := CheckID(r.ID); err != nil {
		return err
	}
	return cmp.Or(checkSize(r.Size), r.Limits.check())
}

// Check returns ErrInvalid for a request that can never be met.
func (r FormatRequest) Check() error {
	if err := CheckID(r.ID); err != nil {
		return err
	}
	switch r.Filesystem {
	case Ext4, XFS:
	case Dataset, Raw:
		if r.Options != "" {
			return fmt.Errorf("%w: mkfs options %q: no mkfs makes %q", ErrInvalid, r.Options, r.Filesystem)
		}
		return nil
	default:
		return fmt.Errorf("%w: filesystem %q is not one of %s, %s, %s, %s", ErrInvalid, r.Filesystem, Ext4, XFS, Dataset, Raw)
	}
	if err := mkfs.Check(r.Filesystem, r.Options); err != nil {
		return fmt.Errorf("%w: mkfs option %w", ErrInvalid, err)
	}
	return nil
}

// Makes says whether a filesystem is made: the others are but recorded.
func (r FormatRequest) Makes() bool { return r.Filesystem != Dataset && r.Filesystem != Raw }

// Met says whether a volume bears the filesystem already. The error says why it cannot
// be made on it: a blank volume alone is formatted, and one that can be used.
func (r FormatRequest) Met(v Volume) (bool, error) {
	switch {
	case v.Copying:
		return false, fmt.Errorf("%w: volume %s is still being copied", ErrUnavailable, v.ID)
	case v.Filesystem == r.Filesystem:
		return true, nil
	case v.Device != "" && IsDataset(v.Device) != (r.Filesystem == Dataset):
		return false, fmt.Errorf("%w: volume %s is %s, which cannot become %s", ErrConflict, v.ID, v.Device, r.Filesystem)
	case v.Filesystem != "":
		return false, fmt.Errorf("%w: volume %s is recorded as %s and cannot become %s", ErrConflict, v.ID, v.Filesystem, r.Filesystem)
	case v.Problem != "":
		return false, fmt.Errorf("%w: volume %s: %s", ErrUnavailable, v.ID, v.Problem)
	}
	return false, nil
}

// checkFilesystem is where every provisioner but ZFS's refuses a dataset.
func (r CreateRequest) checkFilesystem() error {
	switch {
	case r.Filesystem == "":
		return nil
	case r.Filesystem != Dataset:
		return fmt.Errorf("%w: a volume is no %q filesystem by itself", ErrInvalid, r.Filesystem)
	case r.Pool.Type != ZFS && Kind(r.Pool.Type) != nil: // of an unknown type there is no pool
		return fmt.Errorf("%w: pools of type %s have no filesystems of ZFS", ErrUnsupported, r.Pool.Type)
	}
	return nil
}

func checkPool(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		if part == "." || part == ".." || !poolName.MatchString(name) || len(name) > maxPoolName {
			return fmt.Errorf("%w: %q is no pool name", ErrInvalid, name)
		}
	}
	return nil
}

func checkSize(size int64) error {
	if size <= 0 || size > MaxSize {
		return fmt.Errorf("%w: size %d is not between 1 and %d bytes", ErrInvalid, size, int64(MaxSize))
	}
	return nil
}

// checkOwner holds the two namespaces of ids apart: whoever sees an id knows
// whether a Volume or a pod owns the data.
func (r CreateRequest) checkOwner() error {
	inline := r.Inline != Inline{}
	if inline && r.Source != (Source{}) {
		return fmt.Errorf("%w: the inline volume of a pod has no source", ErrInvalid)
	}
	if inline != strings.HasPrefix(r.ID, InlinePrefix) {
		return fmt.Errorf("%w: %q is not an id for what the volume is", ErrInvalid, r.ID)
	}
	if inline && (!inlinePart.MatchString(r.Inline.PodUID) || !inlinePart.MatchString(r.Inline.Name)) {
		return fmt.Errorf("%w: %q of pod %q cannot own a volume", ErrInvalid, r.Inline.Name, r.Inline.PodUID)
	}
	return nil
}

// RoundUp returns the smallest multiple of unit that is at least size, for a
// size that Check has passed.
func RoundUp(size, unit int64) int64 {
	return (size + unit - 1) / unit * unit
}
