package provision

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision/mkfs"
)

// Raw is recorded in place of a filesystem when a block device is given to a pod as it is.
// Nothing is made on the device, and from then on it may hold data. Its snapshots and copies
// have the same record, since they hold the same data.
const Raw = "raw"

// MinSize is the smallest volume in bytes that a filesystem is made on; a blank
// volume may be of any size.
func MinSize(filesystem string) int64 {
	switch {
	case filesystem == XFS:
		return 300 << 20 // mkfs.xfs refuses less
	case filesystem == Ext4:
		return 32 << 20 // less has no room for a useful journal
	case ByItself(filesystem) != "":
		return 32 << 20 // as ext4, so that a caller need not know which of them it will be
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
	// The name of a pool of any type. Each provisioner checks its own names more strictly.
	poolName = regexp.MustCompile(`^([a-z]+:)?[A-Za-z0-9_+.][A-Za-z0-9_+.-]*(/[A-Za-z0-9_+.][A-Za-z0-9_+.-]*)*$`)
	labelKey = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)
	// The characters of an LVM tag, without the "=" that ends the key.
	label = regexp.MustCompile(`^[A-Za-z0-9_+./:-]*$`)
	// A pod's UID and the name of a volume in it.
	inlinePart = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,62}$`)
)

// The labels of a volume that was made for a claim.
const (
	LabelNamespace = "namespace"
	LabelClaim     = "claim"
)

// ClaimOf returns the claim that the labels of a volume name, as NAMESPACE/NAME; empty if they
// name none, or if another program wrote what can be no label of Berth's.
func ClaimOf(labels map[string]string) string {
	namespace, name := labels[LabelNamespace], labels[LabelClaim]
	for _, part := range []string{namespace, name} {
		if part == "" || len(part) > maxLabel || !label.MatchString(part) || strings.Contains(part, "/") {
			return ""
		}
	}
	return namespace + "/" + name
}

// CheckID returns ErrInvalid for a string that cannot be the id of a volume.
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
	if err := cmp.Or(checkPool(r.Pool.Name), checkSize(r.Size), r.Limits.check(), r.checkOwner(), r.Source.check(), r.Wipe.check(), r.Tuning.check(TraitsOf(r.Pool.Type)), r.checkTree()); err != nil {
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
	known := append(Filesystems(), Raw)
	switch {
	case !slices.Contains(known, r.Filesystem):
		return fmt.Errorf("%w: filesystem %q is not one of %s", ErrInvalid, r.Filesystem, strings.Join(known, ", "))
	case r.Makes():
	case r.Options != "":
		return fmt.Errorf("%w: mkfs options %q: no mkfs makes %q", ErrInvalid, r.Options, r.Filesystem)
	default:
		return nil
	}
	if err := mkfs.Check(r.Filesystem, r.Options); err != nil {
		return fmt.Errorf("%w: mkfs option %w", ErrInvalid, err)
	}
	return nil
}

// Makes says whether Format runs mkfs. Raw, and a filesystem that the volume is by itself, are
// only recorded.
func (r FormatRequest) Makes() bool { return r.Filesystem != Raw && ByItself(r.Filesystem) == "" }

// Met says whether a volume has the filesystem already. The error says why the filesystem
// cannot be made on it: Format takes only a volume that is blank and can be used.
func (r FormatRequest) Met(v Volume) (bool, error) {
	switch {
	case v.Copying:
		return false, fmt.Errorf("%w: volume %s is still being copied", ErrUnavailable, v.ID)
	case v.Filesystem == r.Filesystem:
		return true, nil
	case v.Content.Source != "" && v.Content.Tree != ByItself(r.Filesystem):
		return false, fmt.Errorf("%w: volume %s is %s, which cannot become %s", ErrConflict, v.ID, v.Content.Source, r.Filesystem)
	case v.Filesystem != "":
		return false, fmt.Errorf("%w: volume %s is recorded as %s and cannot become %s", ErrConflict, v.ID, v.Filesystem, r.Filesystem)
	case v.Problem != "":
		return false, fmt.Errorf("%w: volume %s: %s", ErrUnavailable, v.ID, v.Problem)
	}
	return false, nil
}

// checkTree refuses a volume of a form that the pools of the type do not have.
func (r CreateRequest) checkTree() error {
	t, form := TraitsOf(r.Pool.Type), "block devices"
	switch {
	case ByItself(r.Tree) != r.Tree:
		return fmt.Errorf("%w: a volume is no %q filesystem by itself", ErrInvalid, r.Tree)
	case t.Type == "" || t.Has(r.Tree): // a pool of an unknown type does not exist
		return nil
	case r.Tree != "":
		form = "filesystems of " + TraitsOfTree(r.Tree).Type
	}
	return fmt.Errorf("%w: pools of type %s have no %s", ErrUnsupported, r.Pool.Type, form)
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

// checkOwner keeps the two namespaces of ids apart: an id alone tells whether a Volume
// or a pod owns the data.
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
